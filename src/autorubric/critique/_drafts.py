"""Reading of drafts from JSON lines, one at a time, with the errors of invalid lines."""

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
"""Maximum number of invalid lines that are listed individually; all are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One draft.

    Attributes:
        id: Id of the draft as a string, by which records are found.
        prompt: The prompt that the draft answers; None if unknown.
        output: The content of the draft, as text or JSON data.
        contract: The result of an automatic check of the output; None if there was no check.
        line: Line number in the file, starting at 1.
        offset: Offset of the line in the file, in bytes.
        written_id: Id of the draft as written in the file, a string or an integer.
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
        """Return the output as text; data is converted to JSON."""
        return text_of(self.output)

    @property
    def digest(self) -> str:
        """Return the SHA-256 digest of prompt, output and contract."""
        return digest_of([self.prompt, self.output, self.contract])


class LineFault(NamedTuple):
    """A line that does not contain a valid draft.

    Attributes:
        line: Line number, starting at 1.
        fault: Description of the error.
        id: Id of the draft; None if it has no valid id.
    """

    line: int
    fault: str
    id: str | None = None


def read_drafts(path: Path) -> Iterator[Draft | LineFault]:
    """Read a file line by line and yield the draft on each line, or the line's error.

    Raises:
        FileError: If the file cannot be read.
    """
    for line in lines_of(path):
        yield draft_of(line)


class Line(NamedTuple):
    """A line of a file, with its number starting at 1, its offset in bytes, and its bytes."""

    number: int
    offset: int
    raw: bytes


def lines_of(path: Path) -> Iterator[Line]:
    """Yield the lines of a file that are not blank.

    Raises:
        FileError: If the file cannot be read or a line is too long.
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
    """Return the SHA-256 digest of a JSON lines file as a hexadecimal string.

    Raises:
        FileError: If the file cannot be read or is empty, because an empty input must not count as passed.
    """
    if next(lines_of(path), None) is None:
        told = "the file is empty; it must contain one JSON object per line"
        raise FileError(str(path), [Fault(path="", message=told)])
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def draft_of(line: Line) -> Draft | LineFault:
    """Return the draft on a line, or its error."""
    try:
        text = line.raw.decode("utf-8-sig")
        # The strict parser also rejects values that could not be written to a file later.
        given = parse_structured(text, "json").data
    except UnicodeDecodeError as error:
        return LineFault(line.number, f"invalid UTF-8: byte 0x{error.object[error.start]:02x}")
    except FileError as error:
        return LineFault(line.number, error.faults[0].message)
    if not isinstance(given, dict):
        return LineFault(line.number, f"a draft must be a JSON object; got {shortened(given)}")
    return _read(given, line)


def _read(given: dict[str, Any], line: Line) -> Draft | LineFault:
    written = given.get("id")
    key = key_of(written)
    if key is None or not key.strip():
        told = "the draft has no id" if written is None else f"the id {shortened(written)} is invalid"
        return LineFault(line.number, f'{told}; "id" must be a non-blank string or an integer')
    if given.get("output") is None:
        return LineFault(line.number, 'the draft has no output; "output" must be text or JSON data', key)
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
    """Return an id as a string; None if it is neither a string nor an integer."""
    if isinstance(given, int) and not isinstance(given, bool):
        return str(given)
    return given if isinstance(given, str) else None


def text_of(value: Json) -> str:
    """Return a string unchanged and other data as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def line_at(path: Path, offset: int) -> Line:
    """Return the line of a file that begins at an offset; its line number is unknown and set to 0."""
    with path.open("rb") as file:
        file.seek(offset)
        return Line(0, offset, file.readline())
