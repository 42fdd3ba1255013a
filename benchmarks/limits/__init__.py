"""How many replies a second the cache serves, beside bare SQLite."""
