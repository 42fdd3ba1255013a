"""Extracts code from a model's text."""

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
    """Return the first fenced block of a text, without its fences; the whole text if there is none.

    A block that is not closed extends to the end of the text. Nothing is executed.

    Args:
        text: The model's text.
        language: Selects the first block in this language, such as `"python"`, or else the first block
            without a language, or else the whole text. None selects the first block in any language.
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
    # Other characters that Python takes for line ends, as a form feed, may stand within a line of code.
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
    """Return the indentation width, the fence and the text after it; None if the line opens no block."""
    found = _FENCE.fullmatch(line)
    # A line with backticks behind the fence is inline code.
    if found is None or (found[2][0] == "`" and "`" in found[3]):
        return None
    return len(found[1]), found[2], found[3]


def _closes(line: str, fence: str, indent: int) -> bool:
    mark = line.strip()
    # One that is indented further, as in a docstring, is code.
    near = _blanks(line) <= indent + 3
    return near and len(mark) >= len(fence) and not mark.strip(fence[0])


def _without(line: str, indent: int) -> str:
    """Return a line without the indentation of its block, for example inside a list."""
    return line[min(indent, _blanks(line)) :]


def _blanks(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _canonical(language: str) -> str:
    name = language.strip("{}.").casefold()
    return _SAME.get(name, name)
