"""How long it takes to open a finished run, and to go on with it."""
