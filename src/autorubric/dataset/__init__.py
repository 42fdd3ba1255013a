"""Datasets: items with labels and ratings, from and to files, split into parts."""

from autorubric.dataset._dataset import RubricDataset
from autorubric.dataset._item import DataItem
from autorubric.dataset._ratings import LongRow, label_of, read_long_table

__all__ = ["DataItem", "LongRow", "RubricDataset", "label_of", "read_long_table"]
