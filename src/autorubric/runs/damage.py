"""Loading the index of a run folder, finding the items that lost lines, and restoring damaged logs."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from autorubric.errors import RunFormatError
from autorubric.runs.index import LineValidity, Positions, RunIndex, bytes_lost
from autorubric.runs.lines import item_id_of, item_of_line
from autorubric.runs.manifest import ITEMS, PROMPTS, VOTES, LogEntries
from autorubric.runs.notices import Damage, damage_error, describe_lines
from autorubric.support.record_log import LogSurvey, survey_log

if TYPE_CHECKING:
    from autorubric.datasets.dataset import RubricDataset
    from autorubric.runs.store import RunStore


def load_index(path: Path, dataset: RubricDataset, validity: LineValidity, logs: LogEntries) -> RunIndex:
    """Return the index of a run folder.

    Each line of an item is compared with its checksum. The votes before the last such line are verified
    together, by a checksum of `votes.jsonl` up to that point, and each later vote by its own checksum.
    If anything differs, every line of both files is read to find the affected items.
    """
    try:
        index = RunIndex.empty(path, len(dataset))
        positions = Positions(dataset, validity.dataset, logs.unsealed.get(ITEMS, 0))
        if not index.read(validity, positions, logs):
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
            item_id = item_id_of(raw, is_intact=at >= unsealed)
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
    """Restore intact votes to their original offsets, and drop the lines of affected items.

    Without their lines, these items are unfinished, as if the run had been killed before they finished.
    """
    votes, items = index.surveys[VOTES], index.surveys[ITEMS]
    if votes.is_damaged:
        store.restore_log(VOTES, votes.lines)
    valid = {offset for offset in index.lines if offset >= 0}
    kept = [line for line in items.lines if line.offset in valid]
    open_from = min((offsets[0] for offsets in index.open_votes.values()), default=None)
    store.rewrite_items(kept, open_from, keep_damaged=items.is_damaged)
