"""Atomic writing of files, and file locks that the operating system releases after a crash."""

from __future__ import annotations

import os
import shutil
import sys
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO

from autorubric.errors import ArgumentError, FileError

_BEGINS, _ENDS = ".autorubric-", ".tmp"


def remove_abandoned(folder: Path) -> None:
    """Remove the temporary files of killed writers, which are no longer locked, from a folder."""
    for path in folder.glob(f"{_BEGINS}*{_ENDS}"):
        with suppress(OSError), path.open("ab") as file:
            if _lock(file):
                _close_on_windows(file)
                path.unlink()


def write_text_atomic(path: str | Path, text: str) -> None:
    """Write `text` to `path` as UTF-8, replacing the file atomically."""
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ArgumentError(
            f"{path}: the text contains an unpaired surrogate, {text[error.start]!r}, which cannot be "
            "written as UTF-8"
        ) from None
    write_bytes_atomic(path, content)


def write_bytes_atomic(path: str | Path, content: bytes) -> None:
    """Write `content` to `path`, replacing the file atomically."""
    write_parts_atomic(path, (content,))


def write_parts_atomic(path: str | Path, parts: Iterable[bytes | memoryview]) -> None:
    """Write parts one after the other to `path`, replacing the file atomically."""
    # A link stays a link: the file that it points to is replaced.
    target = Path(os.path.realpath(path))
    try:
        remove_abandoned(target.parent)
        _replace(target, parts)
    except OSError as error:
        reason = "folder not found" if not target.parent.is_dir() else error.strerror or str(error)
        raise FileError.whole(path, f"the file cannot be written: {reason}") from None


def _replace(target: Path, parts: Iterable[bytes | memoryview]) -> None:
    with _open_temporary(target) as file:
        temporary = Path(file.name)
        try:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
            _close_on_windows(file)
            if target.is_file():
                shutil.copymode(target, temporary)
            temporary.replace(target)
        finally:
            _close_on_windows(file)
            temporary.unlink(missing_ok=True)


def _open_temporary(target: Path) -> IO[bytes]:
    """Return a new, locked file in the folder of `target`."""
    while True:
        file = target.with_name(f"{_BEGINS}{uuid.uuid4().hex}{_ENDS}").open("xb")
        is_kept = True
        # Some file systems have no locks, so that abandoned files stay there.
        with suppress(OSError):
            is_kept = _lock(file) and Path(file.name).exists()
        if is_kept:
            return file
        file.close()  # another writer has just removed it


class FileLock:
    """An exclusive, non-reentrant file lock."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None

    def acquire(self) -> bool:
        """Try to acquire the lock, and return whether it was acquired."""
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
                # For information only: the lock is valid even if the process id cannot be written.
                with suppress(OSError):
                    file.truncate(0)
                    file.write(str(os.getpid()).encode("ascii"))
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


def _close_on_windows(file: IO[bytes]) -> None:
    """Close a file before it is renamed or removed, which Windows refuses for open files."""
    if sys.platform == "win32":
        file.close()


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
