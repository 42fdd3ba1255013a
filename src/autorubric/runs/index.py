"""Offsets of the line and the votes of each item in a run folder; repair of its damaged logs.

A line of `items.jsonl` lists the offsets of the item's votes. Votes that no line lists are open: they are on
unfinished items. Each line also states the size and checksum of `votes.jsonl` at the time, and from which
offset on there may be open votes, so that opening a run need not read every vote.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from autorubric.datasets.dataset import RubricDataset
from autorubric.errors import RunFormatError
from autorubric.runs.differences import basis_of, places_of
from autorubric.runs.items import ItemTally
from autorubric.runs.lines import (
    ItemFields,
    Seal,
    StoredItem,
    StoredVote,
    item_id_of_line,
    item_of_line,
    parse_vote,
    votes_changed,
)
from autorubric.runs.manifest import ITEMS, PROMPTS, VOTES, LogEntries
from autorubric.runs.notices import Damage, Notices, damage_error, describe_lines
from autorubric.support.objects import Json
from autorubric.support.record_log import LogSurvey, crc_of, is_intact, log_lines, survey_log

if TYPE_CHECKING:
    from autorubric.runs.store import RunStore

_FEW = 4096

OpenLog: TypeAlias = Callable[[str], BinaryIO]
"""Returns an open log of a run folder by its name."""


@dataclass(frozen=True, slots=True)
class LineValidity:
    """The conditions under which an item's line is still valid."""

    basis: str  # digest of the dependencies of figures apart from the item
    dataset: str  # digest of the dataset
    # Ids of the items that have changed since, by the digest of each earlier dataset of the run. The lines of
    # that dataset's other items are still valid.
    earlier: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, manifest: Mapping[str, Json], dataset: RubricDataset) -> LineValidity:
        """Return the conditions in a run with this manifest."""
        basis = basis_of(manifest.get("asking") or {}, manifest.get("deciding") or {}, dataset.rubric)
        entry: Mapping[str, Any] = manifest.get("dataset") or {}
        earlier = {one: frozenset(gone) for one, gone in (entry.get("earlier") or {}).items()}
        return cls(basis, str(entry.get("sha256"))[:16], earlier)

    def holds_for(self, item: ItemFields) -> bool:
        """Return whether a line is valid."""
        if item["basis"] != self.basis:
            return False
        gone = self.earlier.get(item["dataset"])
        return item["dataset"] == self.dataset or (gone is not None and item["item_id"] not in gone)


