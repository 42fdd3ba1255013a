"""Datasets of items with labels and ratings, which can be read, written and split."""

from typing import TYPE_CHECKING

from autorubric._late import loading

if TYPE_CHECKING:
    from autorubric.dataset._dataset import DatasetSplit, RubricDataset
    from autorubric.dataset._earlier import EarlierCopy
    from autorubric.dataset._fields import FieldMap
    from autorubric.dataset._ids import IdIndex
    from autorubric.dataset._importers import from_healthbench, from_paperbench, from_promptfoo
    from autorubric.dataset._item import DataItem
    from autorubric.dataset._labels import DISPUTED, MergedLabels, merge_labels
    from autorubric.dataset._ratings import LongRow, label_of, read_long_table
    from autorubric.dataset._save_truth import check_savable, save_truth
    from autorubric.dataset._stream import can_stream, line_of
    from autorubric.dataset._truth import TruthRule, truth_answer, truth_number

__all__ = [
    "DISPUTED", "DataItem", "DatasetSplit", "EarlierCopy", "FieldMap", "IdIndex", "LongRow",
    "MergedLabels", "RubricDataset", "TruthRule", "can_stream", "check_savable", "from_healthbench",
    "from_paperbench", "from_promptfoo", "label_of", "line_of", "merge_labels", "read_long_table",
    "save_truth", "truth_answer", "truth_number",
]  # fmt: skip

_HOMES = {
    "_labels": ("DISPUTED", "MergedLabels", "merge_labels"),
    "_item": ("DataItem",),
    "_earlier": ("EarlierCopy",),
    "_fields": ("FieldMap",),
    "_ids": ("IdIndex",),
    "_ratings": ("LongRow", "label_of", "read_long_table"),
    "_dataset": ("DatasetSplit", "RubricDataset"),
    "_truth": ("TruthRule", "truth_answer", "truth_number"),
    "_stream": ("can_stream", "line_of"),
    "_save_truth": ("check_savable", "save_truth"),
    "_importers": ("from_healthbench", "from_paperbench", "from_promptfoo"),
}  # fmt: skip

__getattr__ = loading(__name__, _HOMES)
