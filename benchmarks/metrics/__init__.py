"""Time of the metrics, next to scikit-learn, scipy, statsmodels and numpy in the same run."""
