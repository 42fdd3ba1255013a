"""Texts from files and from standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from autorubric.errors import Fault, FileError


def read_input(file: Path | None) -> str:
    """The text of a file; of standard input where it is None or `-`.

    Raises:
        FileError: It is no UTF-8 text.
        OSError: It cannot be read.
    """
    if file is not None and str(file) != "-":
        source, raw = str(file), file.read_bytes()
    else:
        source, raw = "standard input", sys.stdin.buffer.read()
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(source, [Fault(path="", message=f"this is no UTF-8 text: {error}")]) from None
