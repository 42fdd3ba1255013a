"""Power of the paired test at the number of items that `sample_size.paired` asks for, by simulation."""
