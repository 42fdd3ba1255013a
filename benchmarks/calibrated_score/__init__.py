"""Coverage of the interval of `corrected_score(run, calibration=)`, by simulation."""
