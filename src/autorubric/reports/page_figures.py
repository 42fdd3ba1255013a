"""Metrics of the run, its criteria and its judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from autorubric.metrics.audit.bias import BIASES, SURE, BiasReport, bias_report
from autorubric.metrics.audit.item_analysis import ItemAnalysis, item_analysis
from autorubric.metrics.core.item_scores import TRUTH
from autorubric.metrics.core.metric import SIGNED, MetricDisplay, Page, Result
from autorubric.metrics.core.scales import Array, Interval
from autorubric.metrics.core.votes_table import ABSTAINED, ANSWERED, FAILED, NOT_APPLICABLE, Outcome
from autorubric.metrics.figures.distributions import score_distribution
from autorubric.metrics.figures.specs import shown_metrics
from autorubric.metrics.summaries.highlights import PanelAndBest
from autorubric.metrics.summaries.judge_report import judge_report
from autorubric.metrics.summaries.probability_figures import FIGURES
from autorubric.metrics.summaries.rater_report import metric_on
from autorubric.metrics.summaries.reliability import TITLES, pair_agreements
from autorubric.metrics.summaries.report_result import JudgeReport
from autorubric.metrics.summaries.run_comparison import RunComparison, compare_run
from autorubric.reports.items import FLAGS, CellColumns
from autorubric.reports.read_run import ReadRun
from autorubric.reports.templates import figure, number
from autorubric.scoring.policies import RubricGroup

BINS: Final = 20

CATEGORICAL: Final = ("binary", "nominal", "ordinal", "ranking")
"""Levels that the headline figures average over."""

MOST_IN_PAIRS: Final = 12
"""Maximum number of judges compared pairwise; more judges would dominate the computing time."""

MOST_IN_MATRIX: Final = 24
"""Maximum number of raters in the agreement matrix; beyond it, people are omitted, then the whole matrix."""

CONFUSING: Final = 8
"""Number of items listed as the most confusing on a criterion's page."""


_BIASES: Final = {
    "leniency": (
        "Leniency",
        "asymmetry of errors: mean error at a label of ½; for MET/UNMET (FPR − FNR) / 2",
    ),
    "length_lean": ("Length", "longer − shorter half of the texts, at the same label"),
    "position_lean": ("Position", "win rate of the candidate shown first − ½"),
    "self_preference": (
        "Own family",
        "texts by the judge's own model family − other texts, at the same label",
    ),
    "mean_difference": ("Mean difference", "judge − label, values on 0 to 1; depends on the base rate"),
    "pass_rate_difference": ("Pass rate", "judge − label; depends on the base rate"),
}
"""Heading and explanation of each kind of bias."""


_STATS: Final = {"accuracy": "proportion of correct answers", "mae": "mean error of values (lower is better)"}
"""Metrics by which judges are compared in pairs."""


@dataclass(frozen=True)
class RunFindings:
    """The metrics of a run."""

    judges: JudgeReport
    biases: BiasReport
    items: ItemAnalysis
    pairs: RunComparison | None  # None without labels or with too many judges.

    @classmethod
    def of(cls, run: ReadRun) -> RunFindings:
        return cls(
            judges=judge_report(run.table),
            biases=bias_report(run.table, run.dataset),
            items=item_analysis(run.table, run.dataset),
            pairs=compare_run(run.table)
            if run.has_truth and len(run.table.judges) <= MOST_IN_PAIRS
            else None,
        )


def outcome_name(outcome: Outcome) -> str:
    """Describe the outcome of a comparison by positions, since candidate names differ between items."""
    match outcome:
        case (0, 1):
            return "first"
        case (1, 0):
            return "second"
        case (0, 0):
            return "tie"
    return ", ".join(str(above + 1) for above in outcome)


