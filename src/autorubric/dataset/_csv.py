"""Reading CSV files into rows with line numbers, and writing them."""

from __future__ import annotations

import csv
import io
import re
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from autorubric._files import Faults, nearest_key, read_text
from autorubric.errors import DatasetError

# A field may hold a whole submission; the default limit of the csv module, 128 KiB, applies process-wide.
_FIELD_LIMIT: Final = 2**31 - 1
_LONGEST_HEAD: Final = 100_000
_DELIMITERS: Final = ",;\t|"
_SNIFFED_ROWS: Final = 10
_QUOTED: Final = re.compile(r'"[^"]*"')
_limit_lock = threading.Lock()


class CsvRow(NamedTuple):
    """One row of a CSV file.

    Attributes:
        line: Line of the file on which the row begins, from 1.
        cells: Cell text by column name; empty for an empty cell.
    """

    line: int
    cells: dict[str, str]


class CsvTable(NamedTuple):
    """A table with column names and rows."""

    columns: list[str]
    rows: list[CsvRow]


def read_csv(path: str | Path) -> CsvTable:
    """Read a CSV file whose first line contains the column names.

    The delimiter is a comma, semicolon, tab or vertical bar. If the header contains several of these, the one
    that divides the first rows into the most cells, with the same number in each row, is used.

    Raises:
        DatasetError: If the file cannot be read, column names repeat, or a row does not match the header.
    """
    text = read_text(path, error=DatasetError)
    with _limit_lock:
        before = csv.field_size_limit(_FIELD_LIMIT)
        try:
            return _table(text, Faults(str(path), lambda at: at[0] if at and isinstance(at[0], int) else 1))
        finally:
            csv.field_size_limit(before)


def _table(text: str, faults: Faults) -> CsvTable:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter_of(text))
    columns: list[str] = []
    rows: list[CsvRow] = []
    line = 1
    try:
        for cells in reader:
            if not columns:
                columns = [name or f"column {place}" for place, name in enumerate(cells, 1)]
            elif len(cells) == len(columns):
                rows.append(CsvRow(line, dict(zip(columns, cells, strict=True))))
            elif cells:
                faults.add((line,), f"the row has {len(cells)} cells, but the header has {len(columns)}")
            line = reader.line_num + 1
    except csv.Error as error:
        faults.add((line,), f"invalid CSV: {error}")
    if not columns:
        faults.add((), "the file is empty; the first line must contain the column names")
    for column in sorted(column for column, count in Counter(columns).items() if count > 1):
        faults.add((), f"the column {column!r} appears twice; names must be unique")
    faults.raise_as(DatasetError)
    return CsvTable(columns, rows)


def delimiter_of(text: str) -> str:
    """Detect the character that separates the columns; see `read_csv`."""
    head = _QUOTED.sub("", text[:_LONGEST_HEAD]).split("\n", 1)[0]
    found = [one for one in _DELIMITERS if one in head]
    if len(found) < 2:
        return found[0] if found else ","
    return max(found, key=lambda one: _even_width(text, one))


def _even_width(text: str, delimiter: str) -> int:
    """Return the number of cells in each of the first rows; 0 if the rows differ in length."""
    reader = csv.reader(io.StringIO(text[:_LONGEST_HEAD], newline=""), delimiter=delimiter)
    try:
        widths = {len(cells) for cells in islice(reader, _SNIFFED_ROWS) if cells}
    except csv.Error:
        return 0
    return widths.pop() if len(widths) == 1 else 0


def demand_columns(columns: Sequence[str], needed: Sequence[str], faults: Faults) -> None:
    """Report required columns that are missing."""
    for column in needed:
        if column not in columns:
            faults.add((), f"column {column!r} not found; {nearest_key(column, columns)}")


def write_csv(columns: Sequence[str], rows: Iterable[Mapping[str, str | None]]) -> str:
    """Return these rows as CSV text; None becomes an empty cell."""
    buffer = io.StringIO(newline="")
    writer = csv.DictWriter(buffer, columns, restval="")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()
