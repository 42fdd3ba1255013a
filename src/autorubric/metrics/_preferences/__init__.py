"""Preference metrics: agreement of two scores on the order of items, and strengths from pairwise wins."""
