"""How many judge calls a second, and how much CPU each takes, beside a bare client in the same run."""
