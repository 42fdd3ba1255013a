"""Comparison of two judges against the same truth, and p-value adjustment for many comparisons."""
