"""Drafts from JSON lines, one at a time, with the errors of invalid lines."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from autorubric._files import bounded_lines, parse_structured, shortened
from autorubric.critique._schema import digest_of
from autorubric.errors import Fault, FileError
from autorubric.values import Json

MOST_FAULTS: Final = 1000
"""Faulty lines that are told one by one; all are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One draft.

    Attributes:
        id: Its id as a text, by which records are found.
        prompt: The prompt that it answers; None if unknown.
        output: The draft itself: a text, or JSON data.
        contract: The result of a program's check of the output; None if there was none.
        line: Its line in the file, from 1.
        offset: Where the line begins in the file, in bytes.
        written_id: Its id as its file has it, a text or a whole number.
    """

    id: str
    prompt: Json
    output: Json
    contract: Json = None
    line: int = 0
    offset: int = 0
    written_id: str | int = ""

    def __post_init__(self) -> None:
        if self.written_id == "":
            object.__setattr__(self, "written_id", self.id)

    @property
    def output_text(self) -> str:
        """The output as a text; data as JSON."""
        return text_of(self.output)

    @property
    def digest(self) -> str:
        """The SHA-256 of the prompt, the output and the contract."""
        return digest_of([self.prompt, self.output, self.contract])


class LineFault(NamedTuple):
    """A line that gives no draft.

    Attributes:
        line: The line, from 1.
        fault: What is wrong with it.
        id: The draft's id, if it has one.
    """

    line: int
    fault: str
    id: str | None = None


def read_drafts(path: Path) -> Iterator[Draft | LineFault]:
    """Yield the drafts of a file in order, and the errors of lines in their places; one line at a time.

    Raises:
        FileError: If the file cannot be read.
    """
    for line in lines_of(path):
        yield draft_of(line)


class Line(NamedTuple):
    """A line of a file: its number from 1, where it begins in bytes, and its bytes."""

    number: int
    offset: int
    raw: bytes


def lines_of(path: Path) -> Iterator[Line]:
    """Yield the lines of a file that are not blank.

    Raises:
        FileError: If the file cannot be read, or a line is too long.
    """
    offset = 0
    try:
        for number, raw in enumerate(bounded_lines(path), start=1):
            if raw.strip():
                yield Line(number, offset, raw)
            offset += len(raw)
    except OSError as error:
        raise FileError(
            str(path), [Fault(path="", message=f"cannot be read: {error.strerror or error}")]
        ) from None


def input_digest(path: Path) -> str:
    """Return the SHA-256 of a file of JSON lines, in hexadecimal digits.

    Raises:
        FileError: The file cannot be read, or there is nothing in it: what nobody looked at has not passed.
    """
    if next(lines_of(path), None) is None:
        told = "there is nothing in it; give JSON lines, an object each"
        raise FileError(str(path), [Fault(path="", message=told)])
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def draft_of(line: Line) -> Draft | LineFault:
    """Return the draft on a line, or its error."""
    try:
        text = line.raw.decode("utf-8-sig")
        # With all that it refuses: what no file could hold must not end the pass later.
        given = parse_structured(text, "json").data
    except UnicodeDecodeError as error:
        return LineFault(line.number, f"not UTF-8: byte 0x{error.object[error.start]:02x}")
    except FileError as error:
        return LineFault(line.number, error.faults[0].message)
    if not isinstance(given, dict):
        return LineFault(line.number, f"{shortened(given)} is not a draft; give one object a line")
    return _read(given, line)


def _read(given: dict[str, Any], line: Line) -> Draft | LineFault:
    written = given.get("id")
    key = key_of(written)
    if key is None or not key.strip():
        told = "the draft has no id" if written is None else f"the id {shortened(written)} is not text"
        return LineFault(line.number, f'{told}; give "id", a text that is not blank')
    if given.get("output") is None:
        return LineFault(line.number, 'the draft has no output; give "output", a text or JSON data', key)
    return Draft(
        id=key,
        written_id=written if isinstance(written, int) else key,
        prompt=given.get("prompt"),
        output=given["output"],
        contract=given.get("contract"),
        line=line.number,
        offset=line.offset,
    )


def key_of(given: Json) -> str | None:
    """Return the key of an id, a text or a whole number; None for anything else."""
    if isinstance(given, int) and not isinstance(given, bool):
        return str(given)
    return given if isinstance(given, str) else None


def text_of(value: Json) -> str:
    """Return a text as it is, and other data as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def line_at(path: Path, offset: int) -> Line:
    """Return the line of a file that begins at an offset; its number is not known and is 0."""
    with path.open("rb") as file:
        file.seek(offset)
        return Line(0, offset, file.readline())
