"""Atomic writing of files: readers see the old content or the new content, never a part of it."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from autorubric.errors import ArgumentError, Fault, FileError

_BEGINS, _ENDS = ".autorubric-", ".tmp"


def remove_abandoned(folder: Path) -> None:
    """Remove temporary files of killed writers from a folder that no other process is writing to."""
    for file in folder.glob(f"{_BEGINS}*{_ENDS}"):
        with suppress(OSError):
            file.unlink()


def write_text_atomic(path: str | Path, text: str) -> None:
    """Write `text` to `path` as UTF-8, replacing the file atomically.

    Raises:
        FileError: If the folder is missing, or the file cannot be written.
        ArgumentError: If the text contains an unpaired surrogate, which UTF-8 cannot encode.
    """
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ArgumentError(
            f"{path}: the text contains an unpaired surrogate, {text[error.start]!r}, which cannot be "
            "written as UTF-8"
        ) from None
    write_bytes_atomic(path, content)


def write_bytes_atomic(path: str | Path, content: bytes) -> None:
    """Write `content` to `path`, replacing the file atomically.

    Raises:
        FileError: If the folder is missing, or the file cannot be written.
    """
    write_parts_atomic(path, (content,))


def write_parts_atomic(path: str | Path, parts: Iterable[bytes]) -> None:
    """Write parts one after the other to `path`, replacing the file atomically.

    Args:
        path: The file to write; the parts may be read from the same file.
        parts: The content in parts, which need not be in memory at the same time.

    Raises:
        FileError: If the folder is missing, or the file cannot be written.
    """
    # A link stays a link: the file that it points to is replaced.
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f"{_BEGINS}{uuid.uuid4().hex}{_ENDS}")
    try:
        _replace(target, temporary, parts)
    except OSError as error:
        reason = "folder not found" if not target.parent.is_dir() else error.strerror or str(error)
        fault = Fault(path="", message=f"the file cannot be written: {reason}")
        raise FileError(str(path), [fault]) from None
    finally:
        temporary.unlink(missing_ok=True)


def _replace(target: Path, temporary: Path, parts: Iterable[bytes]) -> None:
    with temporary.open("xb") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())
    if target.is_file():
        shutil.copymode(target, temporary)
    temporary.replace(target)
