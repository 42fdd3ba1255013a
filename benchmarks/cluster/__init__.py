"""Judge calls per second with two Ray workers, next to a local run."""
