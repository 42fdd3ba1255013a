"""Metrics of labels and numbers, one family per file. Families do not import each other's results."""
