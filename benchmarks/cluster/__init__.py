"""How many judge calls a second a run over two of Ray's workers makes, beside a local one."""