@dataclass(kw_only=True)
class RunIndex:
    """The offsets of the line and the votes of each item."""

    path: Path
    lines: array[int]  # offset of the item's latest line, by position; -1 if it has none
    current: bytearray  # 1 if the line is valid, by position
    settled: bytearray  # 1 if moreover no vote must be requested again, by position
    raised: bytearray  # 1 if grading raised an error, by position
    open_votes: dict[str, array[int]] = field(default_factory=dict)  # offsets by item id
    open_from: int = 0  # offset from which on there may be open votes
    affected: dict[int, str] = field(default_factory=dict)  # errors of items with damaged lines, by position
    moved: dict[int, int] = field(default_factory=dict)  # current offsets of moved votes, by original offset
    damages: list[Damage] = field(default_factory=list)
    surveys: dict[str, LogSurvey] = field(default_factory=dict)  # by file name, if a log is damaged
    count: int = 0  # number of lines of items in the folder
    notices: Notices = field(default_factory=Notices)
    tally: ItemTally | None = None  # sums over the valid lines; None if they would have to be read again

    @classmethod
    def empty(cls, path: Path, n_items: int) -> RunIndex:
        """Return the index of a folder without any items or votes."""
        lines = array("q", [-1]) * n_items
        current, settled, raised = (bytearray(n_items) for _ in range(3))
        return cls(path=path, lines=lines, current=current, settled=settled, raised=raised)

    def read(self, validity: LineValidity, positions: Positions, logs: LogEntries) -> bool:
        """Fill the index; return False if a file is damaged."""
        if any(bytes_lost(self.path / log, logs) > 0 for log in (VOTES, ITEMS)):
            return False
        seal, listed, tally, repeated = Seal(-1, 0, 0, 0), _ListedVotes(), ItemTally(), False
        unsealed = logs.unsealed.get(ITEMS, 0)
        for number, offset, raw in log_lines(self.path / ITEMS):
            if offset >= unsealed and not is_intact(raw, offset, logs.mark):
                # A killed process may leave an incomplete last line, but a run that ended has none.
                if raw.endswith(b"\n") or offset < logs.sizes.get(ITEMS, 0):
                    return False
                self._note_skipped(ITEMS, f"line {number}")
                continue
            try:
                item, seal = item_of_line(raw)
            except ValueError:
                self._note_skipped(ITEMS, f"line {number}")
                continue
            self.count += 1
            listed.add(item, seal)
            position = positions.find(item, offset)
            if position is not None:
                repeated |= self.lines[position] >= 0
                self.add_line(position, offset, item, validity)
                if self.current[position]:
                    tally.add(item)
        self.open_from = seal.votes_open
        self.tally = None if repeated else tally
        is_whole = crc_of(self.path / VOTES, seal.votes_size) == seal.votes_crc
        is_counted = not unsealed or seal.number == self.count - 1
        # If a completed run has no line for an item, the line was lost.
        is_complete = not logs.is_complete or -1 not in self.lines
        return is_whole and is_counted and is_complete and self._find_open_votes(seal, listed, logs)

    def add_line(self, position: int, offset: int, item: ItemFields, validity: LineValidity) -> None:
        """Record the line of an item, replacing any earlier line."""
        self.lines[position] = offset
        self.current[position] = current = validity.holds_for(item)
        self.settled[position] = current and not (item["lost"] or item["raised"])
        self.raised[position] = item["raised"]

    def add_finished(self, item: StoredItem, offset: int) -> None:
        """Record a new line of an item, which lists all votes on the item."""
        self.lines[item.position] = offset
        self.current[item.position] = self.settled[item.position] = 1
        self.raised[item.position] = item.raised
        self.open_votes.pop(item.item_id, None)
        self.tally = None

    def set_affected(self, position: int, error: str) -> None:
        """Record that an item counts as not scored because lines of it are damaged or missing."""
        self.affected[position] = error
        self.lines[position] = -1
        self.current[position] = self.settled[position] = 0

    def _find_open_votes(self, seal: Seal, listed: _ListedVotes, logs: LogEntries) -> bool:
        """Record the offsets of open votes; return False if one is damaged."""
        unsealed = logs.unsealed.get(VOTES, 0)
        for number, offset, raw in log_lines(self.path / VOTES, seal.votes_open):
            if offset in listed.offsets:
                continue
            is_known = offset < seal.votes_size or (offset >= unsealed and is_intact(raw, offset, logs.mark))
            is_whole = raw.endswith(b"\n") or offset < logs.sizes.get(VOTES, 0)
            if not is_known and offset >= unsealed and is_whole:
                return False
            # The writer cuts a line without a line break, even if only that is missing.
            item_id = item_id_of_line(raw, is_intact=is_known) if raw.endswith(b"\n") else None
            if item_id is None:
                # If reading began in the middle of the file, line numbers are unknown.
                self._note_skipped(VOTES, f"line {number}" if not seal.votes_open else f"at byte {offset}")
                continue
            self.open_votes.setdefault(item_id, array("q")).append(offset)
        return True

    def _note_skipped(self, file: str, where: str) -> None:
        kind = f"truncated or damaged lines of {file} were skipped"
        self.notices.add(kind, f"{file}: {where} is truncated or damaged and was skipped")

    def line(self, position: int, logs: OpenLog | None = None) -> StoredItem | None:
        """Return the latest line of the item at a position; None if the item has no line."""
        if self.lines[position] < 0:
            return None
        with opened_logs(self.path) if logs is None else nullcontext(logs) as opened:
            file = opened(ITEMS)
            file.seek(self.lines[position])
            return StoredItem(**item_of_line(file.readline())[0])

    def votes(
        self, item_id: str, line: StoredItem | None, logs: OpenLog | None = None
    ) -> list[tuple[int, StoredVote]]:
        """Return all votes stored for an item, oldest first, each with its offset."""
        open_votes = self.open_votes.get(item_id, ())
        offsets = sorted({*(line.votes if line is not None else ()), *open_votes})
        found: list[tuple[int, StoredVote]] = []
        if not offsets:
            return found
        with opened_logs(self.path) if logs is None else nullcontext(logs) as opened:
            file, read = opened(VOTES), -1
            for offset in offsets:
                at = self.moved.get(offset, offset)
                if at != read:
                    file.seek(at)
                raw = file.readline()
                read = at + len(raw)
                try:
                    vote = parse_vote(raw)
                    if vote.item_id != item_id:
                        raise ValueError("the vote is on another item")
                except ValueError:
                    if offset in open_votes:
                        continue
                    raise votes_changed(self.path / VOTES) from None
                found.append((offset, vote))
        return found

    def current_lines(self) -> Iterator[StoredItem]:
        """Yield the valid lines, in file order."""
        moved: dict[int, int] | None = None
        for _, offset, raw in log_lines(self.path / ITEMS):
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


