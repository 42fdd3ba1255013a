"""What these tests share."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_MEMORY = Path("/dev/shm")

# These fork, limit and kill processes as only POSIX systems can.
collect_ignore = ["test_disks.py", "test_folders.py", "test_kills.py"] if sys.platform == "win32" else []


@pytest.fixture
def quick_path() -> Iterator[Path]:
    """A folder for hundreds of runs, in memory where there is such a place: a run waits for its disk."""
    place = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as folder:
        yield Path(folder)
