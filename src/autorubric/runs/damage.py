"""Damage in a run folder: finding lost lines and the items that count as not scored because of them."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from autorubric.errors import RunFormatError
from autorubric.runs.index import Places, RunIndex, Stand
from autorubric.runs.items import Damage, affected_by, lines_told
from autorubric.runs.lines import item_id_of, item_of_line
from autorubric.runs.log import ITEMS, VOTES, LogSurvey, Written, survey_log

if TYPE_CHECKING:
    from autorubric.datasets.dataset import RubricDataset
    from autorubric.runs.store import RunStore


def load_index(path: Path, dataset: RubricDataset, stand: Stand, written: Written) -> RunIndex:
    """Return the index of a run folder.

    Each line of an item is compared with its checksum. The votes before the last such line are verified
    together, by a checksum of `votes.jsonl` up to that point, and each later vote by its own checksum.
    If anything differs, every line of both files is read to find the affected items.
    """
    try:
        index = RunIndex.empty(path, len(dataset))
        places = Places(dataset, stand.dataset, written.unsealed.get(ITEMS, 0))
        if not index.read(stand, places, written):
            index = RunIndex.empty(path, len(dataset))
            _survey_folder(index, dataset, places, stand, written)
        index.compare_sizes(written)
    except OSError as error:
        raise RunFormatError(f"{error.filename or path} cannot be read: {error.strerror}") from error
    return index


@dataclass(kw_only=True)
class _Folder:
    """The intact lines of a folder.

    Attributes:
        items: Survey of `items.jsonl`.
        votes: Survey of `votes.jsonl`.
        by_item: Original offsets of the intact votes on each item, by item id.
        claims: Offsets of the votes that each item's latest intact line lists, by position.
    """

    items: LogSurvey
    votes: LogSurvey
    by_item: Mapping[str, list[int]]
    claims: Mapping[int, Sequence[int]]


def _survey_folder(
    index: RunIndex, dataset: RubricDataset, places: Places, stand: Stand, written: Written
) -> None:
    """Fill an index from the intact lines of a damaged folder, and record the affected items."""
    folder = _surveyed(index, places, stand, written)
    lost_by_items = {at for claims in folder.claims.values() for at in claims}
    lost_by_items.difference_update(at for found in folder.by_item.values() for at in found)
    holes = [(hole, sum(at in hole for at in lost_by_items)) for hole in folder.votes.holes]
    is_unsealed = bool(written.unsealed.get(VOTES))
    # It is unknown to which items lost votes belong that no line claims.
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
            "the file does not match its checksum, and it is unknown which lines differ, because an older "
            "version wrote them without checksums"
        )
    elif n_items and not (index.path / file).exists():
        what = "the file is missing"
    elif survey.is_damaged or n_items:
        what = lines_told(lost or (n_items if file == ITEMS else 0), survey.repeated, survey.moved)
    else:
        return
    index.damages.append(Damage(file=file, what=what, n_items=n_items, is_unlocated=is_unlocated))


def restore_logs(store: RunStore, index: RunIndex) -> None:
    """Restore intact votes to their original offsets, and drop the lines of affected items.

    Without their lines, these items are unfinished, as if the run had been killed before they finished.
    """
    votes, items = index.surveys[VOTES], index.surveys[ITEMS]
    if votes.is_damaged:
        store.restore_log(VOTES, votes.pieces)
    lines = {offset for offset in index.lines if offset >= 0}
    kept = [one for one in items.pieces if one.offset in lines]
    unclaimed = min((one[0] for one in index.unclaimed.values()), default=None)
    store.rewrite_items(kept, unclaimed, keep_damaged=items.is_damaged)
