"""Datasets: items with labels and ratings, from and to files, split into parts."""

from typing import TYPE_CHECKING

from autorubric._late import loading

if TYPE_CHECKING:
    from autorubric.dataset._dataset import RubricDataset
    from autorubric.dataset._earlier import EarlierCopy
    from autorubric.dataset._fields import FieldMap
    from autorubric.dataset._ids import IdIndex
    from autorubric.dataset._importers import from_healthbench, from_paperbench, from_promptfoo
    from autorubric.dataset._item import DataItem
    from autorubric.dataset._labels import DISPUTED, MergedLabels, merge_labels
    from autorubric.dataset._ratings import LongRow, label_of, read_long_table
    from autorubric.dataset._save_truth import check_savable, save_truth
    from autorubric.dataset._split import DatasetSplit
    from autorubric.dataset._stream import can_stream, line_of
    from autorubric.dataset._truth import TruthRule, truth_answer, truth_number

__all__ = [
    "DISPUTED",
    "DataItem",
    "DatasetSplit",
    "EarlierCopy",
    "FieldMap",
    "IdIndex",
    "LongRow",
    "MergedLabels",
    "RubricDataset",
    "TruthRule",
    "can_stream",
    "check_savable",
    "from_healthbench",
    "from_paperbench",
    "from_promptfoo",
    "label_of",
    "line_of",
    "merge_labels",
    "read_long_table",
    "save_truth",
    "truth_answer",
    "truth_number",
]

_HOMES = {
    "DISPUTED": "_labels",
    "DataItem": "_item",
    "DatasetSplit": "_split",
    "EarlierCopy": "_earlier",
    "FieldMap": "_fields",
    "IdIndex": "_ids",
    "LongRow": "_ratings",
    "MergedLabels": "_labels",
    "RubricDataset": "_dataset",
    "TruthRule": "_truth",
    "can_stream": "_stream",
    "check_savable": "_save_truth",
    "from_healthbench": "_importers",
    "from_paperbench": "_importers",
    "from_promptfoo": "_importers",
    "label_of": "_ratings",
    "line_of": "_stream",
    "merge_labels": "_labels",
    "read_long_table": "_ratings",
    "save_truth": "_save_truth",
    "truth_answer": "_truth",
    "truth_number": "_truth",
}

__getattr__ = loading(__name__, _HOMES)