def overview(run: ReadRun, found: RunFindings) -> dict[str, Any]:
    """Return the headline metrics and the distribution of scores."""
    scores = [one.report.score if one.report else None for one in run.item_results]
    panel = found.judges.panel
    means = panel.macro
    spread = score_distribution(scores, bins=BINS, scale=_unit_interval(scores))
    content: dict[str, Any] = {
        **{name: number(getattr(spread, name)) for name in ("mean", "median", "std", "q25", "q75")},
        "n_scored": spread.n_samples,
        "edges": [number(edge) for edge in spread.bin_edges],
        "counts": list(spread.bin_counts),
        "metrics": {one.key: figure(getattr(means, one.key)) for one in _metrics_on("overview")},
        "coverage": number(panel.coverage),
    }
    if panel.scores is not None:
        truth = run.table.scores[TRUTH]
        graded = [truth[one.item_idx] for one in run.item_results]
        content["truth_counts"] = list(
            score_distribution(graded, bins=BINS, scale=_unit_interval(graded)).bin_counts
        )
        content["same_edges"] = (
            _unit_interval(graded) == _unit_interval(scores) == Interval(low=0.0, high=1.0)
        )
    return content


def shown_on_pages(
    found: RunFindings, criteria: Sequence[Mapping[str, Any]], judges: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the names of metrics, and the tiles and columns of each view."""
    applies = found.judges.macro.defined
    rows: list[Mapping[str, Any]] = judges["rows"]

    def has_value(metric: MetricDisplay) -> bool:
        return any(row["metrics"][metric.key]["v"] is not None for row in rows)

    # A metric of some scales only has a column if there are such criteria.
    columns = {
        "overview": [one for one in _metrics_on("overview") if applies[one.key][1] or _on_all(one, "report")],
        "criteria": [
            one for one in _metrics_on("criteria") if any(one.key in row["metrics"] for row in criteria)
        ],
        "judges": [one for one in _metrics_on("judges") if has_value(one) or _on_all(one, "report")],
    }
    content: dict[str, Any] = {
        "reliability": {"key": "alpha", "name": "Judges' alpha"},
        "names": dict(TITLES) | {one.key: one.title for one in shown_metrics() if one.where["agreement"]},
    }
    for view, metrics in columns.items():
        # Metrics with a plot come first in tables.
        in_order = sorted(metrics, key=lambda one: view != "overview" and one.bounds != SIGNED)
        content[view] = [
            {
                "key": one.key,
                "name": one.tile if view == "overview" else one.column,
                "share": one.bounds == (0.0, 1.0),
                "plot": one.bounds == SIGNED,
                "about": one.explanation or None,
            }
            for one in in_order
        ]
    return content


def _metrics_on(view: Page) -> list[MetricDisplay]:
    part: Result = "agreement" if view == "criteria" else "report"
    return [one for one in shown_metrics() if view in one.pages and one.where[part]]


def _on_all(metric: MetricDisplay, part: Result) -> bool:
    """Return whether a metric applies at every level of categorical criteria."""
    return set(CATEGORICAL) <= {*metric.where[part], "ranking"}


def _unit_interval(scores: Any) -> Interval | None:
    """Return the range from 0 to 1 if it contains all scores; None otherwise."""
    there = [one for one in scores if one is not None and not np.isnan(one)]
    return Interval(low=0.0, high=1.0) if all(0 <= one <= 1 for one in there) else None


def criteria(run: ReadRun, cells: CellColumns, found: RunFindings) -> list[dict[str, Any]]:
    """Return the metrics of each criterion, in the order of the table."""
    declared = _declared_criteria(run)
    analysed = {one.name: one for one in found.items.criteria}
    places = {one.item_idx: at for at, one in enumerate(run.item_results)}
    rows = []
    for at, (name, measured) in enumerate(zip(run.names, run.table.criteria, strict=True)):
        mine = np.flatnonzero(cells.criterion == at)
        rows.append(
            {
                **declared.get(measured.name, {}),
                "name": name,
                "level": measured.level,
                "cells": len(mine),
                "metrics": {},
                **_criterion_answers(run, cells, at, mine),
                **_criterion_figures(run, found, at, analysed.get(name)),
                **_comparisons(found, name),
                "confusing": _confusing_items(cells, mine, places),
            }
        )
    return rows


def _criterion_answers(run: ReadRun, cells: CellColumns, at: int, mine: Array) -> dict[str, Any]:
    """Return how often each answer to a criterion was given and is the label; `mine` are its cells."""
    content: dict[str, Any] = {}
    measured = run.table.criteria[at]
    content["answers"] = [[one.label or str(one.code), number(one.value)] for one in measured.answers]
    content["given"] = _count_answers(run, cells.row[mine], len(measured.answers))
    numbers = run.table.number[cells.row[mine]]
    if measured.level == "interval" and not np.isnan(numbers).all():
        spread = score_distribution(numbers, bins=BINS)
        content["spread"] = {
            "edges": [number(edge) for edge in spread.bin_edges],
            "counts": list(spread.bin_counts),
        }
    truth = cells.truth[mine]
    if (truth >= 0).any():
        content["labelled"] = _count_answers(run, truth[truth >= 0], len(measured.answers))
    return content


def _criterion_figures(run: ReadRun, found: RunFindings, at: int, analysed: Any) -> dict[str, Any]:
    """Return the metrics of a criterion."""
    content: dict[str, Any] = {}
    name, measured = run.names[at], run.table.criteria[at]
    if analysed is not None:
        content |= {
            "mean": figure(analysed.mean),
            "discrimination": figure(analysed.discrimination)
            if len(run.names) > 1
            else {"v": None, "why": "the rubric has only one criterion"},
            "upper_lower": figure(analysed.upper_lower),
        }
    agreed = found.judges.per_criterion.get(name)
    if agreed is not None:
        content["figures"] = {key: figure(one) for key, one in agreed.figures().items()}
        content["metrics"] = {
            one.key: figure(metric_on(agreed, one.key))
            for one in _metrics_on("criteria")
            if measured.level in one.where["agreement"] or _on_all(one, "agreement")
        }
        content["n"] = agreed.n
        if agreed.table and any(map(any, agreed.table)):
            outcomes = run.table.outcomes.get(at)
            labels = [outcome_name(one) for one in outcomes] if outcomes else list(agreed.labels)
            # Outcomes are numbered as they appear in the run.
            order = sorted(range(len(labels)), key=labels.__getitem__) if outcomes else range(len(labels))
            content["confusion"] = {
                "labels": [labels[at] for at in order],
                "counts": [[agreed.table[row][column] for column in order] for row in order],
            }
    reliable = found.judges.reliability.get(name)
    if reliable is not None:
        content["reliability"] = {key: figure(one) for key, one in reliable.figures().items()}
    return content


def _comparisons(found: RunFindings, name: str) -> dict[str, Any]:
    """Return ties and position consistency of each rater on a comparison."""
    rows = [
        {
            "name": who,
            "ties": figure(one.comparisons[name].tie_rate),
            "consistency": figure(one.comparisons[name].position_consistency),
        }
        for who, one in found.judges.raters().items()
        if name in one.comparisons
    ]
    return {"comparisons": rows} if rows else {}


def _count_answers(run: ReadRun, rows: Any, n_answers: int) -> dict[str, Any]:
    """Count how often each declared answer was given, and the outcomes of the other cells."""
    table = run.table
    status = table.status[rows]
    code = table.code[rows]
    counts: list[int] = np.bincount(code[code >= 0], minlength=n_answers).tolist()[:n_answers]
    statuses = {"answered": ANSWERED, "abstained": ABSTAINED, "failed": FAILED}
    statuses["not_applicable"] = NOT_APPLICABLE
    return {
        "counts": counts,
        **{name: int(np.count_nonzero(status == one)) for name, one in statuses.items()},
    }


def _confusing_items(cells: CellColumns, mine: Any, places: Mapping[int, int]) -> list[int]:
    """Return the items with the largest errors on the criterion, then those with the least agreement."""
    error = np.nan_to_num(cells.error[mine], nan=0.0)
    flagged = np.flatnonzero((cells.flags[mine] & sum(FLAGS.values())) > 0)
    weight = error[flagged] * 100 + cells.flags[mine][flagged]
    ranked = flagged[np.argsort(-weight, kind="stable")]
    found = [places.get(int(cells.item[mine[at]]), -1) for at in ranked[: 4 * CONFUSING]]
    return [at for at in found if at >= 0][:CONFUSING]


def _declared_criteria(run: ReadRun) -> dict[str, dict[str, Any]]:
    """Return the definitions of criteria by name; the first one is used if several share a name."""
    found: dict[str, dict[str, Any]] = {}
    # By id, stored because another group could reuse an id.
    read: dict[int, RubricGroup] = {}
    for one in run.item_results:
        try:
            root = run.dataset.get_item_rubric(one.item_idx).root
        except ValueError:
            continue
        if id(root) not in read:
            read[id(root)] = root
            _add_declared(root, (), found)
    return found or {name: _facts(criterion, ()) for name, criterion in run.criteria.items()}


def _add_declared(group: RubricGroup, path: tuple[str, ...], found: dict[str, dict[str, Any]]) -> None:
    for one in group.criteria:
        if isinstance(one, RubricGroup):
            _add_declared(one, (*path, one.name), found)
        else:
            found.setdefault(one.name or "", _facts(one, path))
            for part in one.part_fields.values():
                found.setdefault(part.name or "", {**_facts(part, path), "part_of": one.name})


def _facts(criterion: Any, path: tuple[str, ...]) -> dict[str, Any]:
    content = {
        "requirement": criterion.requirement or None,
        "weight": number(criterion.weight),
        "groups": list(path),
        "gate": None
        if criterion.gate is None
        else f"at least {criterion.gate.at_least:g}; otherwise capped at {criterion.gate.cap:g}",
        "when": None
        if criterion.when is None
        else f"{criterion.when.criterion} reaches {criterion.when.at_least:g}",
        "bonus": criterion.bonus or None,
    }
    return {key: value for key, value in content.items() if value not in (None, [])}


def judges(run: ReadRun, found: RunFindings) -> dict[str, Any]:
    """Return the metrics of each judge, of pairs of judges, and of the panel."""
    biases = found.biases.per_judge
    spent, verdicts = _spending(run), run.judge_verdicts()
    rows = []
    for name, one in found.judges.raters().items():
        content: dict[str, Any] = {"name": name, "kind": one.kind}
        content["metrics"] = {key: figure(each) for key, each in one.macro.figures().items()}
        content["coverage"] = number(one.coverage)
        content["abstention"] = figure(one.failures.abstention_rate)
        counts = run.view.verdicts if one.kind == "panel" else verdicts.get(one.rater)
        if counts is not None and one.kind != "human":
            content["verdicts"] = counts.to_dict()
        if one.kind == "judge" and one.rater in biases:
            content["biases"] = {
                kind: {
                    **(figure(each.effect) or {}),
                    "p": number(each.adjusted_p_value),
                    "named": each.cautious_p_value is not None and each.cautious_p_value < SURE,
                    "explained_by": each.explained_by or None,
                }
                for kind in _BIASES
                for each in (getattr(biases[one.rater], kind),)
            }
        content |= spent.get(one.rater, {}) if one.kind == "judge" else {}
        # The panel of one judge repeats the judge.
        if one.kind == "judge" or len(found.judges.per_judge) > 1:
            content["probabilities"] = [
                {
                    "name": key,
                    "origin": each.origin,
                    "figures": {name: figure(value) for name, value in each.figures().items()},
                    "bins": [[number(at.forecast), figure(at.rate)] for at in each.curve.bins],
                }
                for key, each in one.probabilities.items()
            ]
        rows.append(content)
    pairs = found.pairs
    return {
        "too_many": MOST_IN_PAIRS if len(run.table.judges) > MOST_IN_PAIRS else None,
        "rows": rows,
        "probabilities": FIGURES,
        "kinds": [
            {"key": key, "name": name, "about": about, "tested": key in BIASES}
            for key, (name, about) in _BIASES.items()
        ],
        "matrix": _matrix(run),
        "pairs": []
        if pairs is None
        else [_pair(one) for one in (*pairs.judges, *([pairs.panel] if pairs.panel else []))],
        "stat": None if pairs is None else _STATS[pairs.stat],
        "same_cells": _same_cells(found.judges.panel_and_best),
        "ties": {"n": pairs.n_ties, "answered": pairs.n_ties_answered} if pairs is not None else None,
        "ceiling": _ceiling(found),
        "tied_labels": found.judges.n_tied_labels,
        "notes": list(found.biases.notes),
    }


def _ceiling(found: RunFindings) -> dict[str, Any] | None:
    people = found.judges.human_ceiling
    if people is None:
        return None
    return {
        "humans": list(people.humans),
        "figures": {key: figure(one) for key, one in people.macro.figures().items()},
        "compared": "kappa",
        "panel": {key: figure(one) for key, one in people.in_place["panel"].figures().items()},
        "gap": {who: figure(one.kappa) for who, one in people.gap.items()},
    }


def _pair(pair: Any) -> dict[str, Any]:
    made = pair.comparison
    return {
        "a": pair.a,
        "b": pair.b,
        "of_a": figure(made.a),
        "of_b": figure(made.b),
        "difference": figure(made.difference),
        "p": number(pair.adjusted_p),
        "n": made.n,
        "coverage": number(pair.coverage),
    }


def _same_cells(compared: PanelAndBest | None) -> dict[str, Any] | None:
    """Compare the panel with the best judge on the cells that both answered."""
    if compared is None:
        return None
    return {
        "judge": compared.judge,
        "figure": compared.figure,
        "panel": figure(compared.panel),
        "best": figure(compared.best),
        "difference": figure(compared.difference),
        "n": compared.n_cells,
        "coverage": number(compared.coverage),
        "ties": compared.n_ties,
        "ties_answered": compared.n_ties_answered,
    }


def _matrix(run: ReadRun) -> dict[str, Any]:
    """Return the agreement (proportion and kappa) of each pair of raters on cells that both answered."""
    table = run.table
    raters = [one for one in table.raters if one[0] in ("truth", "panel", "judge", "human")]
    rank = {"truth": 0, "human": 1, "panel": 2, "judge": 3}
    raters.sort(key=lambda one: rank[one[0]])
    if len([one for one in raters if one[0] == "judge"]) < 2:
        raters = [one for one in raters if one[0] != "panel"]
    if len(raters) > MOST_IN_MATRIX // 2:
        raters = [one for one in raters if one[0] != "human"]
    if len(raters) > MOST_IN_MATRIX:
        return {"names": [], "kinds": [], "cells": []}
    cells = [[one.a, one.b, figure(one.share), figure(one.kappa)] for one in pair_agreements(table, raters)]
    names = ["labels" if kind == "truth" else name for kind, name in raters]
    return {"names": names, "kinds": [kind for kind, _ in raters], "cells": cells}


def _spending(run: ReadRun) -> dict[str, dict[str, Any]]:
    """Return the number of calls and the cost of each judge."""
    return {
        judge: {
            "votes": one.votes,
            "cost": sum(one.costs) if one.costs else None,
            "tokens": one.tokens,
            "latency": number(score_distribution(one.waits).median) if one.waits else None,
            "models": sorted(one.models),
        }
        for judge, one in run.judges.items()
    }
