"""Votes, and pure functions that turn them into decisions, scores and reports."""

from autorubric.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
