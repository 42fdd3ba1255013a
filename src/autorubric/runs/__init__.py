"""Runs: grading a dataset into a folder that can be resumed, and reading the results."""

from autorubric.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
