"""Offsets of the line and the votes of each item in a run folder, in about ten bytes per item."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autorubric.datasets.dataset import RubricDataset
from autorubric.errors import RunFormatError
from autorubric.runs.differences import places_of
from autorubric.runs.items import Damage, ItemTally, Notices
from autorubric.runs.lines import (
    ItemFields,
    Seal,
    StoredItem,
    StoredVote,
    item_id_of,
    item_of_line,
    parse_vote,
)
from autorubric.runs.log import ITEMS, PROMPTS, VOTES, LogSurvey, Written, crc_of, is_intact, log_lines

_FEW = 4096


@dataclass(frozen=True, slots=True)
class Stand:
    """The conditions under which an item's line is still valid.

    Attributes:
        basis: Digest of the dependencies of figures apart from the item.
        dataset: Digest of the dataset.
        earlier: Ids of the items that have changed since, by the digest of each earlier dataset of the run.
            The lines of that dataset's other items are still valid.
    """

    basis: str
    dataset: str
    earlier: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def of(self, item: ItemFields) -> bool:
        """Return whether a line was written under these conditions."""
        if item["basis"] != self.basis:
            return False
        gone = self.earlier.get(item["dataset"])
        return item["dataset"] == self.dataset or (gone is not None and item["item_id"] not in gone)


@dataclass(kw_only=True)
class RunIndex:
    """The offsets of the line and the votes of each item.

    Attributes:
        path: The run folder.
        lines: Offset of the item's latest line, by position; -1 if the item has no line.
        current: 1 if the line is valid under the run's current conditions, by position; otherwise 0.
        settled: 1 if the line is valid and no vote must be requested again, by position; otherwise 0.
        unclaimed: Offsets of votes on unfinished items, by item id.
        affected: Errors of items that count as not scored because of damaged or missing lines, by position.
        moved: Current offsets of votes that have moved, by original offset.
        damages: Damage to files.
        surveys: Intact lines of the logs by file name, if a log is damaged.
        count: Number of lines of items in the folder.
        votes_open: Offset after which there may be votes on unfinished items.
        notices: Notices about skipped lines.
        tally: Sums over the valid lines; None if they would require reading the lines again.
    """

    path: Path
    lines: array[int]
    current: bytearray
    settled: bytearray
    unclaimed: dict[str, array[int]] = field(default_factory=dict)
    affected: dict[int, str] = field(default_factory=dict)
    moved: dict[int, int] = field(default_factory=dict)
    damages: list[Damage] = field(default_factory=list)
    surveys: dict[str, LogSurvey] = field(default_factory=dict)
    count: int = 0
    votes_open: int = 0
    notices: Notices = field(default_factory=Notices)
    tally: ItemTally | None = None

    @classmethod
    def empty(cls, path: Path, n_items: int) -> RunIndex:
        """Return the index of a folder without any items or votes."""
        lines = array("q", [-1]) * n_items
        return cls(path=path, lines=lines, current=bytearray(n_items), settled=bytearray(n_items))

    def read(self, stand: Stand, places: Places, written: Written) -> bool:
        """Fill the index; return False if a file is damaged."""
        if any(self._bytes_lost(log, written) > 0 for log in (VOTES, ITEMS)):
            return False
        seal, claimed, tally, repeated = Seal(-1, 0, 0, 0), _Claims(), ItemTally(), False
        unsealed = written.unsealed.get(ITEMS, 0)
        for number, offset, raw in log_lines(self.path / ITEMS, 0):
            if offset >= unsealed and not is_intact(raw, offset, written.mark):
                # A killed process may leave an incomplete last line, but a run that ended has none.
                if raw.endswith(b"\n") or offset < written.sizes.get(ITEMS, 0):
                    return False
                self.pass_over(ITEMS, f"line {number}")
                continue
            try:
                item, seal = item_of_line(raw)
            except ValueError:
                self.pass_over(ITEMS, f"line {number}")
                continue
            self.count += 1
            claimed.add(item, seal)
            position = places.of(item, offset)
            if position is not None:
                repeated |= self.lines[position] >= 0
                self.note_line(position, offset, item, stand)
                if self.current[position]:
                    tally.add(item)
        self.votes_open = seal.votes_open
        self.tally = None if repeated else tally
        is_whole = crc_of(self.path / VOTES, seal.votes_size) == seal.votes_crc
        is_counted = not unsealed or seal.number == self.count - 1
        # If a completed run has no line for an item, the line was lost.
        is_complete = not written.is_complete or -1 not in self.lines
        return is_whole and is_counted and is_complete and self._find_unclaimed(seal, claimed, written)

    def note_line(self, position: int, offset: int, item: ItemFields, stand: Stand) -> None:
        """Record the line of an item, replacing any earlier line."""
        self.lines[position] = offset
        self.current[position] = current = stand.of(item)
        self.settled[position] = current and not (item["lost"] or item["raised"])

    def set_aside(self, position: int, why: str) -> None:
        """Record that an item counts as not scored because lines of it are damaged or missing."""
        self.affected[position] = why
        self.lines[position] = -1
        self.current[position] = self.settled[position] = 0

    def _find_unclaimed(self, seal: Seal, claimed: _Claims, written: Written) -> bool:
        """Record the offsets of votes that no line of an item claims; return False if one is damaged."""
        unsealed = written.unsealed.get(VOTES, 0)
        for number, offset, raw in log_lines(self.path / VOTES, seal.votes_open):
            if offset in claimed:
                continue
            is_known = offset < seal.votes_size or (
                offset >= unsealed and is_intact(raw, offset, written.mark)
            )
            is_whole = raw.endswith(b"\n") or offset < written.sizes.get(VOTES, 0)
            if not is_known and offset >= unsealed and is_whole:
                return False
            # The writer cuts a line without a line break, even if only that is missing.
            item_id = item_id_of(raw, is_intact=is_known) if raw.endswith(b"\n") else None
            if item_id is None:
                # If reading began in the middle of the file, line numbers are unknown.
                self.pass_over(VOTES, f"line {number}" if not seal.votes_open else f"at byte {offset}")
                continue
            self.unclaimed.setdefault(item_id, array("q")).append(offset)
        return True

    def pass_over(self, file: str, where: str) -> None:
        """Record a line that cannot be read."""
        kind = f"truncated or damaged lines of {file} were skipped"
        self.notices.add(kind, f"{file}: {where} is truncated or damaged and was skipped")

    def _bytes_lost(self, log: str, written: Written) -> int:
        """Return the number of bytes that a log has lost since the run ended."""
        file = self.path / log
        return written.sizes.get(log, 0) - (file.stat().st_size if file.exists() else 0)

    def compare_sizes(self, written: Written) -> None:
        """Record a file of prompts that is shorter than the manifest states."""
        lost = self._bytes_lost(PROMPTS, written)
        if lost > 0:
            what = f"{lost:,} bytes are missing"
            self.damages.append(Damage(file=PROMPTS, what=what, n_items=0))

    def line(self, position: int) -> StoredItem | None:
        """Return the latest line of the item at a position; None if the item has no line."""
        if self.lines[position] < 0:
            return None
        with (self.path / ITEMS).open("rb") as file:
            file.seek(self.lines[position])
            return StoredItem(**item_of_line(file.readline())[0])

    def offsets(self, position: int, item_id: str, line: StoredItem | None) -> list[int]:
        """Return the offsets of all votes stored for an item, oldest first."""
        claimed = line.votes if line is not None else ()
        return sorted({*claimed, *self.unclaimed.get(item_id, ())})

    def votes(self, item_id: str, offsets: Sequence[int]) -> Iterator[tuple[int, StoredVote]]:
        """Yield the offset and the vote for each of these offsets of an item's votes."""
        if not offsets:
            return
        lenient = self.unclaimed.get(item_id, ())
        with (self.path / VOTES).open("rb") as file:
            for offset in offsets:
                file.seek(self.moved.get(offset, offset))
                try:
                    vote = parse_vote(file.readline())
                    if vote.item_id != item_id:
                        raise ValueError("the vote is on another item")
                except ValueError:
                    if offset in lenient:
                        continue
                    raise RunFormatError(
                        f"{self.path / VOTES} has changed since the run was opened; open the run again with "
                        "EvalResult.from_experiment, or resume it"
                    ) from None
                yield offset, vote

    def finished(self, item: StoredItem, offset: int) -> None:
        """Record the offset of a new line of an item, which claims all votes on the item."""
        self.lines[item.position] = offset
        self.current[item.position] = self.settled[item.position] = 1
        self.unclaimed.pop(item.item_id, None)
        self.tally = None

    def current_lines(self) -> Iterator[StoredItem]:
        """Yield the lines that are valid under the run's current conditions, in file order."""
        moved: dict[int, int] | None = None
        for _, offset, raw in log_lines(self.path / ITEMS, 0):
            try:
                item, _ = item_of_line(raw)
            except ValueError:
                continue
            at = item["position"]
            if not (0 <= at < len(self.lines) and self.lines[at] == offset):
                # The item has moved to another position or has a newer line.
                if moved is None:
                    moved = {line: position for position, line in enumerate(self.lines)}
                at = moved.get(offset, -1)
            if at >= 0 and self.current[at]:
                yield StoredItem(**{**item, "position": at})


