"""Extraction of code blocks from a model's response."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

_FENCE: Final = re.compile(r"([ \t]*)(`{3,}|~{3,})(.*)")
_LINE_END: Final = re.compile(r"\r\n|\n|\r")
_SAME: Final[Mapping[str, str]] = {
    "py": "python",
    "python3": "python",
    "js": "javascript",
    "ts": "typescript",
    "yml": "yaml",
    "c++": "cpp",
    "sh": "bash",
}


class _Block(NamedTuple):
    language: str
    code: str


def extract_code(text: str, language: str | None = None) -> str:
    """Return the first fenced code block without its fences, or the whole text if there is no block.

    An unclosed block extends to the end of the text. Nothing is executed.

    Args:
        text: The model's response.
        language: Language of the block to return, such as `"python"`. If there is no such block, the first
            block without a language is returned, or else the whole text. None accepts any language.
    """
    blocks = _blocks(text)
    if language is None:
        first = next(blocks, None)
        return text if first is None else first.code
    wanted, unnamed = _canonical(language), None
    for block in blocks:
        if block.language == wanted:
            return block.code
        if not block.language and unnamed is None:
            unnamed = block.code
    return text if unnamed is None else unnamed


def _blocks(text: str) -> Iterator[_Block]:
    # Other characters that `splitlines` treats as line ends, such as form feeds, may occur in a line.
    lines = iter(_LINE_END.split(text))
    for line in lines:
        opened = _opening(line)
        if opened is None:
            continue
        indent, fence, told = opened
        code = []
        for inner in lines:
            if _closes(inner, fence, indent):
                break
            code.append(_without(inner, indent))
        words = told.split()
        yield _Block(language=_canonical(words[0]) if words else "", code="\n".join(code))


def _opening(line: str) -> tuple[int, str, str] | None:
    """Return the indentation width, the fence and the text after it; None if no block starts here."""
    found = _FENCE.fullmatch(line)
    # A line with more backticks after the fence is inline code.
    if found is None or (found[2][0] == "`" and "`" in found[3]):
        return None
    return len(found[1]), found[2], found[3]


def _closes(line: str, fence: str, indent: int) -> bool:
    mark = line.strip()
    # A fence that is indented further, for example in a docstring, is part of the code.
    near = _blanks(line) <= indent + 3
    return near and len(mark) >= len(fence) and not mark.strip(fence[0])


def _without(line: str, indent: int) -> str:
    """Strip the block's indentation from a line, for example inside a list."""
    return line[min(indent, _blanks(line)) :]


def _blanks(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _canonical(language: str) -> str:
    name = language.strip("{}.").casefold()
    return _SAME.get(name, name)
