"""Comparison of two judges against the same truth, and p-value adjustment for many comparisons."""

from autorubric.metrics._judge_comparison._adjust import Adjustment, adjust_pvalues
from autorubric.metrics._judge_comparison._compare import ComparisonMethod, JudgeComparison, compare_judges

__all__ = ["Adjustment", "ComparisonMethod", "JudgeComparison", "adjust_pvalues", "compare_judges"]
