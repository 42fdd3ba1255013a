"""Audits of judges and rubrics, computed from a stored run or a table of labels."""
