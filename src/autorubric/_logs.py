"""The library's loggers: children of `autorubric`, silent until an application configures them."""

from __future__ import annotations

import logging

# Without a handler, warnings would go to stderr.
logging.getLogger("autorubric").addHandler(logging.NullHandler())


def logger_of(module: str) -> logging.Logger:
    """Return the logger of the library module with this name."""
    return logging.getLogger(module)
