"""Items that stay in their file until they are asked for."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn, Protocol, overload

from autorubric._files import MAX_LINE_BYTES, Faults, FilePath, bounded_lines
from autorubric.dataset._ids import IdIndex
from autorubric.dataset._item import DataItem
from autorubric.errors import DatasetError

_MOST_FAULTS = 100
"""After so many faults the rest of a file is not read."""


class Rows(Protocol):
    """The rows of a file, by position.

    Attributes:
        source: The file's name in errors.
    """

    source: str

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...

    def __getitem__(self, position: int, /) -> Any: ...

    def place(self, position: int) -> FilePath:
        """Return the place of the row, for errors."""
        ...

    def line_of(self, position: int) -> int | None:
        """Return the row's line in the file; None if the format has none."""
        ...


ReadRow = Callable[[Any, int, Faults], DataItem | None]
"""From a row and its position to an item; faults are noted, and then there is none."""


class KnownLine(NamedTuple):
    """The line of an item in a copy of the dataset.

    Attributes:
        line: The line.
        item_id: The item's own id; None if it has none.
    """

    line: bytes
    item_id: str | None


class LazyItems(Sequence[DataItem]):
    """A dataset's items, read from a file each time they are asked for, in the memory of one.

    Going through them checks what reading the whole file would check: that ids are unique too. All faults
    from the first one on are reported.

    Args:
        rows: The rows of the file.
        read: Makes an item of a row.
        distinct: Whether the ids are known to be unique.
    """

    def __init__(self, rows: Rows, read: ReadRow, *, distinct: bool = False) -> None:
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
        at = range(len(self))[position]
        return self._one(at) if isinstance(at, int) else [self._one(each) for each in at]

    def _one(self, position: int) -> DataItem:
        # Whoever asks for an item asks several things of it, one after the other.
        if self._last is not None and self._last[0] == position:
            return self._last[1]
        faults = self._faults(position)
        item = self._read(self.rows[position], position, faults)
        faults.raise_as(DatasetError)
        assert item is not None
        self._last = (position, item)
        return item

    def __iter__(self) -> Iterator[DataItem]:
        return (one for one in self._walk(lambda position, row: None) if isinstance(one, DataItem))

    def _walk(self, known: Callable[[int, Any], KnownLine | None]) -> Iterator[DataItem | bytes]:
        """Yield each item; in its place its line in a copy, where that is known to hold no errors."""
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
            item = self._checked(row, position, faults, ids)
            if faults or item is None:
                self._raise_all(faults, rows, ids)
            else:
                yield item
        self._distinct = True

    def _checked(self, row: Any, position: int, faults: Faults, ids: IdIndex | None) -> DataItem | None:
        item = self._read(row, position, faults)
        if ids is None or item is None:
            return item
        item_id = item.id or str(position)
        before = ids.add(item_id, position)
        if before is not None:
            message = f"the id {item_id!r} is also that of item {before}; ids must be unique"
            place = (*self.rows.place(position), "id")
            faults.add(place, f"{message}; an item without an id gets its position")
        return item

    def _raise_all(self, first: Faults, rest: Iterator[tuple[int, Any]], ids: IdIndex | None) -> NoReturn:
        """Raise the errors found and those of the rows that follow."""
        found = list(first.found)
        for position, row in rest:
            faults = self._faults(position)
            self._checked(row, position, faults, ids)
            found += faults.found
            if len(found) >= _MOST_FAULTS:
                break
        raise DatasetError(self.rows.source, found)

    def ids(self) -> Iterator[str]:
        """Yield the items' ids, or positions as texts."""
        return (item.id or str(position) for position, item in enumerate(self))

    def part(self, positions: range) -> LazyItems:
        """Return the items at some positions, with the ids that they have here."""

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
    """Every n-th row of a file."""

    def __init__(self, rows: Rows, positions: range) -> None:
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
        """Return the place of the row, for errors."""
        return self._rows.place(self._positions[position])

    def line_of(self, position: int) -> int | None:
        """Return the row's line in the file; None if the format has none."""
        return self._rows.line_of(self._positions[position])


class LineRows:
    """The lines of a JSON lines file, as bytes, found by their offsets.

    Args:
        path: The file.
        starts: Offset of each line that is not blank; see `line_starts`.
        header: How many of them come before the first item.
        substitutes: Lines in the place of those of the file, by number from 0.
    """

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
        """Return the place of the row, for errors."""
        return (position + self._header,)

    def line_of(self, position: int) -> int:
        """Return the row's line in the file, from 1, blank lines counted."""
        left, lines = self._starts[position + self._header], 1
        with self._path.open("rb") as file:
            while left and (chunk := file.read(min(left, 1 << 20))):
                lines += chunk.count(b"\n")
                left -= len(chunk)
        return lines


def line_starts(path: Path) -> array[int]:
    """Return the offset of each line of a file that is not blank.

    Raises:
        DatasetError: If it is not a regular file, or a line is too long.
        OSError: If it cannot be read.
    """
    # Four bytes a line where the file lets them be enough.
    starts, offset = array("I" if path.stat().st_size < 1 << 32 else "Q"), 0
    for line in bounded_lines(path, error=DatasetError):
        if not line.isspace():
            starts.append(offset)
        offset += len(line)
    return starts
