"""Judge calls per second and CPU per call, next to a bare client in the same run."""
