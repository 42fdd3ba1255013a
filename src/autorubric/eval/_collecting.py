"""Tuning of the garbage collector during a run."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_ALLOCATED: Final = 50_000
"""Number of new objects that triggers a collection; Python's default is 700 or 2,000."""


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Make the garbage collector run less often within the block.

    Hundreds of calls wait at a time, and their objects are not garbage. Scanning these and all other objects
    of the process again and again takes a sixth of a run's CPU time on a fast server.
    """
    before = gc.get_threshold()
    if not 0 < before[0] < _ALLOCATED:
        # The collector is off, or another run or the program has already raised the threshold.
        yield
        return
    gc.set_threshold(_ALLOCATED, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
