from .dataset import DatasetSplit as DatasetSplit, RubricDataset as RubricDataset
from .fields import FieldMap as FieldMap
from .importers import from_healthbench as from_healthbench, from_paperbench as from_paperbench
from .item import DataItem as DataItem, TruthRule as TruthRule
from .labels import MergedLabels as MergedLabels, merge_labels as merge_labels
from .pdf import pdf_submission as pdf_submission
from .promptfoo import from_promptfoo as from_promptfoo

__all__: list[str]
