"""Coverage of the interval of `decision` with labelled items, and its cost in UNDECIDED, by simulation."""
