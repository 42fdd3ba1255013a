"""The garbage collector during a run."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def heap_set_aside() -> Iterator[None]:
    """Keeps the garbage collector, within the block, from going over what was there before it.

    What waits for replies lives long enough to set off full collections, and each would go over every object
    of the process. What was garbage before is collected after the block.
    """
    if gc.get_freeze_count():
        # Another run, or the program itself, has set it aside already, and brings it back when it wants to.
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
