"""Coverage of 95 % intervals, by simulation."""
