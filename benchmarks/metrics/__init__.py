"""How long the figures take, beside scikit-learn, scipy, statsmodels and bare numpy in the same run."""
