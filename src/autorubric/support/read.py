"""Reading of YAML, JSON, TOML and JSON lines into data with line numbers."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import IO, Any, Final, TypeVar

from autorubric.errors import ArgumentError, Fault, FileError, MissingDependencyError
from autorubric.support.json_text import json_places, parse_json
from autorubric.support.objects import Json, is_whole
from autorubric.support.reading_errors import MAX_DEPTH, Faults, FilePath, SyntaxFault, nearest_key, path_text

MAX_BYTES: Final = 1 << 30
"""The largest file that is read whole, in bytes: 1 GiB."""

MAX_LINE_BYTES: Final = 1 << 26
"""The longest line of JSON lines, and the longest single text to judge, in bytes: 64 MiB."""

FormatT = TypeVar("FormatT")

_LINE_BUFFER: Final = 1 << 16
"""Bytes read at a time; with Python's default, a line of text would seldom be in one piece."""

TEXT_FORMATS: Final = {".yaml": "yaml", ".yml": "yaml", ".json": "json", ".toml": "toml", ".jsonl": "jsonl"}
"""Formats of structured text by suffix."""

_SPREADSHEETS: Final = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")

# Dotted keys; the memory of the TOML library grows with the square of their number.
_DOTTED: Final = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+)++""")
_LONE: Final = re.compile("[\ud800-\udfff]")
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]|\\U0000[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Data read from a structured text."""

    data: Json  # the data; for JSON lines, a list with one entry per line
    source: str
    # A function that returns the line of a path in the data, or of its nearest ancestor; it returns None if
    # the format has no line numbers.
    line_of: Callable[[FilePath], int | None] = lambda path: None

    def faults(self) -> Faults:
        """Return an empty collection for errors in this document."""
        return Faults(self.source, self.line_of)


def read_structured(
    path: str | Path, *, suffixes: Mapping[str, str] = TEXT_FORMATS, error: type[FileError] = FileError
) -> Document:
    """Return the document in a file; the suffix determines the format."""
    form = format_of(path, suffixes=suffixes, error=error)
    return parse_structured(read_text(path, error=error), form, source=str(path), error=error)


def format_of(
    path: str | Path, *, suffixes: Mapping[str, FormatT], error: type[FileError] = FileError
) -> FormatT:
    """Return the format that a file's suffix stands for."""
    suffix = Path(path).suffix.lower()
    if suffix in suffixes:
        return suffixes[suffix]
    if suffix in _SPREADSHEETS:
        raise error.whole(path, f"spreadsheets ({suffix}) are not supported; save the file as CSV (UTF-8)")
    message = f"suffix {suffix!r} is not supported"
    raise error.whole(path, f"{message}; supported: {', '.join(suffixes)}")


def read_text(path: str | Path, *, error: type[FileError] = FileError) -> str:
    """Return the text of a UTF-8 file, without a byte order mark."""
    with read_errors_as(path, error), Path(path).open("rb") as file:
        return read_bounded(file, str(path), error=error).decode("utf-8-sig")


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def bounded_lines(path: str | Path, *, error: type[FileError] = FileError) -> Iterator[bytes]:
    """Yield the lines of a regular file, including blank lines, with their line breaks."""
    mode = Path(path).stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        what = "the path is a pipe or a device, not a regular file; write its content to a file first"
        raise error.whole(path, what)
    with Path(path).open("rb", buffering=_LINE_BUFFER) as file:
        for number in count(1):
            line = file.readline(MAX_LINE_BYTES + 1)
            if not line:
                return
            if len(line) > MAX_LINE_BYTES:
                what = f"the line has more than {MAX_LINE_BYTES:,} bytes; put each record on its own line"
                raise error.whole(path, what, number)
            yield line


def read_bounded(
    file: IO[bytes], source: str, *, most: int = MAX_BYTES, error: type[FileError] = FileError
) -> bytes:
    """Return the content of a file of at most `most` bytes."""
    try:
        found = os.fstat(file.fileno())
        size = found.st_size if stat.S_ISREG(found.st_mode) else 0
    except OSError:
        # A stream in memory has no descriptor.
        size = 0
    # A pipe has no size, and a regular file may grow.
    held = file.read(most + 1) if size <= most else b""
    if max(size, len(held)) > most:
        given = f"the file has {size:,} bytes" if size > most else f"the file has more than {most:,} bytes"
        what = f"the limit for this file is {most:,} bytes; split the file"
        if most == MAX_BYTES:
            what += ", or stream a dataset from JSON lines or Parquet (RubricDataset.stream)"
        raise error.whole(source, f"{given}; {what}")
    return held