@contextmanager
def opened_logs(folder: Path) -> Iterator[OpenLog]:
    """Yield a function that opens a log of a run folder on first use; all are closed together."""
    with ExitStack() as stack:
        yield cache(lambda name: stack.enter_context((folder / name).open("rb")))


def bytes_lost(log: Path, logs: LogEntries) -> int:
    """Return the number of bytes that a log has lost since the run ended; not positive if none."""
    return logs.sizes.get(log.name, 0) - (log.stat().st_size if log.exists() else 0)


class Positions:
    """Finds the item of a line: at the line's position if it was written for this dataset, or by its id."""

    def __init__(self, dataset: RubricDataset, digest: str, unsealed: int) -> None:
        self._dataset = dataset
        self._digest = digest
        self._unsealed = unsealed
        self._count = len(dataset)
        self._by_id: dict[str, int] | None = None

    def find(self, item: ItemFields, at: int) -> int | None:
        """Return the position of the item of a line written at an offset; None if it is not found."""
        if at >= self._unsealed and item["dataset"] == self._digest and item["position"] < self._count:
            position: int = item["position"]
            return position
        if self._by_id is None:
            self._by_id = places_of(self._dataset)
        return self._by_id.get(item["item_id"])


class _ListedVotes:
    """Offsets of the votes that lines of items list, from the first offset on that may be of an open vote."""

    def __init__(self) -> None:
        self.offsets: set[int] = set()
        self._limit = _FEW

    def add(self, item: ItemFields, seal: Seal) -> None:
        """Add the votes that a line lists; drop offsets before its first open vote if there are many."""
        self.offsets.update(item["votes"])
        if len(self.offsets) > self._limit:
            self.offsets = {offset for offset in self.offsets if offset >= seal.votes_open}
            self._limit = max(_FEW, 2 * len(self.offsets))


def load_index(path: Path, dataset: RubricDataset, validity: LineValidity, logs: LogEntries) -> RunIndex:
    """Return the index of a run folder, after verifying the checksums of its lines."""
    try:
        index = RunIndex.empty(path, len(dataset))
        positions = Positions(dataset, validity.dataset, logs.unsealed.get(ITEMS, 0))
        if not index.read(validity, positions, logs):
            # Every line of both files is read to find the affected items.
            index = RunIndex.empty(path, len(dataset))
            _Salvage(index, logs).fill(dataset, positions, validity)
        if (lost := bytes_lost(path / PROMPTS, logs)) > 0:
            index.damages.append(Damage(file=PROMPTS, what=f"{lost:,} bytes are missing", n_items=0))
    except OSError as error:
        raise RunFormatError(f"{error.filename or path} cannot be read: {error.strerror}") from error
    return index


