"""Texts from files and from standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from autorubric.errors import Fault, FileError


def read_input(file: Path | None) -> str:
    """The text of a file; of standard input where it is None or `-`.

    Raises:
        FileError: It is no UTF-8 text, or has more than 64 MiB.
        OSError: It cannot be read.
    """
    # Late, since the help of all commands imports this file.
    from autorubric._files import MAX_LINE_BYTES, read_bounded

    if file is not None and str(file) != "-":
        source = str(file)
        with file.open("rb") as opened:
            raw = read_bounded(opened, source, most=MAX_LINE_BYTES)
    else:
        source = "standard input"
        raw = read_bounded(sys.stdin.buffer, source, most=MAX_LINE_BYTES)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(source, [Fault(path="", message=f"this is not UTF-8 text: {error}")]) from None
