"""Measurements that are no tests: how fast the figures are, and how often their intervals cover."""
