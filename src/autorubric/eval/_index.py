"""Offsets of the line and the votes of each item in a run folder, in about ten bytes per item."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autorubric.dataset import RubricDataset
from autorubric.errors import RunFormatError
from autorubric.eval._damage import Damage, survey_folder
from autorubric.eval._differences import places_of
from autorubric.eval._folder import ITEMS, PROMPTS, VOTES, Written
from autorubric.eval._items import Tally
from autorubric.eval._lines import (
    ItemFields,
    Seal,
    StoredItem,
    StoredVote,
    item_id_of,
    item_of_line,
    parse_vote,
)
from autorubric.eval._log import LogSurvey, crc_of, is_intact, log_lines
from autorubric.eval._notices import Notices

_FEW = 4096


@dataclass(frozen=True, slots=True)
class Stand:
    """The conditions under which an item's line still holds.

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
        """Return whether a line was written under this."""
        if item["basis"] != self.basis:
            return False
        gone = self.earlier.get(item["dataset"])
        return item["dataset"] == self.dataset or (gone is not None and item["item_id"] not in gone)


@dataclass(kw_only=True)
class RunIndex:
    """Where the line and the votes of each item are.

    Attributes:
        path: The run folder.
        lines: By position, the offset of the item's latest line; -1 where it has none.
        current: By position, 1 where that line's figures are those of the run as it is now.
        settled: By position, 1 where moreover no vote of the item is to be cast again.
        unclaimed: Offsets of votes of items that are not finished, by item id.
        affected: By position, why an item counts as not scored: lines of it are damaged or missing.
        moved: Present offsets of votes that are not where they were written.
        damages: Damage of files.
        surveys: What is intact of the logs, by name, where one is damaged.
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
    affected: dict[int, str] = field(default_factory=dict)
    moved: dict[int, int] = field(default_factory=dict)
    damages: list[Damage] = field(default_factory=list)
    surveys: dict[str, LogSurvey] = field(default_factory=dict)
    count: int = 0
    votes_open: int = 0
    notices: Notices = field(default_factory=Notices)
    tally: Tally | None = None

    @classmethod
    def empty(cls, path: Path, n_items: int) -> RunIndex:
        """Return the index of a folder without items and votes."""
        lines = array("q", [-1]) * n_items
        return cls(path=path, lines=lines, current=bytearray(n_items), settled=bytearray(n_items))

    @classmethod
    def load(cls, path: Path, dataset: RubricDataset, stand: Stand, written: Written) -> RunIndex:
        """Return the index of a run folder.

        Every line of an item is compared with its checksum. Their votes are those that they were if
        `votes.jsonl` is, up to the size it had when the last of them was written, byte for byte what it was;
        each later vote is compared with its own checksum. Where anything differs, every line of both files is
        read, to find out which items are affected.

        Args:
            path: The run folder.
            dataset: The graded dataset.
            stand: The conditions that lines must have been written under.
            written: The manifest's entries about the logs.

        Raises:
            RunFormatError: If a file of it cannot be read.
        """
        try:
            index = cls.empty(path, len(dataset))
            places = Places(dataset, stand.dataset, written.unsealed.get(ITEMS, 0))
            if not index._read(stand, places, written):
                index = cls.empty(path, len(dataset))
                survey_folder(index, dataset, places, stand, written)
            index._compare_sizes(written)
        except OSError as error:
            raise RunFormatError(f"{error.filename or path} cannot be read: {error.strerror}") from error
        return index

    def _read(self, stand: Stand, places: Places, written: Written) -> bool:
        """Fill the index; False where a file is damaged."""
        if any(self._bytes_lost(log, written) > 0 for log in (VOTES, ITEMS)):
            return False
        seal, claimed, tally, repeated = Seal(-1, 0, 0, 0), _Claims(), Tally(), False
        unsealed = written.unsealed.get(ITEMS, 0)
        for number, offset, raw in log_lines(self.path / ITEMS, 0):
            if offset >= unsealed and not is_intact(raw, offset, written.mark):
                # The torn last line of a killed process is no damage; nothing is torn in a run that ended.
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
        # A run that ended without an item's line has lost it.
        is_complete = not written.is_complete or -1 not in self.lines
        return is_whole and is_counted and is_complete and self._find_unclaimed(seal, claimed, written)

    def note_line(self, position: int, offset: int, item: ItemFields, stand: Stand) -> None:
        """Note the line of an item; it takes the place of an earlier one."""
        self.lines[position] = offset
        self.current[position] = current = stand.of(item)
        self.settled[position] = current and not (item["lost"] or item["raised"])

    def set_aside(self, position: int, why: str) -> None:
        """Note that an item counts as not scored, since lines of it are damaged or missing."""
        self.affected[position] = why
        self.lines[position] = -1
        self.current[position] = self.settled[position] = 0

    def _find_unclaimed(self, seal: Seal, claimed: _Claims, written: Written) -> bool:
        """Note where votes are that no line of an item claims; False where one is damaged."""
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
            item_id = item_id_of(raw, is_intact=is_known)
            if item_id is None:
                # Where reading began in the middle, lines cannot be numbered.
                self.pass_over(VOTES, f"line {number}" if not seal.votes_open else f"at byte {offset}")
                continue
            self.unclaimed.setdefault(item_id, array("q")).append(offset)
        return True

    def pass_over(self, file: str, where: str) -> None:
        """Note a line that cannot be read."""
        kind = f"lines of {file} are torn or damaged and were passed over"
        self.notices.add(kind, f"{file} {where} is torn or damaged and was passed over")

    def _bytes_lost(self, log: str, written: Written) -> int:
        """Bytes by which a log is shorter than when the run ended."""
        file = self.path / log
        return written.sizes.get(log, 0) - (file.stat().st_size if file.exists() else 0)

    def _compare_sizes(self, written: Written) -> None:
        lost = self._bytes_lost(PROMPTS, written)
        if lost > 0:
            what = f"{lost:,} bytes are missing"
            self.damages.append(Damage(file=PROMPTS, what=what, n_items=0))

    def line(self, position: int) -> StoredItem | None:
        """Return the latest line of the item at a position; None if it has none."""
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
        """Yield the votes of an item at these offsets, each with its offset; a torn one is left out.

        Raises:
            RunFormatError: If where a line of the item says that a vote stands, there is none: the folder was
                changed by other means than a run since it was opened.
        """
        if not offsets:
            return
        lenient = self.unclaimed.get(item_id, ())
        with (self.path / VOTES).open("rb") as file:
            for offset in offsets:
                file.seek(self.moved.get(offset, offset))
                try:
                    vote = parse_vote(file.readline())
                    if vote.item_id != item_id:
                        raise ValueError("another item's")
                except ValueError:
                    if offset in lenient:
                        continue
                    raise RunFormatError(
                        f"{self.path / VOTES} was changed since the run was opened; open it again with "
                        "EvalResult.from_experiment, or resume the run"
                    ) from None
                yield offset, vote

    def finished(self, item: StoredItem, offset: int) -> None:
        """Note that the line of an item was written, and where; it claims all votes of the item."""
        self.lines[item.position] = offset
        self.current[item.position] = self.settled[item.position] = 1
        self.unclaimed.pop(item.item_id, None)
        self.tally = None

    def current_lines(self) -> Iterator[StoredItem]:
        """Yield the lines whose figures are those of the run as it is now, in the order of the file."""
        moved: dict[int, int] | None = None
        for _, offset, raw in log_lines(self.path / ITEMS, 0):
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


class Places:
    """Says where in a dataset the item of a line is: by its id.

    A line with a checksum that was written for this very dataset, by its digest, says the position itself.

    Args:
        dataset: The dataset.
        digest: Its digest, as in lines.
        unsealed: Bytes of lines without a checksum.
    """

    def __init__(self, dataset: RubricDataset, digest: str, unsealed: int) -> None:
        self._dataset = dataset
        self._digest = digest
        self._unsealed = unsealed
        self._count = len(dataset)
        self._ids: dict[str, int] | None = None

    def of(self, item: ItemFields, at: int) -> int | None:
        """Return the position; None if the dataset does not have the item any more.

        Args:
            item: The content of a line.
            at: The offset that the line was written at.
        """
        if at >= self._unsealed and item["dataset"] == self._digest and item["position"] < self._count:
            position: int = item["position"]
            return position
        if self._ids is None:
            self._ids = places_of(self._dataset)
        return self._ids.get(item["item_id"])


class _Claims:
    """Offsets of votes that lines of items claim, as far as the last of these lines leaves votes open."""

    def __init__(self) -> None:
        self._offsets: set[int] = set()
        self._most = _FEW

    def add(self, item: ItemFields, seal: Seal) -> None:
        """Note what a line claims, and forget what lies before the votes it leaves open."""
        self._offsets.update(item["votes"])
        if len(self._offsets) > self._most:
            self._offsets = {offset for offset in self._offsets if offset >= seal.votes_open}
            self._most = max(_FEW, 2 * len(self._offsets))

    def __contains__(self, offset: int) -> bool:
        return offset in self._offsets
