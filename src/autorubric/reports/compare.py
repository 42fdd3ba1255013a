"""Comparison of two runs on the same items, with paired intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.audit.compare_judges import JudgeComparison, adjust_pvalues, compare_judges
from autorubric.metrics.core.item_scores import TRUTH
from autorubric.metrics.core.scales import Array, Binary
from autorubric.metrics.core.votes_table import ANSWERED
from autorubric.metrics.figures.bias import BiasResult, bias
from autorubric.metrics.figures.distributions import score_distribution
from autorubric.reports.items import CellColumns
from autorubric.reports.templates import StringTable, bias_figure, figure, number
from autorubric.reports.view import ReadRun


def comparison(run: ReadRun, cells: CellColumns, base: ReadRun, strings: StringTable) -> dict[str, Any]:
    """Compute the differences between a run and a baseline (run minus baseline), with items matched by id."""
    other = _match_items(run, base)
    mine = [one.report.score if one.report else None for one in run.item_results]
    theirs = [None if at is None else _score(base, at) for at in other]
    changed = [0] * len(mine)
    answers = _base_answers(run, cells, base, other)
    spans = cells.spans(run.table.n_items)
    labels: list[int] = []
    for place, one in enumerate(run.item_results):
        for at in range(int(spans[one.item_idx]), int(spans[one.item_idx + 1])):
            row = answers[at]
            labels.append(-1 if row < 0 else strings.index_of(base.words(row)))
            if row >= 0 and base.table.label[row] != run.table.label[cells.row[at]]:
                changed[place] += 1
    found = bias(theirs, mine)
    both = [(own, before) for own, before in zip(mine, theirs, strict=True) if None not in (own, before)]
    return {
        "name": base.view.experiment_name,
        "verdicts": [run.verdicts().to_dict(), base.verdicts().to_dict()],
        "n_both": sum(at is not None for at in other),
        "n_only_run": sum(at is None for at in other),
        "n_only_base": len(base.item_results) - sum(at is not None for at in other),
        "score": bias_figure(found),
        "score_p": number(found.p_value),
        "means": [number(score_distribution([pair[side] for pair in both]).mean) for side in (0, 1)],
        "headline": _headline(run, cells, base, answers, mine, theirs),
        "stat": "accuracy",
        "criteria": _by_criterion(run, cells, base, answers),
        "scores": [number(one) for one in theirs],
        "changed": changed,
        "labels": labels,
        "same_names": base.view.experiment_name == run.view.experiment_name,
    }


def _match_items(run: ReadRun, base: ReadRun) -> list[int | None]:
    """Return, for each result of the run, the position of the same item in the baseline."""
    places = {base.dataset.item_id(one.item_idx): at for at, one in enumerate(base.item_results)}
    found = [places.get(run.dataset.item_id(one.item_idx)) for one in run.item_results]
    if not any(at is not None for at in found):
        raise ArgumentError(
            f"the runs {run.view.experiment_name!r} and {base.view.experiment_name!r} have no item in "
            "common; pass another run of the same dataset as the baseline"
        )
    for one, at in zip(run.item_results, found, strict=True):
        if at is None:
            continue
        texts = (one.item.submission, base.item_results[at].item.submission)
        if None not in texts and texts[0] != texts[1]:
            raise ArgumentError(
                f"item {run.dataset.item_id(one.item_idx)!r} has a different text in the baseline "
                f"{base.view.experiment_name!r}; pass another run of the same dataset as the baseline"
            )
    return found


def _score(run: ReadRun, at: int) -> float | None:
    report = run.item_results[at].report
    return report.score if report else None


def _base_answers(run: ReadRun, cells: CellColumns, base: ReadRun, other: Sequence[int | None]) -> Array:
    """Return, for each cell, the row of the baseline's decision; -1 if there is no such decision."""
    matched = {
        one.item_idx: base.item_results[at].item_idx
        for one, at in zip(run.item_results, other, strict=True)
        if at is not None
    }
    places = {one: at for at, one in enumerate(base.table.criteria)}
    rows = base.by_cell(("panel", "panel"))
    width = max(len(base.table.criteria), 1)
    found = np.full(len(cells.row), -1, dtype=np.int64)
    for at, (item, criterion) in enumerate(zip(cells.item.tolist(), cells.criterion.tolist(), strict=True)):
        place = places.get(run.table.criteria[criterion])
        if place is not None and item in matched:
            found[at] = rows.get(matched[item] * width + place, -1)
    return found


