"""Sequences of items that are read from a file on access, and a compact index of ids."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn, Protocol, overload

from autorubric.datasets.item import DataItem
from autorubric.datasets.read import repeated_id
from autorubric.errors import DatasetError
from autorubric.support.read import MAX_LINE_BYTES, bounded_lines
from autorubric.support.reading_errors import Faults, FilePath

_SMALLEST = 1024


class IdIndex:
    """An open-addressing hash table from ids to positions, which uses less memory than a dict of strings."""

    def __init__(self, id_at: Callable[[int], str]) -> None:
        self._id_at = id_at
        self._count = 0
        self._allot(_SMALLEST)

    def _allot(self, slots: int) -> None:
        self._mask = slots - 1
        self._hashes = array("q", bytes(8 * slots))
        # Position + 1; 0 is a free slot.
        self._places = array("i", bytes(4 * slots))

    def add(self, item_id: str, position: int) -> int | None:
        """Add an id with its position, or return the existing position if the id is already present."""
        slot, found = self._slot(item_id)
        if found is not None:
            return found
        self._hashes[slot], self._places[slot] = hash(item_id), position + 1
        self._count += 1
        if 3 * self._count > 2 * self._mask:
            self._grow()
        return None

    def _slot(self, item_id: str) -> tuple[int, int | None]:
        wanted = hash(item_id)
        slot = wanted & self._mask
        while place := self._places[slot]:
            if self._hashes[slot] == wanted and self._id_at(place - 1) == item_id:
                return slot, place - 1
            slot = (slot + 1) & self._mask
        return slot, None

    def _grow(self) -> None:
        hashes, places = self._hashes, self._places
        self._allot(2 * len(hashes))
        for wanted, place in zip(hashes, places, strict=True):
            if place:
                slot = wanted & self._mask
                while self._places[slot]:
                    slot = (slot + 1) & self._mask
                self._hashes[slot], self._places[slot] = wanted, place


_MOST_FAULTS = 100
"""Number of errors after which the rest of a file is not read."""


class LazyRows(Protocol):
    """The rows of a file, by position."""

    source: str

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __getitem__(self, position: int, /) -> Any: ...
    def place(self, position: int) -> FilePath: ...  # the path of the row inside the file, for errors
    def line_of(self, position: int) -> int | None: ...  # None if the format has no lines


ReadRow = Callable[[Any, int, Faults], DataItem | None]
"""Function that parses a row at a position as an item; if there are errors, it adds them and returns None."""


class KnownLine(NamedTuple):
    """The line of an item in a copy of the dataset."""

    line: bytes
    item_id: str | None  # id of the item; None if it has no id


class LazyItems(Sequence[DataItem]):
    """The items of a dataset, which are read from a file on each access, one at a time."""

    def __init__(self, rows: LazyRows, read: ReadRow, *, distinct: bool = False) -> None:
        self.rows = rows
        self._read = read
        self._distinct = distinct
        self._last: tuple[int, DataItem] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, position: int) -> DataItem: ...

    @overload
    def __getitem__(self, position: slice) -> Sequence[DataItem]: ...

    def __getitem__(self, position: int | slice) -> DataItem | Sequence[DataItem]:
        # The same item is usually accessed several times in succession.
        if self._last is not None and self._last[0] == position:
            return self._last[1]
        at = range(len(self))[position]
        return self._one(at) if isinstance(at, int) else [self._one(each) for each in at]

    def _one(self, position: int) -> DataItem:
        faults = self._faults(position)
        item = self._read(self.rows[position], position, faults)
        faults.raise_as(DatasetError)
        assert item is not None
        self._last = (position, item)
        return item

    def __iter__(self) -> Iterator[DataItem]:
        return (one for one in self._walk(lambda position, row: None) if isinstance(one, DataItem))

    def _walk(self, known: Callable[[int, Any], KnownLine | None]) -> Iterator[DataItem | bytes]:
        """Yield each item or, if it is known to have no errors, its line in a copy."""
        ids = None if self._distinct else IdIndex(lambda position: self[position].id or str(position))
        rows = enumerate(self.rows)
        for position, row in rows:
            found = known(position, row)
            if found is not None and (
                ids is None or ids.add(found.item_id or str(position), position) is None
            ):
                yield found.line
                continue
            faults = self._faults(position)
            item = self._read_checked(row, position, faults, ids)
            if faults or item is None:
                self._raise_all(faults, rows, ids)
            else:
                # Most loops also look the item up by its position.
                self._last = (position, item)
                yield item
        self._distinct = True

    def _read_checked(self, row: Any, position: int, faults: Faults, ids: IdIndex | None) -> DataItem | None:
        item = self._read(row, position, faults)
        if ids is None or item is None:
            return item
        item_id = item.id or str(position)
        before = ids.add(item_id, position)
        if before is not None:
            faults.add((*self.rows.place(position), "id"), repeated_id(item_id, before))
        return item

    def _raise_all(self, first: Faults, rest: Iterator[tuple[int, Any]], ids: IdIndex | None) -> NoReturn:
        """Raise the errors found and the errors in the rows that follow."""
        found = list(first.found)
        for position, row in rest:
            faults = self._faults(position)
            self._read_checked(row, position, faults, ids)
            found += faults.found
            if len(found) >= _MOST_FAULTS:
                break
        raise DatasetError(self.rows.source, found)

    def ids(self) -> Iterator[str]:
        """Yield the items' ids, or their positions as strings."""
        return (item.id or str(position) for position, item in enumerate(self))

    def part(self, positions: range) -> LazyItems:
        """Return the items at these positions; items keep the ids that they have here."""

        def read(row: Any, position: int, faults: Faults) -> DataItem | None:
            item = self._read(row, positions[position], faults)
            if item is None or item.id is not None:
                return item
            return item.model_copy(update={"id": str(positions[position])})

        return LazyItems(_PartRows(self.rows, positions), read)

    def _faults(self, position: int) -> Faults:
        return Faults(self.rows.source, lambda path: self.rows.line_of(position))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(one == two for one, two in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]


