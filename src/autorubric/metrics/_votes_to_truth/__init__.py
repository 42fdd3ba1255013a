"""From the votes of several raters to one label per item: majority, and Dawid and Skene's model."""

from autorubric.metrics._votes_to_truth._dawid_skene import dawid_skene
from autorubric.metrics._votes_to_truth._dawid_skene_result import DawidSkeneResult
from autorubric.metrics._votes_to_truth._majority import TiePolicy, majority_vote

__all__ = ["DawidSkeneResult", "TiePolicy", "dawid_skene", "majority_vote"]
