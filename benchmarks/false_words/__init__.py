"""How often sentences of results are false, and how often intervals cover, by simulation."""
