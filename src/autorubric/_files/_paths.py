"""Paths inside a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

Json: TypeAlias = Any
"""Anything that JSON can carry."""

FilePath: TypeAlias = tuple[str | int, ...]
"""Keys and positions from the top of a file down, as `("criteria", 2, "weight")`."""

MAX_DEPTH: Final = 250
"""How deep lists and mappings may nest in a file."""

_PLAIN_KEY: Final = re.compile(r"[\w-]+")


class SyntaxFault(Exception):
    """A text that is not in its format; becomes a `FileError` where the file is known.

    Attributes:
        message: The error's text.
        line: Line in the text, from 1, where known.
        path: Where inside the file, where known.
        more: Faults found beside it.
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
    """Return the path in words, as `criteria[2].weight`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{step!r}]"
    return text