class Places:
    """Finds the position in a dataset of the item that a line is about.

    If the line has a checksum and was written for this dataset, its own position is used; otherwise the item
    is looked up by its id.

    Args:
        unsealed: Number of leading bytes whose lines have no checksum.
    """

    def __init__(self, dataset: RubricDataset, digest: str, unsealed: int) -> None:
        self._dataset = dataset
        self._digest = digest
        self._unsealed = unsealed
        self._count = len(dataset)
        self._ids: dict[str, int] | None = None

    def of(self, item: ItemFields, at: int) -> int | None:
        """Return the position; None if the dataset no longer contains the item.

        Args:
            at: The offset at which the line was written.
        """
        if at >= self._unsealed and item["dataset"] == self._digest and item["position"] < self._count:
            position: int = item["position"]
            return position
        if self._ids is None:
            self._ids = places_of(self._dataset)
        return self._ids.get(item["item_id"])


class _Claims:
    """Offsets of the votes that lines of items claim, after the first vote that is still open."""

    def __init__(self) -> None:
        self._offsets: set[int] = set()
        self._most = _FEW

    def add(self, item: ItemFields, seal: Seal) -> None:
        """Add the votes that a line claims, and drop offsets before its first open vote."""
        self._offsets.update(item["votes"])
        if len(self._offsets) > self._most:
            self._offsets = {offset for offset in self._offsets if offset >= seal.votes_open}
            self._most = max(_FEW, 2 * len(self._offsets))

    def __contains__(self, offset: int) -> bool:
        return offset in self._offsets
