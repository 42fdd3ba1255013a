"""How large the report on a long run is, and how soon it is open in Chromium."""
