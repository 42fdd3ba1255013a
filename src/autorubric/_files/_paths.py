"""Paths inside a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

Json: TypeAlias = Any
"""Any value that JSON can represent."""

FilePath: TypeAlias = tuple[str | int, ...]
"""Keys and positions from the top of a file down, such as `("criteria", 2, "weight")`."""

MAX_DEPTH: Final = 250
"""Maximum nesting depth of lists and mappings in a file."""

_PLAIN_KEY: Final = re.compile(r"[\w-]+")


class SyntaxFault(Exception):
    """A syntax error in a text, which becomes a `FileError` where the file is known.

    Attributes:
        message: The error message.
        line: Line in the text, from 1; None if unknown.
        path: Path inside the file; empty if unknown.
        more: Further errors in the same text.
    """

    def __init__(
        self, message: str, line: int | None = None, path: FilePath = (), more: Sequence[SyntaxFault] = ()
    ) -> None:
        self.message = message
        self.line = line
        self.path = path
        self.more = tuple(more)
        super().__init__(message)


def path_text(path: FilePath) -> str:
    """Format a path as text, such as `criteria[2].weight`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{step!r}]"
    return text
