"""CSV files as rows with their lines."""

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

# One field may hold a whole submission; the library's own bound of 128 KiB is a setting of the process.
_FIELD_LIMIT: Final = 2**31 - 1
_LONGEST_HEAD: Final = 100_000
_DELIMITERS: Final = ",;\t|"
_SNIFFED_ROWS: Final = 10
_QUOTED: Final = re.compile(r'"[^"]*"')
_limit_lock = threading.Lock()


class CsvRow(NamedTuple):
    """One row.

    Attributes:
        line: The line of the file on which it begins.
        cells: Texts by column; empty where the cell is.
    """

    line: int
    cells: dict[str, str]


class CsvTable(NamedTuple):
    """A table with a head."""

    columns: list[str]
    rows: list[CsvRow]


def read_csv(path: str | Path) -> CsvTable:
    """Return the rows of a CSV file whose first line names the columns.

    Columns are separated by commas, semicolons, tabs or vertical bars: by the one that divides the first
    rows into equally many cells, the most of them; commas if none does.

    Raises:
        DatasetError: If the file cannot be read, columns repeat, or rows are longer or shorter than the head.
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
                faults.add((line,), f"the row has {len(cells)} cells; the header names {len(columns)}")
            line = reader.line_num + 1
    except csv.Error as error:
        faults.add((line,), f"invalid CSV: {error}")
    if not columns:
        faults.add((), "it is empty; the first line names the columns")
    for column in sorted(column for column, count in Counter(columns).items() if count > 1):
        faults.add((), f"the column {column!r} appears twice; names must be unique")
    faults.raise_as(DatasetError)
    return CsvTable(columns, rows)


def delimiter_of(text: str) -> str:
    """Return the character that separates the columns, as `read_csv` says."""
    head = _QUOTED.sub("", text[:_LONGEST_HEAD]).split("\n", 1)[0]
    found = [one for one in _DELIMITERS if one in head]
    if len(found) < 2:
        return found[0] if found else ","
    return max(found, key=lambda one: _even_width(text, one))


def _even_width(text: str, delimiter: str) -> int:
    """Return the cells of the first rows; 0 if they differ in number."""
    reader = csv.reader(io.StringIO(text[:_LONGEST_HEAD], newline=""), delimiter=delimiter)
    try:
        widths = {len(cells) for cells in islice(reader, _SNIFFED_ROWS) if cells}
    except csv.Error:
        return 0
    return widths.pop() if len(widths) == 1 else 0


def demand_columns(columns: Sequence[str], needed: Sequence[str], faults: Faults) -> None:
    """Note the columns that are needed and missing."""
    for column in needed:
        if column not in columns:
            faults.add((), f"there is no column {column!r}; in its place, {nearest_key(column, columns)}")


def write_csv(columns: Sequence[str], rows: Iterable[Mapping[str, str | None]]) -> str:
    """Return the text of a CSV file with these rows; None becomes an empty cell."""
    buffer = io.StringIO(newline="")
    writer = csv.DictWriter(buffer, columns, restval="")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()
