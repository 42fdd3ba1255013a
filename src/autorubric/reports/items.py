"""Columns of the items and cells of a run, with their marks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from autorubric.criteria.values import Submission
from autorubric.metrics.core.item_scores import PANEL, TRUTH
from autorubric.metrics.core.scales import Array
from autorubric.metrics.core.votes_table import ABSTAINED, ANSWERED, FAILED, STATUSES
from autorubric.reports.read_run import ReadItem, ReadRun, RunView, VotedRun
from autorubric.reports.templates import StringTable, number
from autorubric.scoring.reports import NEAR

WRONG, SPLIT, ABSTENTION, FAILURE = 1, 2, 4, 8
"""Marks of a cell, as bit flags.

In this order: the panel disagrees with the label; votes differ; a vote or the panel abstained; a vote or the
panel failed.
"""

_EXCERPT: Final = 90
_STATUS_CHARS: Final = dict(zip(STATUSES, "-aofnxu", strict=True))


@dataclass(frozen=True)
class CellColumns:
    """The panel's decisions, sorted by item and criterion, with their labels and marks; all `(n_cells,)`."""

    item: Array  # Position in the dataset.
    criterion: Array  # Position in the table.
    row: Array  # Row of the panel's decision in the table.
    truth: Array  # Row of the label; -1 if there is no label.
    flags: Array  # Marks; see `WRONG`.
    error: Array  # Distance from the label in [0, 1], 1 for another category, NaN if unknown.

    @classmethod
    def of(cls, run: VotedRun) -> CellColumns:
        table = run.table
        rows = table.rows_of(PANEL)
        rows = rows[np.lexsort((table.criterion[rows], table.item[rows]))]
        truth = run.labels_of(rows)
        error = _label_distances(run, rows, truth)
        flags = np.where(_are_wrong(run, rows, error), WRONG, 0)
        flags |= _vote_flags(run, table.cell_keys(rows))
        flags |= np.where(table.status[rows] == ABSTAINED, ABSTENTION, 0)
        flags |= np.where(table.status[rows] == FAILED, FAILURE, 0)
        return cls(table.item[rows], table.criterion[rows], rows, truth, flags, error)

    def spans(self, n_items: int) -> Array:
        """Return the offset of each item's first cell, followed by the total number of cells."""
        return np.searchsorted(self.item, np.arange(n_items + 1))


def _on_numbers(run: VotedRun, rows: Array) -> Array:
    """Return whether each row of the table is about a criterion whose answers are numbers."""
    levels = [one.level == "interval" for one in run.table.criteria]
    return np.array(levels or [False])[run.table.criterion[rows]]


def _label_distances(run: VotedRun, rows: Array, truth: Array) -> Array:
    """Return the distance of each decision from its label; NaN if either has no answer."""
    table = run.table
    found = np.full(len(rows), np.nan)
    there = (truth >= 0) & (table.status[rows] == ANSWERED)
    there[there] = table.status[truth[there]] == ANSWERED
    mine, labels = rows[there], truth[there]
    by_value = np.abs(table.value[mine] - table.value[labels])
    same = table.code[mine] == table.code[labels]
    has_codes = (table.code[mine] >= 0) & (table.code[labels] >= 0)
    levels = np.array([one.level for one in table.criteria], dtype=object)[table.criterion[mine]]
    has_distance = np.isin(levels, ("ordinal", "interval"))
    distance = np.where(has_distance & ~np.isnan(by_value), by_value, np.where(has_codes, 1.0, np.nan))
    # Different options count as wrong even if they have the same value.
    distance = np.where(has_codes & ~same & (distance == 0), 1e-6, distance)
    found[there] = np.where(has_codes & same, 0.0, distance)
    return found


def _are_wrong(run: VotedRun, rows: Array, error: Array) -> Array:
    numbers = _on_numbers(run, rows)
    with np.errstate(invalid="ignore"):
        return np.where(numbers, error > NEAR, error > 0)


def votes_by_cell(run: VotedRun) -> dict[int, list[tuple[str | None, bool]]]:
    """Return each vote's answer in words and whether it differs from the label, by cell, in report order."""
    rows = np.flatnonzero(run.table.sample >= 0)
    keys, truth = run.table.cell_keys(rows), run.labels_of(rows)
    wrong = _are_wrong(run, rows, _label_distances(run, rows, truth))
    found: dict[int, list[tuple[str | None, bool]]] = {}
    for key, words, is_wrong in zip(keys.tolist(), run.table.label[rows], wrong.tolist(), strict=True):
        found.setdefault(key, []).append((words, is_wrong))
    return found


