"""How often 95 % intervals hold the true value, by simulation."""
