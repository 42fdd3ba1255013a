"""A file lock that the operating system releases when its process ends, even after a crash."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO


class FileLock:
    """An exclusive, non-reentrant file lock.

    Args:
        path: The lock file; it and its folder are created if missing, and never removed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None

    def acquire(self) -> bool:
        """Try to acquire the lock, and return whether it was acquired.

        Raises:
            OSError: If the file cannot be created, or the file system does not support locks.
        """
        while True:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            try:
                file = self._path.open("ab", buffering=0)
            except FileNotFoundError:
                # Another process removed the folder at the same time.
                continue
            try:
                taken = _lock(file)
            except BaseException:
                file.close()
                raise
            if taken and self._is_there(file):
                self._file = file
                self._sign(file)
                return True
            file.close()
            if not taken:
                return False

    def _is_there(self, file: IO[bytes]) -> bool:
        """Return whether the path still refers to this file, since a lock on a removed file is void."""
        try:
            return os.path.samestat(os.fstat(file.fileno()), self._path.stat())
        except FileNotFoundError:
            return False

    def _sign(self, file: IO[bytes]) -> None:
        # For information only: the lock is valid even if the process id cannot be written.
        with suppress(OSError):
            file.truncate(0)
            file.write(str(os.getpid()).encode("ascii"))

    def holder(self) -> str:
        """Return a description of the process that holds the lock."""
        try:
            pid = self._path.read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError):
            pid = ""
        if not pid.isdigit():
            return "another process"
        return "another run in this process" if int(pid) == os.getpid() else f"another process ({pid})"

    def release(self) -> None:
        """Release the lock, if it is held."""
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
        except BlockingIOError:
            return False
        return True