def _vote_flags(run: VotedRun, keys: Array) -> Array:
    """Compute the marks from individual votes: split, abstained, failed."""
    table = run.table
    votes = np.flatnonzero(table.sample >= 0)
    at = np.searchsorted(np.sort(keys), table.cell_keys(votes))
    order = np.argsort(keys, kind="stable")
    at = np.minimum(at, max(len(keys) - 1, 0))
    inside = keys[order][at] == table.cell_keys(votes) if len(keys) else np.zeros(len(votes), dtype=bool)
    votes, place = votes[inside], order[at[inside]] if len(keys) else at[inside]
    flags = np.zeros(len(keys), dtype=np.int64)
    flags[place[table.status[votes] == ABSTAINED]] |= ABSTENTION
    flags[place[table.status[votes] == FAILED]] |= FAILURE
    # Textual feedback always differs, which says nothing about who is right.
    wordless = np.array([one.level != "text" for one in table.criteria] or [False])[table.criterion[votes]]
    answered = (table.status[votes] == ANSWERED) & wordless
    votes, place = votes[answered], place[answered]
    numbers = _on_numbers(run, votes)
    answers = _answer_numbers(table.code[votes], table.label[votes])
    for chosen, measure, least in ((~numbers, answers, 0.0), (numbers, table.value[votes], NEAR)):
        low, high = np.full(len(keys), np.inf), np.full(len(keys), -np.inf)
        np.fmin.at(low, place[chosen], measure[chosen])
        np.fmax.at(high, place[chosen], measure[chosen])
        flags[(high > low) & (high - low > least)] |= SPLIT
    return flags


def _answer_numbers(code: Array, label: Array) -> Array:
    """Return a number for each answer; equal answers get equal numbers."""
    words = np.array(["" if one is None else str(one) for one in label], dtype=object)
    known = {word: -2.0 - at for at, word in enumerate(dict.fromkeys(words.tolist()))}
    return np.where(code >= 0, code, [known[word] for word in words.tolist()]).astype(float)


def item_columns(run: ReadRun, cells: CellColumns, strings: StringTable, max_chars: int) -> dict[str, Any]:
    """Return the columns of the item list; excerpts of texts have at most `max_chars` characters."""
    results, scores = run.item_results, run.table.scores
    truth = scores.get(TRUTH)
    spans = cells.spans(run.table.n_items)
    rubrics: dict[tuple[int, ...], int] = {}
    columns: dict[str, list[Any]] = {name: [] for name in ("id", "score", "agreement", "cost", "seconds")}
    columns |= {"rubric": [], "error": [], "excerpt": []}
    for one in results:
        report = one.report
        columns["id"].append(run.dataset.item_id(one.item_idx))
        columns["score"].append(number(report.score) if report else None)
        columns["agreement"].append(number(report.mean_agreement) if report else None)
        columns["cost"].append(number(report.completion_cost) if report else None)
        columns["seconds"].append(number(round(one.duration_seconds, 3)))
        error = one.error or (report.error if report else None)
        columns["error"].append(strings.index_of(error[:300] if error else None))
        columns["excerpt"].append(excerpt_of(one)[:max_chars])
        at = tuple(cells.criterion[spans[one.item_idx] : spans[one.item_idx + 1]].tolist())
        columns["rubric"].append(rubrics.setdefault(at, len(rubrics)))
    if truth is not None and not np.isnan(truth).all():
        columns["truth"] = [number(truth[one.item_idx]) for one in results]
        columns["common"] = [number(scores[PANEL][one.item_idx]) for one in results]
    return {**columns, "rubrics": [list(one) for one in rubrics]}


def excerpt_of(result: ReadItem) -> str:
    """Return the beginning of the graded text."""
    submission = Submission.parse(result.item.submission)
    texts = submission.candidates.values() if submission.candidates else [submission.text or ""]
    return " ".join(" · ".join(text[: 2 * _EXCERPT] for text in texts).split())[:_EXCERPT]


def cell_columns(run: ReadRun, cells: CellColumns, strings: StringTable) -> dict[str, Any]:
    """Return the columns of the cells, in the order of the run's item results."""
    table, spans = run.table, cells.spans(run.table.n_items)
    order = [at for one in run.item_results for at in range(*spans[one.item_idx : one.item_idx + 2].tolist())]
    row, truth = cells.row[order], cells.truth[order]
    return {
        "status": "".join(_STATUS_CHARS[STATUSES[status]] for status in table.status[row].tolist()),
        "label": [strings.index_of(run.words(at)) for at in row.tolist()],
        "value": [number(value) for value in table.value[row].tolist()],
        "truth": [-1 if at < 0 else strings.index_of(run.words(at)) for at in truth.tolist()],
        "flags": cells.flags[order].tolist(),
    }


FLAGS: Final = {"wrong": WRONG, "split": SPLIT, "abstained": ABSTENTION, "failed": FAILURE}
"""The marks by name."""


