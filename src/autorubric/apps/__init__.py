"""Applications of the library. They do not import each other, and nothing below imports them."""

from autorubric.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
