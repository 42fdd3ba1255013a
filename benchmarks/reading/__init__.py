"""Time from a run folder, a dataset file or a label table to figures."""
