"""Graders: collect votes on every criterion and aggregate them into decisions and scores."""

from autorubric.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
