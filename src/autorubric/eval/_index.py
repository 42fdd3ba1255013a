"""Where in a run folder the line and the votes of each item stand: some ten bytes an item, no votes."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autorubric.errors import RunFormatError
from autorubric.eval._folder import ITEMS, VOTES
from autorubric.eval._items import Tally
from autorubric.eval._lines import ItemFields, Seal, StoredItem, StoredVote, item_of_line, parse_vote
from autorubric.eval._log import crc_of
from autorubric.eval._notices import Notices

# The line of a vote begins so; the rest of it need not be read to know whose it is.
_WHOSE = re.compile(rb'\{"item":("(?:[^"\\]|\\.)*")')
_FEW = 4096

Place = Callable[[ItemFields], int | None]
"""The position of an item's line in the dataset; None where the dataset does not have the item any more."""


@dataclass(frozen=True, slots=True)
class Stand:
    """What an item's line must have been written under for its figures to stand.

    Attributes:
        basis: What figures depend on beside the item.
        dataset: The dataset.
        earlier: Datasets that the run was on before and whose items are now as they were, wherever they
            stand; by each, the ids of those that are not.
    """

    basis: str
    dataset: str
    earlier: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def of(self, item: ItemFields) -> bool:
        """Whether a line was written under this."""
        if item["basis"] != self.basis:
            return False
        gone = self.earlier.get(item["dataset"])
        return item["dataset"] == self.dataset or (gone is not None and item["item_id"] not in gone)


