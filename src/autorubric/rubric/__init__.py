"""Rubrics, which are ordered, weighted criteria with optional groups and guidelines, and rubric files."""

from autorubric.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
