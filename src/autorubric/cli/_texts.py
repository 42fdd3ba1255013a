"""Reading of text from files and standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from autorubric.errors import Fault, FileError


def read_input(file: Path | None) -> str:
    """Read text from a file, or from standard input if `file` is None or `-`.

    Raises:
        FileError: If the input is not UTF-8 text, or exceeds 64 MiB.
        OSError: If the input cannot be read.
    """
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
        raise FileError(source, [Fault(path="", message=f"the input is not UTF-8 text: {error}")]) from None