@contextmanager
def read_errors_as(path: str | Path, error: type[FileError]) -> Iterator[None]:
    """Convert errors while opening and decoding a file into errors of the class `error`."""
    try:
        yield
    except FileNotFoundError:
        raise error.whole(path, "file not found") from None
    except IsADirectoryError:
        raise error.whole(path, "this is a folder; pass a file") from None
    except UnicodeDecodeError as fault:
        line = fault.object.count(b"\n", 0, fault.start) + 1
        wrong = f"byte 0x{fault.object[fault.start]:02x} at position {fault.start}"
        raise error.whole(path, f"the file is not UTF-8: {wrong}; save it as UTF-8", line) from None
    except FileError:
        raise
    # A path with a NUL character is a ValueError.
    except (OSError, ValueError) as fault:
        raise error.whole(path, f"the file cannot be read: {fault}") from None


def parse_structured(
    text: str, form: str, *, source: str = "(text)", error: type[FileError] = FileError
) -> Document:
    """Parse a structured text into a document."""
    if not text.strip():
        raise error.whole(source, "the content is empty")
    try:
        document = _PARSERS[form](text, source)
        _check_depth(document.data)
        _check_characters(text, document.data, document.line_of)
    except SyntaxFault as fault:
        found = [Fault(path=path_text(f.path), message=f.message, line=f.line) for f in (fault, *fault.more)]
        raise error(source, found) from None
    except RecursionError:
        raise error.whole(source, f"the data is nested deeper than {MAX_DEPTH} levels") from None
    return document


def _check_depth(data: Json) -> None:
    layer: list[Any] = [[data]]
    depth = -1
    # The lists and mappings of a level, without empty ones, whose elements would be a level deeper.
    while layer:
        depth += 1
        if depth > MAX_DEPTH:
            raise SyntaxFault(f"the data is nested deeper than {MAX_DEPTH} levels")
        layer = [
            child
            for held in layer
            for child in (held.values() if isinstance(held, dict) else held)
            if child and isinstance(child, (dict, list))
        ]


def _check_characters(
    text: str, data: Json, line_of: Callable[[FilePath], int | None] = lambda path: None
) -> None:
    if not _SURROGATE.search(text) or (path := _surrogate_path(data, ())) is None:
        return
    what = r"the string contains an unpaired surrogate (\ud800 to \udfff), half of a character; replace it"
    raise SyntaxFault(what, line_of(path), path)


def _surrogate_path(data: Json, path: FilePath) -> FilePath | None:
    """Return the path of the first string that has no UTF-8 encoding, as a value or a key."""
    if isinstance(data, str):
        return path if _LONE.search(data) else None
    is_list = isinstance(data, list | tuple)
    parts = data.items() if isinstance(data, dict) else enumerate(data) if is_list else ()
    found = (
        (*path, key) if _LONE.search(str(key)) else _surrogate_path(one, (*path, key)) for key, one in parts
    )
    return next((one for one in found if one is not None), None)


def _yaml_document(text: str, source: str) -> Document:
    # Imported late, here and below: most processes do not use YAML, and its parser is slow to load.
    from autorubric.support.yaml_text import node_line, parse_yaml

    data, root = parse_yaml(text)
    if root is None:
        raise SyntaxFault("the content is empty")
    return Document(data=data, source=source, line_of=lambda path: node_line(root, path))


def _json_document(text: str, source: str) -> Document:
    return Document(data=parse_json(text), source=source, line_of=_json_lines(text))


def _json_lines(text: str) -> Callable[[FilePath], int | None]:
    # Only errors need lines, so the text is scanned for them only then.
    lines = cache(lambda: dict(json_places(text)))

    def line_of(path: FilePath) -> int | None:
        while path and path not in lines():
            path = path[:-1]
        return lines().get(path)

    return line_of


