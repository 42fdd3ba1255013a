"""Run folders that are damaged in one place, then opened and resumed."""
