"""Coverage of the interval of Cohen's kappa over few clusters, by simulation."""
