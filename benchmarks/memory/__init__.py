"""How much memory a run takes, by the number of its items."""
