"""The garbage collector during a run."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_ALLOCATED: Final = 50_000
"""Objects more than before that set off a collection; Python's own number is 700 or 2,000."""


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Have the garbage collector look at young objects less often within the block.

    Hundreds of calls wait at a time, and what they hold is not garbage: going over it again and again, and
    over every other object of the process in turn, is a sixth of a run's CPU on a fast server.
    """
    before = gc.get_threshold()
    if not 0 < before[0] < _ALLOCATED:
        # It is off, or another run or the program itself has made it seldom.
        yield
        return
    gc.set_threshold(_ALLOCATED, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
