"""Public reports on the agreement of two raters, the reliability of several raters, and a run's judges."""
