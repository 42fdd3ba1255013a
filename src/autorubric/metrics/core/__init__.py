"""What all metrics share: estimates, scales, tables of votes, resampling."""
