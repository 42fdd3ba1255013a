"""Time to open and to resume a finished run."""
