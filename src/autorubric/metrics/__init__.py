"""Metrics of the reliability of judges: agreement, correlation, error and bias, with confidence intervals.

Most functions take plain sequences or tables of counts and return an `Estimate`, which behaves like a number
if the metric is defined and reports the reason if it is not.
"""

from autorubric.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
