"""A real model of 270 million parameters as a judge: verdicts, prefix cache, probabilities."""
