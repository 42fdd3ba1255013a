"""Size of the report on a long run, and the time until Chromium has drawn it."""
