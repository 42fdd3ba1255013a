"""Reports over many metrics: of two raters, several raters, a run, two judges, two runs."""
