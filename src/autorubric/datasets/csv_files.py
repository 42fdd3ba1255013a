"""Reading CSV files into rows with line numbers, writing them, and replacing single cells."""

from __future__ import annotations

import csv
import io
import re
import threading
import warnings
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from autorubric.errors import ArgumentError, DatasetError
from autorubric.support.read import read_bounded, read_errors_as
from autorubric.support.reading_errors import Faults

CSV_SUFFIXES: Final = (".csv", ".tsv")
"""Suffixes of tables as text."""

# A field may hold a whole submission; the default limit of the csv module, 128 KiB, applies process-wide.
_FIELD_LIMIT: Final = 2**31 - 1
_LONGEST_HEAD: Final = 100_000
_DELIMITERS: Final = ",;\t|"
_SNIFFED_ROWS: Final = 10
_SEPARATOR: Final = re.compile(r"sep=([,;\t|])\r?\n", re.IGNORECASE)
_QUOTED: Final = re.compile(r'"[^"]*"')
_limit_lock = threading.Lock()


class CsvTable(NamedTuple):
    """A table with column names and rows."""

    columns: list[str]
    lines: list[int]  # line of each row
    cells: list[list[str]]  # cells of each row; cells after the last column are empty
    repeated: dict[str, str]
    n_head: int
    delimiter: str
    text: str  # decoded text of the file, without its byte order mark
    is_quoted: bool = True
    encoding: str = "utf-8"

    @property
    def rows(self) -> Iterator[tuple[int, dict[str, str]]]:
        """Line and cells of each row, by column name."""
        for line, cells in zip(self.lines, self.cells, strict=True):
            yield line, dict(zip(self.columns, cells, strict=False))


def read_csv(path: str | Path) -> CsvTable:
    """Read a CSV or TSV file whose first line, or first line after `sep=`, contains the column names."""
    text, encoding = _decode(path)
    marked = _SEPARATOR.match(text)
    delimiter = "\t" if Path(path).suffix.lower() == ".tsv" else _delimiter_of(text)
    faults = Faults.by_line(str(path), first=1)
    with _limit_lock:
        before = csv.field_size_limit(_FIELD_LIMIT)
        try:
            table = _table(text, marked[1] if marked else delimiter, faults, is_marked=marked is not None)
        finally:
            csv.field_size_limit(before)
    if table.is_quoted:
        faults.raise_as(DatasetError)
    else:
        warnings.warn(f"{path}: quotation marks do not enclose cells, so they are read as text", stacklevel=2)
    return table._replace(encoding=encoding)


def _decode(path: str | Path) -> tuple[str, str]:
    """Return the text of a file and its encoding."""
    with read_errors_as(path, DatasetError):
        with Path(path).open("rb") as file:
            raw = read_bounded(file, str(path), error=DatasetError)
        if raw.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            return raw.decode("utf-16"), "utf-16"
        try:
            return raw.decode("utf-8-sig"), "utf-8-sig" if raw.startswith(BOM_UTF8) else "utf-8"
        except UnicodeDecodeError as error:
            text = raw.decode("cp1252")
            line = raw.count(b"\n", 0, error.start) + 1
            wrong = f"{path} (line {line}): byte 0x{raw[error.start]:02x} is not UTF-8"
            what = "reading the file as Windows-1252. If characters look wrong, save it as UTF-8"
            warnings.warn(f"{wrong}; {what}", stacklevel=2)
            return text, "cp1252"


def _table(text: str, delimiter: str, faults: Faults, *, is_marked: bool, is_quoted: bool = True) -> CsvTable:
    reader = csv.reader(
        io.StringIO(text, newline=""),
        strict=True,
        delimiter=delimiter,
        quoting=csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE,
    )
    n_head = 0
    columns: list[str] = []
    repeated: dict[str, str] = {}
    lines: list[int] = []
    rows: list[list[str]] = []
    line = 1
    try:
        for cells in reader:
            if not columns:
                n_head += 1
                if n_head > is_marked:
                    names = [name or f"column {place}" for place, name in enumerate(cells, 1)]
                    columns, repeated = make_distinct(names)
            elif any(map(str.strip, cells)):
                # Spreadsheets add empty cells at the end of rows.
                more = len(cells) - len(columns)
                if more < 0 or (more and any(map(str.strip, cells[-more:]))):
                    faults.add((line,), f"the row has {len(cells)} cells, but the header has {len(columns)}")
                lines.append(line)
                rows.append(cells)
            line = reader.line_num + 1
    except csv.Error as error:
        # In many files with tabs, a quotation mark is a character like any other.
        literal = Faults(faults.source)
        if delimiter == "\t" and is_quoted:
            found = _table(text, delimiter, literal, is_marked=is_marked, is_quoted=False)
            if not literal:
                return found
        advice = (
            'A cell that contains quotation marks must be in quotation marks, and double them: "a ""b"" c"'
        )
        faults.add((line,), f"invalid CSV: {error}. {advice}")
    if not columns:
        faults.add((), "the file is empty; the first line must contain the column names")
    return CsvTable(columns, lines, rows, repeated, n_head, delimiter, text, is_quoted)


