"""How often the interval of `corrected_score(run, calibration=)` holds the true mean, by simulation."""
