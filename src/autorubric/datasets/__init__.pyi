from .dataset import DatasetSplit as DatasetSplit, RubricDataset as RubricDataset
from .fields import FieldMap as FieldMap
from .importers import from_healthbench as from_healthbench, from_paperbench as from_paperbench
from .item import (
    DataItem as DataItem,
    TruthRule as TruthRule,
    truth_answer as truth_answer,
    truth_number as truth_number,
)
from .labels import (
    DISPUTED as DISPUTED,
    MergedLabels as MergedLabels,
    check_savable as check_savable,
    merge_labels as merge_labels,
    save_truth as save_truth,
)
from .lazy import IdIndex as IdIndex
from .promptfoo import from_promptfoo as from_promptfoo
from .ratings import LongRow as LongRow, label_of as label_of, read_long_table as read_long_table
from .stream import EarlierCopy as EarlierCopy, can_stream as can_stream, line_of as line_of

__all__: list[str]
