"""Criteria: the requirements to judge and the form of the answers."""

from autorubric.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