@dataclass(kw_only=True)
class RunIndex:
    """Where the line and the votes of each item stand.

    Attributes:
        path: The run folder.
        lines: By position, the offset of the item's latest line; -1 where it has none.
        current: By position, 1 where that line's figures are those of the run as it is now.
        settled: By position, 1 where moreover no vote of the item is to be cast again.
        unclaimed: Offsets of votes of items that are not finished, by item id.
        trusted: Whether the offsets in lines are those of their votes.
        count: Lines of items in the folder.
        votes_open: Offset from which on there may be votes of unfinished items.
        notices: Lines that were passed over.
        tally: Sums over the current lines, where reading them once was enough.
    """

    path: Path
    lines: array[int]
    current: bytearray
    settled: bytearray
    unclaimed: dict[str, array[int]] = field(default_factory=dict)
    trusted: bool = True
    count: int = 0
    votes_open: int = 0
    notices: Notices = field(default_factory=Notices)
    tally: Tally | None = None

    @classmethod
    def empty(cls, path: Path, n_items: int) -> RunIndex:
        """The index of a folder without items and votes."""
        lines = array("q", [-1]) * n_items
        return cls(path=path, lines=lines, current=bytearray(n_items), settled=bytearray(n_items))

    @classmethod
    def load(cls, path: Path, n_items: int, stand: Stand, place: Place) -> RunIndex:
        """The index of a run folder.

        What lines of items say is taken as it stands if `votes.jsonl` is, up to the size it had when the
        last of them was written, byte for byte what it was. Of later votes it is enough to know whose they
        are. Otherwise every vote is read, and what items come to is found out anew.

        Args:
            path: The run folder.
            n_items: Items in the dataset.
            stand: What lines must have been written under.
            place: Where a line's item stands in the dataset.

        Raises:
            RunFormatError: A file of it cannot be read.
        """
        try:
            return cls._loaded(path, n_items, stand, place)
        except OSError as error:
            raise RunFormatError(f"{error.filename or path} cannot be read: {error.strerror}") from error

    @classmethod
    def _loaded(cls, path: Path, n_items: int, stand: Stand, place: Place) -> RunIndex:
        index = cls.empty(path, n_items)
        seal, claimed, tally, repeated = Seal(-1, 0, 0, 0), _Claims(), Tally(), False
        for offset, item, seal in index._read_lines():
            index.count += 1
            claimed.add(item, seal)
            position = place(item)
            if position is not None and 0 <= position < n_items:
                repeated |= index.lines[position] >= 0
                index.lines[position] = offset
                index.current[position] = current = stand.of(item)
                index.settled[position] = current and not (item["lost"] or item["raised"])
                if current:
                    tally.add(item)
        whole = crc_of(path / VOTES, seal.votes_size) == seal.votes_crc
        index.trusted = whole and seal.number == index.count - 1
        if index.trusted:
            index.votes_open = seal.votes_open
            index.tally = None if repeated else tally
            index._find_unclaimed(seal, claimed)
        else:
            index.current, index.settled = bytearray(n_items), bytearray(n_items)
            index._find_unclaimed(Seal(0, 0, 0, 0), _Claims())
        return index

    def _read_lines(self) -> Iterator[tuple[int, ItemFields, Seal]]:
        for number, offset, raw in _lines(self.path / ITEMS, 0):
            try:
                found = item_of_line(raw)
            except ValueError:
                self._pass_over(ITEMS, f"line {number}")
                continue
            yield offset, *found

    def _find_unclaimed(self, seal: Seal, claimed: _Claims) -> None:
        """Notes where the votes stand that no line of an item claims."""
        for number, offset, raw in _lines(self.path / VOTES, seal.votes_open):
            if offset in claimed:
                continue
            whose = _WHOSE.match(raw) if offset < seal.votes_size else None
            try:
                item_id = json.loads(whose[1]) if whose else parse_vote(raw).item_id
            except ValueError:
                # Where reading began in the middle, lines cannot be numbered.
                where = f"line {number}" if not seal.votes_open else f"at byte {offset}"
                self._pass_over(VOTES, where)
                continue
            self.unclaimed.setdefault(item_id, array("q")).append(offset)

    def _pass_over(self, file: str, where: str) -> None:
        kind = f"lines of {file} are torn or damaged and were passed over"
        self.notices.add(kind, f"{file} {where} is torn or damaged and was passed over")

    def line(self, position: int) -> StoredItem | None:
        """The latest line of the item at a position; None where it has none."""
        if self.lines[position] < 0:
            return None
        with (self.path / ITEMS).open("rb") as file:
            file.seek(self.lines[position])
            return StoredItem(**item_of_line(file.readline())[0])

    def offsets(self, position: int, item_id: str, line: StoredItem | None) -> list[int]:
        """Where every vote stored for an item stands, oldest first."""
        # A line written now is to be trusted, whatever the others are.
        claimed = line.votes if line is not None and (self.trusted or self.current[position]) else ()
        return sorted({*claimed, *self.unclaimed.get(item_id, ())})

    def votes(self, item_id: str, offsets: Sequence[int]) -> Iterator[tuple[int, StoredVote]]:
        """The votes of an item that stand at these offsets, each with its own; a torn one is left out.

        Raises:
            RunFormatError: Where a line of the item says that a vote stands, there is none: the folder was
                changed by other means than a run since it was opened.
        """
        if not offsets:
            return
        lenient = self.unclaimed.get(item_id, ())
        with (self.path / VOTES).open("rb") as file:
            for offset in offsets:
                file.seek(offset)
                try:
                    vote = parse_vote(file.readline())
                    if vote.item_id != item_id:
                        raise ValueError("another item's")
                except ValueError:
                    if offset in lenient:
                        continue
                    raise RunFormatError(
                        f"{self.path / VOTES} was changed since the run was opened; open it again with "
                        "EvalResult.from_experiment, or go on with the run"
                    ) from None
                yield offset, vote

    def finished(self, item: StoredItem, offset: int) -> None:
        """Notes that the line of an item was written, and where; it claims all votes of the item."""
        self.lines[item.position] = offset
        self.current[item.position] = self.settled[item.position] = 1
        self.unclaimed.pop(item.item_id, None)
        self.tally = None

    def current_lines(self) -> Iterator[StoredItem]:
        """The lines whose figures are those of the run as it is now, in the order of the file."""
        moved: dict[int, int] | None = None
        for _, offset, raw in _lines(self.path / ITEMS, 0):
            try:
                item, _ = item_of_line(raw)
            except ValueError:
                continue
            at = item["position"]
            if not (0 <= at < len(self.lines) and self.lines[at] == offset):
                # It has another position now, or another line.
                if moved is None:
                    moved = {line: position for position, line in enumerate(self.lines)}
                at = moved.get(offset, -1)
            if at >= 0 and self.current[at]:
                yield StoredItem(**{**item, "position": at})


class _Claims:
    """Offsets of votes that lines of items claim, as far as the last of these lines leaves votes open."""

    def __init__(self) -> None:
        self._offsets: set[int] = set()
        self._most = _FEW

    def add(self, item: ItemFields, seal: Seal) -> None:
        """Notes what a line claims, and forgets what lies before the votes it leaves open."""
        self._offsets.update(item["votes"])
        if len(self._offsets) > self._most:
            self._offsets = {offset for offset in self._offsets if offset >= seal.votes_open}
            self._most = max(_FEW, 2 * len(self._offsets))

    def __contains__(self, offset: int) -> bool:
        return offset in self._offsets


def _lines(path: Path, start: int) -> Iterator[tuple[int, int, bytes]]:
    """Number, counted from `start`, offset and bytes of each line that is not blank."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        offset = file.seek(start)
        for number, raw in enumerate(file, start=1):
            if not raw.isspace():
                yield number, offset, raw
            offset += len(raw)
