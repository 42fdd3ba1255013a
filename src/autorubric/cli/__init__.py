"""The command line, one file per family of commands.

`autorubric --help` loads none of them. A command's own `--help` loads neither judges nor numpy: what needs
them is in the modules that the stub lists, which load on first use.
"""

from autorubric.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
