"""Datasets: items with labels and ratings, from and to files, split into parts."""

from autorubric.dataset._dataset import RubricDataset
from autorubric.dataset._earlier import EarlierCopy
from autorubric.dataset._item import DataItem
from autorubric.dataset._ratings import LongRow, label_of, read_long_table
from autorubric.dataset._stream import line_of

__all__ = ["DataItem", "EarlierCopy", "LongRow", "RubricDataset", "label_of", "line_of", "read_long_table"]
