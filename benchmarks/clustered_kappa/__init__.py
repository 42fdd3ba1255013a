"""How often the interval of Cohen's kappa over few clusters holds the true value, by simulation."""