def _toml_document(text: str, source: str) -> Document:
    for dotted in _DOTTED.finditer(text):
        if dotted[0].count(".") > MAX_DEPTH:
            line = text.count("\n", 0, dotted.start()) + 1
            raise SyntaxFault(
                f"the data is nested deeper than {MAX_DEPTH} levels, or a dotted key has more parts", line
            )
    # Imported late, since few files are TOML and its patterns take long to compile.
    import tomllib

    try:
        data = tomllib.loads(text)
        # TOML has dates and infinities, which rubrics and datasets do not have.
        json.dumps(data, allow_nan=False)
    except tomllib.TOMLDecodeError as fault:
        raise SyntaxFault(f"invalid TOML: {fault}") from None
    except TypeError as fault:
        raise SyntaxFault(f"{fault}; quote dates and times") from None
    except ValueError as fault:
        raise SyntaxFault(f"the file contains an unsupported number: {fault}") from None
    return Document(data=data, source=source)


def _jsonl_document(text: str, source: str) -> Document:
    # Not `splitlines`: a JSON string may contain U+2028 and similar characters unescaped.
    numbered = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    rows, faults = [], []
    for number, line in numbered:
        try:
            rows.append(parse_json(line, number))
        except SyntaxFault as fault:
            faults.append(fault)
    if faults:
        raise SyntaxFault(faults[0].message, faults[0].line, faults[0].path, faults[1:])
    lines = [number for number, _ in numbered]

    def line_of(path: FilePath) -> int | None:
        return lines[path[0]] if path and isinstance(path[0], int) else None

    return Document(data=rows, source=source, line_of=line_of)


def parse_line(text: str, number: int) -> Json:
    """Return the data of one line of a JSON lines file."""
    try:
        data = parse_json(text, number)
        # Each level begins with a bracket.
        if text.count("{") + text.count("[") > MAX_DEPTH:
            _check_depth(data)
        _check_characters(text, data)
    except SyntaxFault as fault:
        raise SyntaxFault(fault.message, fault.line or number, fault.path) from None
    except RecursionError:
        raise SyntaxFault(f"the data is nested deeper than {MAX_DEPTH} levels", number) from None
    return data


_PARSERS: Final[dict[str, Callable[[str, str], Document]]] = {
    "yaml": _yaml_document,
    "json": _json_document,
    "toml": _toml_document,
    "jsonl": _jsonl_document,
}


def dump_structured(data: Json, form: str) -> str:
    """Serialize data as `yaml`, `json` or `toml` text that ends with a line break."""
    match form:
        case "yaml":
            return _dump_yaml(data)
        case "toml":
            return _dump_toml(data)
        case "json":
            return json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
        case _:
            raise ArgumentError(f"unknown format {form!r}; {nearest_key(form, ('yaml', 'json', 'toml'))}")


def _dump_yaml(data: Json) -> str:
    from autorubric.support.yaml_text import dump_yaml

    text = dump_yaml(data)
    try:
        # The YAML library writes characters that it cannot read back.
        _check_characters(text, data)
    except SyntaxFault as fault:
        raise ArgumentError(f"the data cannot be written as YAML: {fault}") from None
    return text


def _dump_toml(data: Json) -> str:
    try:
        import tomli_w

        return tomli_w.dumps(data)
    except TypeError as fault:
        raise ArgumentError(f"the data cannot be written as TOML: {fault}; use YAML or JSON") from None


def text_or_path(given: str | Path, form: str) -> Path | None:
    """Return the path that an argument is, a `Path` or one line that ends in a suffix; None for a text."""
    if isinstance(given, Path):
        return given
    suffix = Path(given).suffix.lower() if "\n" not in given else ""
    return Path(given) if TEXT_FORMATS.get(suffix) == form else None


def format_fault(given: Json, newest: int) -> str | None:
    """Return an error message for a file's `format` number; None if this version can read the format."""
    if not is_whole(given) or given < 1:
        return f"'format' must be a positive integer (at most {newest}), or be omitted; got {given!r}"
    if given > newest:
        return f"format {given} is newer than this version supports ({newest}); upgrade autorubric"
    return None


def load_pyarrow() -> Any:
    """Return the module `pyarrow`, with `pyarrow.parquet`."""
    try:
        import pyarrow
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise MissingDependencyError(
            "Parquet files need pyarrow, which is not installed: pip install pyarrow"
        ) from None
    return pyarrow