class _PartRows:
    """The rows of a file at some positions."""

    def __init__(self, rows: LazyRows, positions: range) -> None:
        self.source = rows.source
        self._rows = rows
        self._positions = positions

    def __len__(self) -> int:
        return len(self._positions)

    def __iter__(self) -> Iterator[Any]:
        wanted = self._positions
        return islice(iter(self._rows), wanted.start, wanted.stop, wanted.step)

    def __getitem__(self, position: int) -> Any:
        return self._rows[self._positions[position]]

    def place(self, position: int) -> FilePath:
        return self._rows.place(self._positions[position])

    def line_of(self, position: int) -> int | None:
        return self._rows.line_of(self._positions[position])


class LineRows:
    """The lines of a JSON lines file as bytes, by offset; `substitutes` replace lines, by number from 0."""

    def __init__(
        self, path: Path, starts: Sequence[int], header: int, substitutes: Mapping[int, bytes] | None = None
    ) -> None:
        self.source = str(path)
        self._path = path
        self._starts = starts
        self._header = header
        self._substitutes = substitutes or {}

    def __len__(self) -> int:
        return len(self._starts) - self._header

    def __iter__(self) -> Iterator[bytes]:
        with self._path.open("rb") as file:
            for number in range(self._header, len(self._starts)):
                yield self._line(file, number)

    def __getitem__(self, position: int) -> bytes:
        with self._path.open("rb") as file:
            return self._line(file, position + self._header)

    def _line(self, file: IO[bytes], number: int) -> bytes:
        if number in self._substitutes:
            return self._substitutes[number]
        file.seek(self._starts[number])
        # The file may have grown since its lines were found.
        return file.readline(MAX_LINE_BYTES)

    def place(self, position: int) -> FilePath:
        return (position + self._header,)

    def line_of(self, position: int) -> int:
        """Return the line number of the row, from 1, including blank lines."""
        left, lines = self._starts[position + self._header], 1
        with self._path.open("rb") as file:
            while left and (chunk := file.read(min(left, 1 << 20))):
                lines += chunk.count(b"\n")
                left -= len(chunk)
        return lines


def line_starts(path: Path) -> array[int]:
    """Return the byte offset of each line of a file that is not blank."""
    # Four bytes per line are sufficient for files smaller than 4 GiB.
    starts, offset = array("I" if path.stat().st_size < 1 << 32 else "Q"), 0
    for line in bounded_lines(path, error=DatasetError):
        if not line.isspace():
            starts.append(offset)
        offset += len(line)
    return starts
