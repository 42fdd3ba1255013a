"""Grade texts against weighted rubrics with judges, and measure how far the judges can be trusted."""
