"""Datasets of items with labels and ratings, which can be read, written and split."""

from autorubric.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
