"""A short ranked list of items to inspect first, with reasons."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from autorubric.metrics._votes_table import FAILED
from autorubric.report._items import ABSTENTION, FAILURE, SPLIT, WRONG, Cells
from autorubric.report._marks import FLAGS, items_marked
from autorubric.report._view import ReadRun

_EACH: Final = 3


def first_looks(run: ReadRun, cells: Cells) -> list[dict[str, Any]]:
    """Rank the items to inspect: failures, wrong answers, split votes, abstentions, lowest scores.

    Each kind lists at most `_EACH` items, and each item appears once, under its first kind. `item` is a
    position in the run's results, `criterion` a position in the table.
    """
    places = {one.item_idx: at for at, one in enumerate(run.item_results)}
    found: list[dict[str, Any]] = []
    told: set[int] = set()

    def add(kind: str, candidates: Iterable[tuple[int, int | None, str]]) -> None:
        left = _EACH
        for item, criterion, why in candidates:
            if not left:
                return
            if item in places and item not in told:
                told.add(item)
                found.append({"kind": kind, "item": places[item], "criterion": criterion, "why": why})
                left -= 1

    add("failed", _failures(run, cells))
    add("wrong", _wrong(run, cells))
    add("split", _split(run, cells))
    add("abstained", _abstained(cells))
    add("low", _lowest(run))
    return found


def flag_counts(run: ReadRun, cells: Cells) -> dict[str, dict[str, int]]:
    """Count the marked cells (one criterion of one item) and items, by mark."""
    marked = items_marked(run, cells)
    return {
        kind: {"cells": int(np.count_nonzero(cells.flags & flag)), "items": len(marked[kind])}
        for kind, flag in FLAGS.items()
    }


def _failures(run: ReadRun, cells: Cells) -> Iterable[tuple[int, int | None, str]]:
    for one in run.item_results:
        if one.report is None or one.report.score is None:
            yield one.item_idx, None, "has no score"
    lost = np.flatnonzero(run.table.status[cells.row] == FAILED)
    for at in lost.tolist():
        yield int(cells.item[at]), int(cells.criterion[at]), "could not be decided because its votes failed"
    items, counts = np.unique(cells.item[(cells.flags & FAILURE) > 0], return_counts=True)
    for at in np.argsort(-counts, kind="stable"):
        yield int(items[at]), None, f"a vote failed on {_criteria(int(counts[at]))}"


def _wrong(run: ReadRun, cells: Cells) -> Iterable[tuple[int, int | None, str]]:
    wrong = np.flatnonzero(cells.flags & WRONG)
    totals = np.bincount(cells.item[wrong], weights=np.nan_to_num(cells.error[wrong], nan=0.0))
    counts = np.bincount(cells.item[wrong])
    # Ranked by the total distance of the item's answers from its labels.
    for item in np.argsort(-totals, kind="stable"):
        if not counts[item]:
            return
        mine = wrong[cells.item[wrong] == item]
        worst = mine[np.argmax(cells.error[mine])]
        label, truth = run.words(cells.row[worst]), run.words(cells.truth[worst])
        words = f"{_short(label)} instead of {_short(truth)}"
        more = f", and {int(counts[item]) - 1} more" if counts[item] > 1 else ""
        yield int(item), int(cells.criterion[worst]), f"differs from the label: {words}{more}"


def _split(run: ReadRun, cells: Cells) -> Iterable[tuple[int, int | None, str]]:
    split = np.flatnonzero(cells.flags & SPLIT)
    items, counts = np.unique(cells.item[split], return_counts=True)
    for at in np.argsort(-counts, kind="stable"):
        first = split[cells.item[split] == items[at]][0]
        one = int(counts[at]) == 1
        yield (
            int(items[at]),
            int(cells.criterion[first]) if one else None,
            f"votes differ on {_criteria(int(counts[at]))}",
        )


def _abstained(cells: Cells) -> Iterable[tuple[int, int | None, str]]:
    items, counts = np.unique(cells.item[(cells.flags & ABSTENTION) > 0], return_counts=True)
    for at in np.argsort(-counts, kind="stable"):
        yield int(items[at]), None, f"a vote abstains on {_criteria(int(counts[at]))}"


def _lowest(run: ReadRun) -> Iterable[tuple[int, int | None, str]]:
    scored = [
        (one.report.score, one.item_idx)
        for one in run.item_results
        if one.report and one.report.score is not None
    ]
    for score, item in sorted(scored):
        yield item, None, f"one of the lowest scores: {score:.2f}"


def _criteria(count: int) -> str:
    return f"{count} criteria" if count > 1 else "1 criterion"


def _short(label: Any) -> str:
    text = str(label)
    return text if len(text) <= 40 else f"{text[:39]}…"
