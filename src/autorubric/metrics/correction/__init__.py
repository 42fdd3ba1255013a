"""Inference about the truth from a judge's verdicts: corrections, tests against people and decisions."""