@dataclass
class _Salvage:
    """Fills an index from the intact lines of a damaged folder, and records the affected items."""

    index: RunIndex
    logs: LogEntries
    found: dict[str, list[int]] = field(default_factory=dict)  # original offsets of intact votes by item id
    # By position, the original offset of the item's latest intact line and the votes that it lists.
    latest: dict[int, tuple[int, Sequence[int]]] = field(default_factory=dict)
    votes_size: int = 0  # size of `votes.jsonl` that the lines of items state

    def fill(self, dataset: RubricDataset, positions: Positions, validity: LineValidity) -> None:
        items = self._survey_items(positions, validity)
        votes = self._survey_votes()
        self.index.surveys = {VOTES: votes, ITEMS: items}
        lost = {at for _, listed in self.latest.values() for at in listed}
        lost.difference_update(at for offsets in self.found.values() for at in offsets)
        lost_in_holes = [sum(at in hole for at in lost) for hole in votes.holes]
        is_unsealed = bool(self.logs.unsealed.get(VOTES))
        # It is unknown to which items lost votes belong that no line lists.
        is_unknown = 0 in lost_in_holes
        n_affected = {VOTES: 0, ITEMS: 0}
        for position, item_id in enumerate(dataset.item_ids()):
            found, line = self.found.get(item_id, []), self.latest.get(position)
            listed = set(line[1]) if line is not None else set()
            if line is None:
                is_lost = self.logs.is_complete or (bool(found) and items.is_damaged)
                file = ITEMS if is_lost else VOTES if found and is_unknown else None
            elif is_unsealed or not listed <= set(found):
                file = VOTES
            else:
                file = ITEMS if items.is_damaged and not set(found) <= listed else None
            if file is not None:
                self.index.set_affected(position, damage_error(file))
                n_affected[file] += 1
            if open_votes := sorted(set(found) if file else set(found) - listed):
                self.index.open_votes[item_id] = array("q", open_votes)
        n_votes = max(sum(max(count, 1) for count in lost_in_holes), votes.bad)
        self._note_damage(VOTES, votes, n_votes, n_affected[VOTES], is_unlocated=is_unsealed)
        n_lines = max(len(items.holes), items.bad) or n_affected[ITEMS]
        self._note_damage(ITEMS, items, n_lines, n_affected[ITEMS])

    def _survey_items(self, positions: Positions, validity: LineValidity) -> LogSurvey:
        def read_item(at: int, offset: int, raw: bytes) -> bool:
            try:
                item, seal = item_of_line(raw)
            except ValueError:
                return False
            self.index.count += 1
            self.votes_size = max(self.votes_size, seal.votes_size)
            position = positions.find(item, at)
            if position is not None and at >= self.latest.get(position, (0,))[0]:
                self.latest[position] = at, item["votes"]
                self.index.add_line(position, offset, item, validity)
            return True

        unsealed, size = self.logs.unsealed.get(ITEMS, 0), self.logs.sizes.get(ITEMS, 0)
        return survey_log(self.index.path / ITEMS, self.logs.mark, unsealed, size, read_item)

    def _survey_votes(self) -> LogSurvey:
        unsealed = self.logs.unsealed.get(VOTES, 0)

        def read_vote(at: int, offset: int, raw: bytes) -> bool:
            item_id = item_id_of_line(raw, is_intact=at >= unsealed)
            if item_id is None:
                return False
            self.found.setdefault(item_id, []).append(at)
            if at != offset:
                self.index.moved[at] = offset
            return True

        size = max(self.votes_size, self.logs.sizes.get(VOTES, 0))
        return survey_log(self.index.path / VOTES, self.logs.mark, unsealed, size, read_vote)

    def _note_damage(
        self, file: str, survey: LogSurvey, lost: int, n_items: int, *, is_unlocated: bool = False
    ) -> None:
        is_unlocated = is_unlocated and n_items > 0
        if is_unlocated:
            what = (
                "the file does not match its checksum, and it is unknown which lines differ, because an "
                "older version wrote them without checksums"
            )
        elif n_items and not (self.index.path / file).exists():
            what = "the file is missing"
        elif survey.is_damaged or n_items:
            what = describe_lines(lost, survey.repeated, survey.moved)
        else:
            return
        self.index.damages.append(Damage(file=file, what=what, n_items=n_items, is_unlocated=is_unlocated))


def restore_logs(store: RunStore, index: RunIndex) -> None:
    """Restore intact votes to their original offsets; affected items lose their lines and are unfinished."""
    votes, items = index.surveys[VOTES], index.surveys[ITEMS]
    if votes.is_damaged:
        store.restore_log(VOTES, votes.lines)
    valid = {offset for offset in index.lines if offset >= 0}
    kept = [line for line in items.lines if line.offset in valid]
    open_from = min((offsets[0] for offsets in index.open_votes.values()), default=None)
    store.rewrite_items(kept, open_from, keep_damaged=items.is_damaged)
