"""Metrics for probabilities and confidences: accuracy, calibration, ranking and abstention."""