@dataclass(frozen=True)
class Marks:
    """A run's items and cells by mark (see `FLAGS`), where a cell is one criterion of one item."""

    items: Mapping[str, frozenset[int]]  # Positions in the dataset; items without a score count as failed.
    cells: Mapping[str, frozenset[tuple[int, str]]]  # Position of the item, name of the criterion or part.


def marks_of(run: RunView) -> Marks:
    """Return the marked items and cells of a run."""
    read = ReadRun.of(run)
    cells = CellColumns.of(read)
    names = [one.name for one in read.table.criteria]
    found = {}
    for kind, flag in FLAGS.items():
        at = np.flatnonzero(cells.flags & flag)
        where = zip(cells.item[at].tolist(), cells.criterion[at].tolist(), strict=True)
        found[kind] = frozenset((item, names[criterion]) for item, criterion in where)
    return Marks(items=items_marked(read, cells), cells=found)


def items_marked(run: ReadRun, cells: CellColumns) -> dict[str, frozenset[int]]:
    """Return `Marks.items` of a run that is already read."""
    found = {kind: set(cells.item[(cells.flags & flag) > 0].tolist()) for kind, flag in FLAGS.items()}
    found["failed"] |= {
        one.item_idx for one in run.item_results if one.report is None or one.report.score is None
    }
    return {kind: frozenset(items) for kind, items in found.items()}


_MOST_PER_KIND: Final = 3


def highlights(run: ReadRun, cells: CellColumns) -> list[dict[str, Any]]:
    """Rank the items to inspect, by position in the run's results; each appears under its first kind."""
    places = {one.item_idx: at for at, one in enumerate(run.item_results)}
    found: list[dict[str, Any]] = []
    listed: set[int] = set()

    def add(kind: str, candidates: Iterable[tuple[int, int | None, str]]) -> None:
        left = _MOST_PER_KIND
        for item, criterion, why in candidates:
            if not left:
                return
            if item in places and item not in listed:
                listed.add(item)
                found.append({"kind": kind, "item": places[item], "criterion": criterion, "why": why})
                left -= 1

    add("failed", _failed_items(run, cells))
    add("wrong", _wrong_items(run, cells))
    add("split", _split_items(cells))
    abstained = _items_by_cells(cells, ABSTENTION)
    add("abstained", ((item, None, f"a vote abstains on {criteria}") for item, criteria, _ in abstained))
    scored = sorted(
        (one.report.score, one.item_idx)
        for one in run.item_results
        if one.report and one.report.score is not None
    )
    add("low", ((item, None, f"one of the lowest scores: {score:.2f}") for score, item in scored))
    return found


def flag_counts(run: ReadRun, cells: CellColumns) -> dict[str, dict[str, int]]:
    """Count the marked cells (one criterion of one item) and items, by mark."""
    marked = items_marked(run, cells)
    return {
        kind: {"cells": int(np.count_nonzero(cells.flags & flag)), "items": len(marked[kind])}
        for kind, flag in FLAGS.items()
    }


def _failed_items(run: ReadRun, cells: CellColumns) -> Iterable[tuple[int, int | None, str]]:
    for one in run.item_results:
        if one.report is None or one.report.score is None:
            yield one.item_idx, None, "has no score"
    lost = np.flatnonzero(run.table.status[cells.row] == FAILED)
    for at in lost.tolist():
        yield int(cells.item[at]), int(cells.criterion[at]), "could not be decided because its votes failed"
    for item, criteria, _ in _items_by_cells(cells, FAILURE):
        yield item, None, f"a vote failed on {criteria}"


def _wrong_items(run: ReadRun, cells: CellColumns) -> Iterable[tuple[int, int | None, str]]:
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
        words = f"{_shorten(label)} instead of {_shorten(truth)}"
        more = f", and {int(counts[item]) - 1} more" if counts[item] > 1 else ""
        yield int(item), int(cells.criterion[worst]), f"differs from the label: {words}{more}"


def _items_by_cells(cells: CellColumns, flag: int) -> Iterable[tuple[int, str, Array]]:
    """Yield each item with this mark, the number of its criteria in words and its cells; most cells first."""
    marked = np.flatnonzero(cells.flags & flag)
    items, starts, counts = np.unique(cells.item[marked], return_index=True, return_counts=True)
    for at in np.argsort(-counts, kind="stable"):
        n = int(counts[at])
        yield int(items[at]), f"{n} criteria" if n > 1 else "1 criterion", marked[starts[at] : starts[at] + n]


def _split_items(cells: CellColumns) -> Iterable[tuple[int, int | None, str]]:
    for item, criteria, mine in _items_by_cells(cells, SPLIT):
        yield item, int(cells.criterion[mine[0]]) if len(mine) == 1 else None, f"votes differ on {criteria}"


def _shorten(label: Any) -> str:
    text = str(label)
    return text if len(text) <= 40 else f"{text[:39]}…"
