"""One label per item from the votes of several raters: majority vote and the Dawid-Skene model."""

from autorubric.metrics._votes_to_truth._dawid_skene import DawidSkeneResult, dawid_skene
from autorubric.metrics._votes_to_truth._majority import TiePolicy, majority_vote

__all__ = ["DawidSkeneResult", "TiePolicy", "dawid_skene", "majority_vote"]