def _headline(
    run: ReadRun,
    cells: CellColumns,
    base: ReadRun,
    answers: Array,
    mine: Sequence[Any],
    theirs: Sequence[Any],
) -> list[dict[str, Any]]:
    """Compare both runs with the ground truth, if there is any."""
    truth = run.table.scores.get(TRUTH)
    if truth is None or not (cells.truth >= 0).any():
        return []
    labels, own, others = _answer_codes(run, cells, base, answers)
    there = np.where(labels >= 0, 1.0, np.nan)
    rights = [np.where(side >= 0, (side == labels).astype(float), np.nan) for side in (own, others)]
    right = compare_judges(there, rights[0], rights[1], stat="accuracy", scale=Binary(), cluster=cells.item)
    graded = [truth[one.item_idx] for one in run.item_results]
    error = compare_judges(graded, mine, theirs, stat="mae")
    return [
        {"name": "proportion of correct answers", "better": 1, **_comparison_json(right)},
        {"name": "mean error of scores", "better": -1, **_comparison_json(error)},
    ]


def _answer_codes(
    run: ReadRun, cells: CellColumns, base: ReadRun, answers: Array
) -> tuple[Array, Array, Array]:
    """Return the codes of label, run and baseline by cell; -1 where there is no answer."""

    def codes_of(table: Any, rows: Array) -> Array:
        there = rows >= 0
        found = np.full(len(rows), -1, dtype=np.int64)
        answered = table.status[rows[there]] == ANSWERED
        found[there] = np.where(answered, table.code[rows[there]], -1)
        return found

    # Outcomes of comparisons are numbered in each table on its own.
    listed = np.array([one.level != "ranking" for one in run.table.criteria], dtype=bool)[cells.criterion]
    sides = (codes_of(run.table, cells.truth), codes_of(run.table, cells.row), codes_of(base.table, answers))
    labels, own, others = (np.where(listed, side, -1) for side in sides)
    return labels, own, others


def _by_criterion(run: ReadRun, cells: CellColumns, base: ReadRun, answers: Array) -> list[dict[str, Any]]:
    labels, own, others = _answer_codes(run, cells, base, answers)
    rows: list[tuple[int, BiasResult, JudgeComparison | None]] = []
    for at in range(len(run.table.criteria)):
        mine = np.flatnonzero(cells.criterion == at)
        both = mine[answers[mine] >= 0]
        if not len(both):
            continue
        values = bias(_answered_values(base, answers[both]), _answered_values(run, cells.row[both]))
        right = None
        if (labels[both] >= 0).any():
            size = max(len(run.table.criteria[at].answers), 1)
            codes = [np.where(side[both] < 0, np.nan, side[both]) for side in (labels, own, others)]
            right = compare_judges(codes[0], codes[1], codes[2], stat="accuracy", labels=size)
        rows.append((at, values, right))
    adjusted = adjust_pvalues([values.p_value for _, values, _ in rows], "holm")
    of_right = adjust_pvalues([None if one is None else one.p_value for _, _, one in rows], "holm")
    return [
        {
            "at": at,
            "value": bias_figure(values),
            "p": number(p),
            "answers": None if right is None else {**_comparison_json(right), "p": number(q)},
        }
        for (at, values, right), p, q in zip(rows, adjusted, of_right, strict=True)
    ]


def _answered_values(run: ReadRun, rows: Array) -> Array:
    """Return the values of decisions; NaN where the panel failed or unreadable replies decided."""
    answered = run.table.status[rows] == ANSWERED
    return np.where(answered, run.table.value[rows], np.nan)


def _comparison_json(found: JudgeComparison) -> dict[str, Any]:
    return {
        "run": figure(found.a),
        "base": figure(found.b),
        "difference": figure(found.difference),
        "p": number(found.p_value),
    }
