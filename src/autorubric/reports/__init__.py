"""Self-contained HTML pages that need no server or network: a run's report, and a labelling page."""

from autorubric.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
