"""Datasets that are read row by row, and the copy of a dataset in a run folder."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

from autorubric.datasets.fields import guess_fields
from autorubric.datasets.item import DataItem
from autorubric.datasets.lazy import KnownLine, LazyItems, LazyRows, LineRows, ReadRow, line_starts
from autorubric.datasets.read import Contents, DatasetReader, check_labels
from autorubric.datasets.tables import (
    TABLE_COLUMNS,
    Columns,
    TableReader,
    TableRow,
    no_parquet,
    open_parquet,
    parquet_columns,
    reading_parquet,
)
from autorubric.errors import DatasetError, Fault
from autorubric.rubric.rubric import Rubric
from autorubric.support.json_text import parse_json
from autorubric.support.objects import Json
from autorubric.support.read import file_sha256, parse_line
from autorubric.support.reading_errors import Faults, FilePath, SyntaxFault

_ID = b'{"id":"'


class PreviousSnapshot:
    """An earlier copy of a dataset, in which lines of a new copy can be looked up."""

    def __init__(self, lines: Iterator[bytes], count: int, *, is_akin: bool) -> None:
        self.kept = bytearray(count)  # 1 if the new copy contains the item, by position in the earlier copy
        self.is_akin = is_akin
        self._lines = lines
        # Filled at the first line that differs, with about a hundred bytes per line.
        self._elsewhere: dict[bytes, int] | None = None

    def has(self, position: int, line: bytes) -> bool:
        """Return whether the earlier copy has this line of the new copy; an earlier line matches once."""
        if self._elsewhere is None:
            before = next(self._lines, None)
            if line == before:
                self.kept[position] = 1
                return True
            rest = chain([before], self._lines) if before is not None else ()
            self._elsewhere = {_key(at, one): at for at, one in enumerate(rest, position)}
        found = self._elsewhere.pop(_key(position, line), None)
        if found is None:
            return False
        self.kept[found] = 1
        return True


def _key(position: int, line: bytes) -> bytes:
    return sha256(line if line.startswith(_ID) else b"%d %b" % (position, line)).digest()


_BATCH: Final = 128
_encode: Final = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode
_FIRST_ID: Final = re.compile(rb'\{"id":("(?:[^"\\]|\\.)*")')


class StreamedItems(LazyItems):
    """The items of a JSON lines or Parquet file; `as_stored` returns the line of a valid row in a copy."""

    def __init__(
        self,
        path: Path,
        rows: LazyRows,
        read: ReadRow,
        alone: Callable[[], bool],
        as_stored: Callable[[Any], KnownLine | None] = lambda row: None,
    ) -> None:
        super().__init__(rows, read)
        self._path = path
        self._alone = alone
        self._find_stored_line = as_stored

    def copy_lines(self, earlier: PreviousSnapshot | None) -> Iterator[tuple[bytes, Rubric | None]]:
        """Yield the line of each item in a copy, together with the item's own rubric."""

        def known(position: int, row: Any) -> KnownLine | None:
            if earlier is None or not earlier.is_akin:
                return None
            stored = self._find_stored_line(row)
            return stored if stored is not None and earlier.has(position, stored.line) else None

        for position, one in enumerate(self._walk(known)):
            if isinstance(one, bytes):
                yield one, None
                continue
            line = line_of(one.snapshot())
            if earlier is not None:
                earlier.has(position, line)
            yield line, one.rubric

    def source_sha256(self) -> str | None:
        """Return the SHA-256 of the file; None if items refer to rubric files."""
        return file_sha256(self._path) if self._alone() else None


def has_dataset_keys(path: Path) -> bool:
    """Return whether a JSON lines file is in the dataset format, so that no key mapping must be chosen."""
    # What is not a file, such as a pipe, is reported when it is read.
    if not path.is_file():
        return True
    try:
        with path.open("rb") as file:
            first = _parse_row(file.readline())
    except (OSError, SyntaxFault):
        # The error is reported when the file is read.
        return True
    known = {"format", *DataItem.model_fields}
    return not isinstance(first, Mapping) or "format" in first or set(first) <= known


def stream_lines(path: Path, rubric: Rubric | None) -> Contents:
    """Return the dataset in a JSON lines file, whose items are read on access."""
    starts = line_starts(path)
    if not starts:
        raise DatasetError.whole(path, "the file is empty")
    rows = LineRows(path, starts, 0)
    faults = Faults(str(path), lambda at: rows.line_of(0))
    try:
        first = _parse_row(rows[0])
    except SyntaxFault:
        # The error is reported with those of the other items when they are read.
        first = None
    header, header_lines = (first, 1) if isinstance(first, Mapping) and "format" in first else ({}, 0)
    reader = DatasetReader(faults, path.parent)
    shared = reader.shared(header, header_at=(0,), rubric=rubric)
    faults.raise_as(DatasetError)
    # The header's rubric has been read, but rubric files named by items may change unnoticed.
    known = reader.named_files if rubric is None else 0
    rows = LineRows(path, starts, header_lines)

    def read(row: bytes, position: int, faults: Faults) -> DataItem | None:
        try:
            given = _parse_row(row)
        except SyntaxFault as fault:
            faults.add(fault.path, fault.message)
            return None
        reader.faults = faults
        return _item(reader, given, position, rows.place(position), shared.rubric)

    items = StreamedItems(path, rows, read, lambda: reader.named_files == known, _find_stored_line)
    return shared._replace(items=items)


def _parse_row(row: bytes) -> Json:
    try:
        return parse_line(row.decode("utf-8").removeprefix("\ufeff"), 1)
    except UnicodeDecodeError as error:
        raise SyntaxFault(f"not UTF-8: byte 0x{row[error.start]:02x}; save it as UTF-8") from None


