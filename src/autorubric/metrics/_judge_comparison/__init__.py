"""Comparison of two judges against the same truth, and p-value adjustment for many comparisons."""

from autorubric.metrics._judge_comparison._compare import ComparisonMethod, JudgeComparison, compare_judges
from autorubric.metrics._judge_comparison._stats import Adjustment, adjust_pvalues

__all__ = ["Adjustment", "ComparisonMethod", "JudgeComparison", "adjust_pvalues", "compare_judges"]
