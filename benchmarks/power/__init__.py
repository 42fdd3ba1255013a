"""Power of the paired test at the number of items of `sample_size.paired`, by simulation."""
