"""A lock on a file that the operating system gives back when its process ends, however it ends."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO


class FileLock:
    """An exclusive lock; not re-entrant.

    Args:
        path: The lock's file; made where it is not there, and left there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None

    def acquire(self) -> bool:
        """Takes the lock; False where another holds it."""
        file = self._path.open("ab")
        if not _lock(file):
            file.close()
            return False
        self._file = file
        return True

    def release(self) -> None:
        """Gives the lock back."""
        if self._file is not None:
            self._file.close()
            self._file = None


if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes]) -> bool:
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _lock(file: IO[bytes]) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
