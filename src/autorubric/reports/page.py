"""The report of a run, or of its differences from another run, as one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from markupsafe import Markup

from autorubric.errors import ArgumentError, FileError, RunFormatError
from autorubric.metrics.audit.compare_judges import JudgeComparison, adjust_pvalues, compare_judges
from autorubric.metrics.core.item_scores import TRUTH, pair_items
from autorubric.metrics.core.scales import Array, Binary
from autorubric.metrics.core.votes_table import ANSWERED
from autorubric.metrics.figures.bias import BiasResult, bias
from autorubric.metrics.figures.distributions import score_distribution
from autorubric.reports import page_figures as _figures
from autorubric.reports.critique import CritiqueView, critique_section
from autorubric.reports.item_details import CHUNK, DetailWriter
from autorubric.reports.items import CellColumns, cell_columns, flag_counts, highlights, item_columns
from autorubric.reports.labelling import form_of
from autorubric.reports.read_run import ReadRun, RunView, VotedRun
from autorubric.reports.templates import (
    StringTable,
    answer_words,
    bias_figure,
    figure,
    number,
    page,
    script_json,
)
from autorubric.scoring.reports import run_headline
from autorubric.support.objects import Json, fewer_gc_collections
from autorubric.support.write import write_text_atomic


def _guidelines(run: ReadRun, rubric_of: Sequence[int]) -> list[list[str]]:
    # Rubrics with the same criteria count as one rubric, which may have several guidelines.
    found: list[dict[str, None]] = [{} for _ in range(max(rubric_of, default=-1) + 1)]
    for one, rubric in zip(run.item_results, rubric_of, strict=True):
        try:
            guidelines = run.dataset.get_item_rubric(one.item_idx).guidelines
        except ValueError:
            continue
        if guidelines:
            found[rubric][guidelines] = None
    return [list(each) for each in found]


def _grader_settings(run: ReadRun) -> dict[str, Any]:
    try:
        used = run.view.fingerprint
    except (FileError, RunFormatError) as error:
        return {"judges": [], "decisions": [], "why": str(error)}
    sampling, weights = _as_mapping(used.get("sampling")), _as_mapping(used.get("judge_weights"))
    samples = _as_mapping(sampling.get("samples"))
    judges = [
        {
            "name": name,
            "settings": _setting_pairs(
                {**_as_mapping(settings), "samples": samples.get(name), "weight": weights.get(name)}
            ),
        }
        for name, settings in _as_mapping(used.get("judges")).items()
    ]
    rest = {key: value for key, value in sampling.items() if key != "samples"}
    policies = {"cannot_assess": used.get("cannot_assess"), "escalation": used.get("escalation")}
    aggregation: dict[str, Any] = dict(_as_mapping(used.get("aggregation")))
    if fitted := aggregation.pop("calibrations", None):
        aggregation["calibrations"] = {one["judge"]: one["method"] for one in fitted}
    decisions = {**aggregation, **policies, **rest, "few_shot": used.get("few_shot")}
    return {"judges": judges, "decisions": _setting_pairs(decisions), "why": None}


def _as_mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _setting_pairs(settings: Mapping[str, Json]) -> list[list[str]]:
    """Return names and values of settings as text; unset settings are skipped, except the temperature."""
    shown = []
    for name, value in settings.items():
        if isinstance(value, Mapping):
            words: str | None = ", ".join(f"{key}: {answer_words(one)}" for key, one in value.items())
        else:
            words = None if value == [] else answer_words(value)
        if words is None and name == "temperature":
            words = "the provider's default"
        if words:
            shown.append([name, words])
    return shown


FORMAT: Final = 1
"""Version of the data format in the page."""

DEFAULT_MAX_CHARS: Final = 20_000
"""Default number of characters kept of a submission, prompt or reference."""

_LIBRARIES: Final = ("base.js", "store.js", "charts.js", "grid.js")
_VIEWS: Final = ("overview", "items", "heat", "item", "criteria", "judges", "setup", "compare")
_SCRIPTS: Final = (*_LIBRARIES, *(f"{view}.js" for view in _VIEWS), "app.js")


def write_report(
    run: RunView,
    path: str | Path,
    *,
    baseline: RunView | None = None,
    critique: CritiqueView | None = None,
    max_chars: int = DEFAULT_MAX_CHARS,
) -> None:
    """Write a run's report to an HTML file; see `report_html`.

    Raises:
        ArgumentError: If the baseline graded different items, or `max_chars` is negative.
        FileError: If the file cannot be written.
    """
    write_text_atomic(path, report_html(run, baseline=baseline, critique=critique, max_chars=max_chars))


@fewer_gc_collections()
def report_html(
    run: RunView,
    *,
    baseline: RunView | None = None,
    critique: CritiqueView | None = None,
    max_chars: int = DEFAULT_MAX_CHARS,
    live: Mapping[str, Any] | None = None,
) -> str:
    """Render a run as a self-contained HTML page that includes its styles, scripts and data.

    Args:
        run: The run, such as an `EvalResult`.
        baseline: A run of the same items to compare with.
        critique: A critique to show as a section of the page.
        max_chars: Maximum number of characters to keep of a submission, prompt or reference; truncated text
            is marked. 0 omits these texts. If they exceed 48 million characters in total, each is truncated
            further. Votes and their reasons (up to 8,000 characters) are always included.
        live: For a page served by a live server: the page's `version` and the number of stored `labels`. The
            page then polls the server for changes and sends labels to it.

    Raises:
        ArgumentError: If the baseline graded different items, or `max_chars` is negative.
    """
    if isinstance(max_chars, bool) or not isinstance(max_chars, int) or max_chars < 0:
        raise ArgumentError(f"max_chars must be a non-negative integer; got {max_chars!r}")
    voted = VotedRun.of(run)
    cells = CellColumns.of(voted)
    details = DetailWriter(voted, cells, max_chars)
    read = ReadRun.with_results(voted, details.add)
    details.end_chunk()
    found = _figures.RunFindings.of(read)
    strings = StringTable()
    items = item_columns(read, cells, strings, max_chars)
    criteria, judges = _figures.criteria(read, cells, found), _figures.judges(read, found)
    content: dict[str, Any] = {
        "format": FORMAT,
        "metrics": _figures.shown_on_pages(found, criteria, judges),
        "overview": _figures.overview(read, found),
        "first": highlights(read, cells),
        "counts": flag_counts(read, cells),
        "criteria": criteria,
        "judges": judges,
        "cells": cell_columns(read, cells, strings),
        "compare": None if baseline is None else comparison(read, cells, ReadRun.of(baseline), strings),
        "items": items,
        "setup": {"guidelines": _guidelines(read, items["rubric"]), **_grader_settings(read)},
        "chunk": CHUNK,
        "live": None if live is None else {**live, "forms": _forms(read)},
    }
    cut = {"most_chars": details.truncation.most, "n_cut": details.truncation.n_cut}
    content |= {"run": {**_run_summary(read, found), **cut}, "strings": strings.texts}
    n_finished = len(read.item_results)
    headline = run_headline(run.experiment_name, n_finished, read.table.n_items - n_finished)
    return page(
        title=f"{headline} · autorubric report",
        scripts=_SCRIPTS if live is None else (*_SCRIPTS[:-1], "live.js", _SCRIPTS[-1]),
        connects=live is not None,
        data={"data": script_json(content)}
        | {f"details-{at}": chunk for at, chunk in enumerate(details.chunks)},
        section=Markup("") if critique is None else critique_section(critique),
        template="page.html",
    )


def _forms(run: ReadRun) -> list[Json]:
    """Return the form for each criterion; None for kinds that only annotation pages can label."""
    forms: dict[str, Json] = {}
    for one in run.item_results:
        rubric = run.dataset.get_item_rubric(one.item_idx)
        for name, criterion in zip(rubric.names, rubric, strict=True):
            if name not in forms:
                form = form_of(criterion, {})
                forms[name] = form if form["kind"] in ("choice", "number") else None
    return [forms.get(criterion.name) for criterion in run.table.criteria]


def _run_summary(run: ReadRun, found: _figures.RunFindings) -> dict[str, Any]:
    view, usage = run.view, run.view.total_token_usage
    return {
        "name": view.experiment_name,
        "dataset": run.dataset.name,
        "started": view.started_at.isoformat(timespec="seconds"),
        "seconds": number(round((view.completed_at - view.started_at).total_seconds(), 1)),
        "n_items": len(run.item_results),
        "n_dataset": run.table.n_items,
        "n_failed": sum(one.report is None or one.report.score is None for one in run.item_results),
        "n_partly": sum(
            one.report is not None and one.report.score is not None and one.report.verdicts.lost > 0
            for one in run.item_results
        ),
        "verdicts": view.verdicts.to_dict(),
        "n_votes": int((run.table.sample >= 0).sum()),
        "cost": number(view.total_completion_cost),
        "tokens": usage.total_tokens if usage else None,
        "judges": list(run.table.judges),
        "has_truth": run.has_truth,
        "level": found.judges.confidence_level,
        "notices": list(view.notices),
        "warnings": list(found.judges.warnings),
    }


def comparison(run: ReadRun, cells: CellColumns, base: ReadRun, strings: StringTable) -> dict[str, Any]:
    """Compute the differences between a run and a baseline (run minus baseline), with items matched by id."""
    other = _match_items(run, base)
    mine, before = (
        [one.report.score if one.report else None for one in side.item_results] for side in (run, base)
    )
    theirs = [None if at is None else before[at] for at in other]
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
    both = [pair for pair in zip(mine, theirs, strict=True) if None not in pair]
    return {
        "name": base.view.experiment_name,
        "verdicts": [one.view.verdicts.to_dict() for one in (run, base)],
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
    }


def _match_items(run: ReadRun, base: ReadRun) -> list[int | None]:
    """Return, for each result of the run, the position of the same item in the baseline."""
    names = pair_items(base.dataset, run.dataset)
    places = {names[base.dataset.item_id(one.item_idx)]: at for at, one in enumerate(base.item_results)}
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
