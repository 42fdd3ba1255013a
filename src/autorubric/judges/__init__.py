"""Judges: language models, functions, recorded votes, critics, checks and offline baselines."""

from autorubric.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