def make_distinct(names: Iterable[str], taken: Iterable[str] = ()) -> tuple[list[str], dict[str, str]]:
    """Return names that differ, such as `note, note_2` for `note, note`, and the given names of new ones."""
    given = list(names)
    used, reserved, counts = {*taken}, {*given}, Counter[str]()
    found, changed = [], {}
    for first in given:
        name = first
        while name in used or (name != first and name in reserved):
            counts[first] += 1
            name = f"{first}_{counts[first] + 1}"
        if name != first:
            changed[name] = first
        used.add(name)
        found.append(name)
    return found, changed


def _delimiter_of(text: str) -> str:
    """Return the delimiter in the header; of several, the one that yields the most cells."""
    head = _QUOTED.sub("", text[:_LONGEST_HEAD]).split("\n", 1)[0]
    found = [one for one in _DELIMITERS if one in head]
    if len(found) < 2:
        return found[0] if found else ","
    return max(found, key=lambda one: _even_width(text, one))


def _even_width(text: str, delimiter: str) -> int:
    """Return the number of cells in the header; 0 if most of the first rows have fewer or more texts."""
    reader = csv.reader(io.StringIO(text[:_LONGEST_HEAD], newline=""), delimiter=delimiter)
    try:
        head, *rows = [cells for cells in islice(reader, _SNIFFED_ROWS) if cells]
    except csv.Error:
        return 0
    fitting = [cells for cells in rows if len(cells) >= len(head) and not any(cells[len(head) :])]
    return len(head) if 2 * len(fitting) >= len(rows) else 0


def repeated_column(column: str) -> str:
    """Return the error message for a column that is read and appears more than once."""
    return f"the column {column!r} appears twice; rename one of the two"


def write_csv(columns: Sequence[str], rows: Iterable[Mapping[str, str | None]], delimiter: str = ",") -> str:
    """Return these rows as CSV text; None becomes an empty cell."""
    buffer = io.StringIO(newline="")
    writer = csv.DictWriter(buffer, columns, restval="", delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def replace_cells(table: CsvTable, cells: Mapping[int, Mapping[str, str]]) -> str:
    """Return a table's text with new cells, by row position and column name; missing columns are added."""
    delimiter, quoted, columns = table.delimiter, table.is_quoted, list(table.columns)
    lines = list(_raw_rows(table.text, delimiter, is_quoted=quoted))
    head = lines[table.n_head - 1]
    blank = {"", '""'} if quoted else {""}
    rows = lines[table.n_head :]
    rows = [row for row in rows if any("".join(cell.split()) not in blank for cell, _ in row)]
    for place, given in cells.items():
        for column, value in given.items():
            if column not in columns:
                columns.append(column)
                # Some rows have more cells than the header; these are empty.
                for row in (one for one in (head, *rows) if len(one) < len(columns)):
                    row.append(["", row[-1][1]])
                    row[-2][1] = delimiter
                head[-1][0] = _raw(column, head[0][0], delimiter, is_quoted=quoted)
            at = columns.index(column)
            rows[place][at][0] = _raw(value, rows[place][at][0], delimiter, is_quoted=quoted)
    # Without the byte order mark, Excel would use another encoding than UTF-8.
    mark = "" if table.encoding == "utf-8" else "\ufeff"
    return mark + "".join(part for row in lines for cell in row for part in cell)


def _raw_rows(text: str, delimiter: str, *, is_quoted: bool) -> Iterator[list[list[str]]]:
    """Yield the lines of a valid CSV text; each cell is a list of its raw text and the delimiter after it."""
    quoted = r'"(?:[^"]++|"")*+"|' if is_quoted else ""
    cell = rf"({quoted}[^{re.escape(delimiter)}\r\n]*)({re.escape(delimiter)}|\r\n|\r|\n|\Z)"
    row = []
    for found in re.finditer(cell, text):
        row.append(list(found.groups()))
        if found[2] != delimiter:
            yield row
            row = []


def _raw(value: str, like: str, delimiter: str, *, is_quoted: bool) -> str:
    """Return the raw text of a cell, with quotes if they are needed or the cell `like` has them."""
    if not is_quoted:
        if {*value} & {*"\r\n", delimiter}:
            message = f"label not saved: {value!r} has a tab or line break, and the file has no quoted cells"
            raise ArgumentError(message)
        return value
    needed = like.startswith('"') or {*value} & {*'"\r\n', delimiter}
    return '"' + value.replace('"', '""') + '"' if needed else value
