"""Damage in a run folder: which lines of its files are lost, and which items count as not scored."""

from __future__ import annotations

import warnings
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autorubric.eval._folder import DATASET, ITEMS, PROMPTS, VOTES, Written
from autorubric.eval._lines import item_id_of, item_of_line
from autorubric.eval._log import LogSurvey, survey_log

if TYPE_CHECKING:
    from autorubric.dataset import RubricDataset
    from autorubric.eval._index import Places, RunIndex, Stand
    from autorubric.eval._store import RunStore

_REPAIR = {
    VOTES: "asks again for the votes that are lost, and for no others",
    ITEMS: "computes the scores again from the stored votes",
    DATASET: "with the same dataset restores the file, and asks for no vote again",
}
_RESTORE = {
    VOTES: "restores the file",
    ITEMS: "restores the file",
    DATASET: "with the same dataset restores the file",
    PROMPTS: "cannot restore what was sent and received for some votes",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Damage of one file of a run folder.

    Attributes:
        file: Name of the file.
        what: What is wrong with it.
        n_items: Items that count as not scored.
        is_unlocated: Which lines are damaged is unknown, since an older version wrote them without checksums.
    """

    file: str
    what: str
    n_items: int
    is_unlocated: bool = False

    def when_opened(self) -> str:
        """Return the notice of an opened run."""
        told = f"{self.file} is damaged: {self.what}."
        if not self.n_items:
            return f"{told} No score depends on it; resuming the run {_RESTORE[self.file]}"
        repair = "scores the votes as they are" if self.is_unlocated else _REPAIR[self.file]
        return f"{told} {_counted(self.n_items)} not scored; resuming the run {repair}"

    def when_resumed(self) -> str:
        """Return the notice of a resumed run."""
        told = f"{self.file} was damaged: {self.what}."
        if not self.n_items:
            return f"{told} No score depends on it"
        items = "1 item" if self.n_items == 1 else f"{self.n_items:,} items"
        return f"{told} {items} counted as not scored before the run was resumed"

    def doubt(self) -> str:
        """Return the notice that a run keeps whose damaged lines are unknown."""
        return (
            f"{self.file} did not match its checksum when the run was resumed, and which of its lines differ "
            "is unknown: scores may be wrong. Run again under another name to be certain"
        )


def warn_of_damage(notices: Iterable[str]) -> None:
    """Warn, so that damage is on stderr whatever is done with the result."""
    for notice in notices:
        warnings.warn(notice, RuntimeWarning, stacklevel=4)


def affected_by(file: str) -> str:
    """Return why an item has no score."""
    return f"{file} is damaged and this item counts as not scored; resume the run to repair it"


def lines_told(lost: int, repeated: int = 0, moved: int = 0) -> str:
    """Return what is wrong with the lines of a file."""
    told = [
        f"{count:,} {'line is' if count == 1 else 'lines are'} {what}"
        for count, what in ((lost, "damaged or missing"), (repeated, "repeated"), (moved, "out of order"))
        if count
    ]
    return ", ".join(told) or "lines are missing"


def _counted(n_items: int) -> str:
    return f"{n_items:,} {'item counts' if n_items == 1 else 'items count'} as"


@dataclass(kw_only=True)
class _Folder:
    """The intact lines of a folder.

    Attributes:
        items: Survey of `items.jsonl`.
        votes: Survey of `votes.jsonl`.
        by_item: Offsets that the intact votes of each item were written at.
        claims: By position, those that the item's latest intact line claims.
    """

    items: LogSurvey
    votes: LogSurvey
    by_item: Mapping[str, list[int]]
    claims: Mapping[int, Sequence[int]]


def survey_folder(
    index: RunIndex, dataset: RubricDataset, places: Places, stand: Stand, written: Written
) -> None:
    """Fill an index from the intact lines of a damaged folder, and note the items that are affected.

    Args:
        index: An empty index.
        dataset: The dataset.
        places: Says where a line's item is in the dataset.
        stand: The conditions that lines must have been written under.
        written: The manifest's entries about the logs.
    """
    folder = _surveyed(index, places, stand, written)
    lost_by_items = {at for claims in folder.claims.values() for at in claims}
    lost_by_items.difference_update(at for found in folder.by_item.values() for at in found)
    holes = [(hole, sum(at in hole for at in lost_by_items)) for hole in folder.votes.holes]
    is_unsealed = bool(written.unsealed.get(VOTES))
    # Of votes that no line claims, nobody knows whose they were.
    is_unknown = any(not claimed for _, claimed in holes)
    counts = {VOTES: 0, ITEMS: 0}
    for position, item_id in enumerate(dataset.item_ids()):
        found, claims = folder.by_item.get(item_id, []), folder.claims.get(position)
        if claims is None:
            is_lost = written.is_complete or (bool(found) and folder.items.is_damaged)
            file = ITEMS if is_lost else VOTES if found and is_unknown else None
        else:
            is_stale = folder.items.is_damaged and not set(found) <= set(claims)
            file = VOTES if is_unsealed or not set(claims) <= set(found) else ITEMS if is_stale else None
        if file is not None:
            index.set_aside(position, affected_by(file))
            counts[file] += 1
        unclaimed = found if file or claims is None else sorted(set(found) - set(claims))
        if unclaimed:
            index.unclaimed[item_id] = array("q", sorted(unclaimed))
    index.surveys = {VOTES: folder.votes, ITEMS: folder.items}
    lost = max(sum(max(claimed, 1) for _, claimed in holes), folder.votes.bad)
    _note(index, VOTES, folder.votes, lost, counts[VOTES], is_unsealed=is_unsealed)
    lost = max(len(folder.items.holes), folder.items.bad)
    _note(index, ITEMS, folder.items, lost, counts[ITEMS], is_unsealed=False)


def _surveyed(index: RunIndex, places: Places, stand: Stand, written: Written) -> _Folder:
    by_item: dict[str, list[int]] = {}
    latest: dict[int, tuple[int, Sequence[int]]] = {}
    sealed = 0

    def read_item(at: int, offset: int, raw: bytes) -> bool:
        nonlocal sealed
        try:
            item, seal = item_of_line(raw)
        except ValueError:
            return False
        index.count += 1
        sealed = max(sealed, seal.votes_size)
        position = places.of(item, at)
        if position is not None and at >= latest.get(position, (0,))[0]:
            latest[position] = at, item["votes"]
            index.note_line(position, offset, item, stand)
        return True

    def read_vote(at: int, offset: int, raw: bytes) -> bool:
        item_id = item_id_of(raw, is_intact=at >= unsealed)
        if item_id is None:
            return False
        by_item.setdefault(item_id, []).append(at)
        if at != offset:
            index.moved[at] = offset
        return True

    unsealed = written.unsealed.get(VOTES, 0)
    items = survey_log(
        index.path / ITEMS,
        written.mark,
        written.unsealed.get(ITEMS, 0),
        written.sizes.get(ITEMS, 0),
        read_item,
    )
    size = max(sealed, written.sizes.get(VOTES, 0))
    votes = survey_log(index.path / VOTES, written.mark, unsealed, size, read_vote)
    claims = {position: claimed for position, (_, claimed) in latest.items()}
    return _Folder(items=items, votes=votes, by_item=by_item, claims=claims)


def _note(
    index: RunIndex, file: str, survey: LogSurvey, lost: int, n_items: int, *, is_unsealed: bool
) -> None:
    is_unlocated = is_unsealed and n_items > 0
    if is_unlocated:
        what = (
            "it does not match its checksum, and an older version wrote it without a checksum for each line, "
            "so that which lines differ is unknown"
        )
    elif n_items and not (index.path / file).exists():
        what = "the file is missing"
    elif survey.is_damaged or n_items:
        what = lines_told(lost or (n_items if file == ITEMS else 0), survey.repeated, survey.moved)
    else:
        return
    index.damages.append(Damage(file=file, what=what, n_items=n_items, is_unlocated=is_unlocated))


def restore_logs(store: RunStore, index: RunIndex) -> None:
    """Put intact votes back where they were, and leave out the lines of items that are affected.

    Without their lines these items are unfinished, as if the run had been killed before they ended.
    """
    votes, items = index.surveys[VOTES], index.surveys[ITEMS]
    if votes.is_damaged:
        store.restore_log(VOTES, votes.pieces)
    lines = {offset for offset in index.lines if offset >= 0}
    kept = [one for one in items.pieces if one.offset in lines]
    unclaimed = min((one[0] for one in index.unclaimed.values()), default=None)
    store.rewrite_items(kept, unclaimed, keep_damaged=items.is_damaged)
