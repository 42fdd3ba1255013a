"""Run folders that are damaged in one place, opened and resumed."""
