"""Level of the bias report in runs without a bias, by simulation."""
