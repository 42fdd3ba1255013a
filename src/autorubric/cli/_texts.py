"""Texts from files and from standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from autorubric.errors import Fault, FileError


def read_input(file: Path | None) -> str:
    """The text of a file; of standard input where it is None or `-`.

    Raises:
        FileError: It is no UTF-8 text, or has more than 1 GiB.
        OSError: It cannot be read.
    """
    # Late, since the help of all commands imports this file.
    from autorubric._files import read_bounded

    if file is not None and str(file) != "-":
        source = str(file)
        with file.open("rb") as opened:
            raw = read_bounded(opened, source)
    else:
        source, raw = "standard input", read_bounded(sys.stdin.buffer, "standard input")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(source, [Fault(path="", message=f"this is no UTF-8 text: {error}")]) from None
