"""Grade texts against weighted rubrics with judges, and measure how far the judges can be trusted.

Every public name can be imported from here and is loaded on first use.
"""

from autorubric._version import VERSION
from autorubric.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

__version__ = VERSION