def _find_stored_line(row: bytes) -> KnownLine | None:
    try:
        given = parse_json(row.decode("utf-8"))
        # A rubric may be the name of a file, which may have changed.
        if isinstance(given, dict) and "rubric" not in given:
            return KnownLine(line_of(given), given.get("id"))
    except (SyntaxFault, ValueError, RecursionError):
        # The error is reported when the row is read.
        pass
    return None


def _item(
    reader: DatasetReader, given: Json, position: int, at: FilePath, rubric: Rubric | None
) -> DataItem | None:
    item = reader.item(given, at)
    if item is not None:
        check_labels(item, item.id or str(position), rubric, reader.faults, at)
    return item


class _ParquetRows:
    """The rows of a Parquet file, read in batches; accessing an earlier row starts from the beginning."""

    def __init__(self, path: Path, count: int, rows_of: Callable[[Columns, int], Iterator[TableRow]]) -> None:
        self.source = str(path)
        self._count = count
        self._rows_of = rows_of
        self._cursor: Iterator[TableRow] = iter(())
        self._next = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[TableRow]:
        batches, read = open_parquet(self.source).iter_batches(_BATCH), 0
        while True:
            with reading_parquet(self.source):
                batch = next(batches, None)
                cells = batch.to_pydict() if batch is not None else {}
            read += batch.num_rows if batch is not None else 0
            if read > self._count or (batch is None and read < self._count):
                raise no_parquet(self.source, f"its metadata states {self._count} rows, which is wrong")
            if batch is None:
                return
            yield from self._rows_of(cells, batch.num_rows)

    def __getitem__(self, position: int) -> TableRow:
        if position < self._next or not self._next:
            self._cursor, self._next = self.__iter__(), 0
        skipped = position - self._next
        # If reading fails, the cursor is exhausted, and the next access starts again.
        self._next = 0
        row = next(islice(self._cursor, skipped, None))
        self._next = position + 1
        return row

    def place(self, position: int) -> FilePath:
        return ("rows", position)

    def line_of(self, position: int) -> None:
        """Return None, because the format has no lines."""


def stream_parquet(path: Path, rubric: Rubric | None) -> Contents:
    """Return the dataset in a Parquet file, whose items are read on access."""
    file = open_parquet(path)
    faults = Faults(str(path))
    tables = TableReader(faults, rubric, "text")
    columns = parquet_columns(file, faults)

    def ids(name: str) -> list[Any]:
        with reading_parquet(path):
            cells: list[Any] = file.read([name]).column(0).to_pylist()
        return cells

    chosen = guess_fields({}, columns, TABLE_COLUMNS, rubric, ids=ids)
    pairs = tables.pair_columns(chosen or {}, columns)
    count = file.metadata.num_rows
    if count < 0:
        raise no_parquet(path, f"its metadata states {count} rows")
    rows = _ParquetRows(path, count, lambda cells, n_rows: tables.rows(pairs, cells, n_rows))
    reader = DatasetReader(faults)

    def read(row: TableRow, position: int, faults: Faults) -> DataItem | None:
        tables.faults = reader.faults = faults
        at = rows.place(position)
        return _item(reader, tables.item(row, at), position, at, rubric)

    shared = DatasetReader(Faults(str(path))).shared({}, rubric=rubric)
    items = StreamedItems(path, rows, read, lambda: True)
    return shared._replace(items=items, fields=chosen, pairs=pairs)


class CopiedItems(LazyItems):
    """The items of a dataset's copy, in which each line begins with the item's id."""

    def ids(self) -> Iterator[str]:
        """Yield the items' ids, or their positions as strings, from the first bytes of each line."""
        for position, row in enumerate(self.rows):
            found = _FIRST_ID.match(row)
            try:
                if found is None:
                    yield str(position)
                elif b"\\" in found[1]:
                    yield json.loads(found[1])
                else:
                    # A copy is ASCII, in which unescaped ids need no decoding.
                    yield found[1][1:-1].decode("ascii")
            except ValueError:
                fault = Fault(path=f"[{position + 1}]", message="the id of the item is damaged")
                raise DatasetError("the copy of the dataset", [fault]) from None


def line_of(given: Json) -> bytes:
    """Encode data as a line in a copy of a dataset."""
    return _encode(given).encode("ascii") + b"\n"


def stored_contents(
    path: Path, starts: Sequence[int] | None = None, substitutes: Mapping[int, bytes] | None = None
) -> Contents:
    """Return the dataset in a copy, which has a line for the shared data and then one line per item."""
    starts = line_starts(path) if starts is None else starts
    try:
        found = json.loads(LineRows(path, starts, 0)[0]) if starts else None
    except (ValueError, RecursionError):
        found = None
    faults = Faults(str(path))
    if not isinstance(found, Mapping) or "format" not in found:
        faults.add((), "the first line is not a dataset header")
    faults.raise_as(DatasetError)
    header = dict(found or {})
    if header.get("rubric") is not None:
        header["rubric"] = Rubric.restore(header["rubric"])
    shared = DatasetReader(faults).shared(header)
    faults.raise_as(DatasetError)
    rows = LineRows(path, starts, 1, substitutes)
    return shared._replace(items=CopiedItems(rows, _restore_item, distinct=True))


def _restore_item(row: bytes, position: int, faults: Faults) -> DataItem | None:
    try:
        return DataItem.restore(json.loads(row))
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        message = f"the copy of the item is damaged, or was replaced after the run was opened: {error}"
        faults.add((position + 1,), message)
        return None
