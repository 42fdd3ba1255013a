"""Metrics of the run, its criteria and its judges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np

from autorubric.errors import TokenUsage
from autorubric.metrics.audit.bias import BIASES, SHIFTS, BiasReport, bias_report
from autorubric.metrics.audit.item_analysis import ItemAnalysis, item_analysis
from autorubric.metrics.core.item_scores import TRUTH
from autorubric.metrics.core.scales import Interval
from autorubric.metrics.core.votes_table import ANSWERED, Outcome
from autorubric.metrics.figures.distributions import score_distribution
from autorubric.metrics.figures.many_raters import percent_agreement
from autorubric.metrics.summaries.highlights import PanelAndBest
from autorubric.metrics.summaries.judge_report import judge_report
from autorubric.metrics.summaries.reliability import mean_kappa, ordered_values
from autorubric.metrics.summaries.report_result import JudgeReport
from autorubric.metrics.summaries.run_comparison import RunComparison, compare_run
from autorubric.reports.items import CellColumns
from autorubric.reports.templates import figure, number
from autorubric.reports.view import ReadRun
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


@dataclass(frozen=True)
class RunFindings:
    """The metrics of a run.

    Attributes:
        judges: The judge report.
        biases: Biases of the judges.
        items: Item analysis of the criteria in their rubric.
        pairs: Pairwise comparison of the judges; None without labels or with too many judges.
    """

    judges: JudgeReport
    biases: BiasReport
    items: ItemAnalysis
    pairs: RunComparison | None

    @classmethod
    def of(cls, run: ReadRun) -> RunFindings:
        """Compute the metrics of a run."""
        return cls(
            judges=judge_report(run.table),
            biases=bias_report(run.table, run.dataset),
            items=item_analysis(run.table, run.dataset),
            pairs=compare_run(run.table)
            if run.has_truth and len(run.table.judges) <= MOST_IN_PAIRS
            else None,
        )


def outcome_words(outcome: Outcome) -> str:
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
    usual = panel.macro
    spread = score_distribution(scores, bins=BINS, scale=_unit(scores))
    told: dict[str, Any] = {
        "mean": number(spread.mean),
        "median": number(spread.median),
        "std": number(spread.std),
        "q25": number(spread.q25),
        "q75": number(spread.q75),
        "n_scored": spread.n_samples,
        "edges": [number(edge) for edge in spread.bin_edges],
        "counts": list(spread.bin_counts),
        "accuracy": figure(usual.accuracy),
        "kappa": figure(usual.kappa),
        "pearson": figure(usual.pearson),
        "tpr": figure(usual.recall),
        "tnr": figure(usual.specificity),
        "n_binary": usual.defined["specificity"][1],
        "n_labelled": found.judges.n_items,
        "coverage": number(panel.coverage),
    }
    if panel.scores is not None:
        truth = run.table.scores[TRUTH]
        graded = [truth[one.item_idx] for one in run.item_results]
        told["truth_counts"] = list(score_distribution(graded, bins=BINS, scale=_unit(graded)).bin_counts)
        told["same_edges"] = _unit(graded) == _unit(scores) == Interval(low=0.0, high=1.0)
        told["scores"] = {name: figure(one) for name, one in panel.scores.figures().items()}
    return told


def _unit(scores: Any) -> Interval | None:
    """Return the range from 0 to 1 if it contains all scores; None otherwise."""
    there = [one for one in scores if one is not None and not np.isnan(one)]
    return Interval(low=0.0, high=1.0) if all(0 <= one <= 1 for one in there) else None


def criteria(run: ReadRun, cells: CellColumns, found: RunFindings) -> list[dict[str, Any]]:
    """Return the metrics of each criterion, in the order of the table."""
    facts = _definitions(run)
    analysed = {one.name: one for one in found.items.criteria}
    places = {one.item_idx: at for at, one in enumerate(run.item_results)}
    return [
        _criterion(
            run, cells, found, at, {**facts.get(run.table.criteria[at].name, {})}, analysed.get(name), places
        )
        for at, name in enumerate(run.names)
    ]


def _criterion(
    run: ReadRun,
    cells: CellColumns,
    found: RunFindings,
    at: int,
    told: dict[str, Any],
    analysed: Any,
    places: Mapping[int, int],
) -> dict[str, Any]:
    name, measured = run.names[at], run.table.criteria[at]
    mine = np.flatnonzero(cells.criterion == at)
    told |= {"name": name, "level": measured.level, "cells": len(mine)}
    told["answers"] = [[one.label or str(one.code), number(one.value)] for one in measured.answers]
    told["given"] = _answer_counts(run, cells.row[mine], len(measured.answers))
    numbers = run.table.number[cells.row[mine]]
    if measured.level == "interval" and not np.isnan(numbers).all():
        spread = score_distribution(numbers, bins=BINS)
        told["spread"] = {
            "edges": [number(edge) for edge in spread.bin_edges],
            "counts": list(spread.bin_counts),
        }
    truth = cells.truth[mine]
    if (truth >= 0).any():
        told["labelled"] = _answer_counts(run, truth[truth >= 0], len(measured.answers))
    if analysed is not None:
        told |= {
            "mean": figure(analysed.mean),
            "discrimination": figure(analysed.discrimination)
            if len(run.names) > 1
            else {"v": None, "why": "the rubric has only one criterion"},
            "upper_lower": figure(analysed.upper_lower),
        }
    agreed = found.judges.per_criterion.get(name)
    if agreed is not None:
        told["figures"] = {key: figure(one) for key, one in agreed.figures().items()}
        told["kappa"] = figure(agreed.weighted_kappa if measured.level == "ordinal" else agreed.kappa)
        told["accuracy"] = figure(agreed.accuracy)
        if measured.level == "binary":
            told |= {"tpr": figure(agreed.recall), "tnr": figure(agreed.specificity)}
        told["n"] = agreed.n
        if agreed.table and any(map(any, agreed.table)):
            outcomes = run.table.outcomes.get(at)
            labels = [outcome_words(one) for one in outcomes] if outcomes else list(agreed.labels)
            # Outcomes are numbered as they appear in the run.
            order = sorted(range(len(labels)), key=labels.__getitem__) if outcomes else range(len(labels))
            told["confusion"] = {
                "labels": [labels[at] for at in order],
                "counts": [[agreed.table[row][column] for column in order] for row in order],
            }
    reliable = found.judges.reliability.get(name)
    if reliable is not None:
        told["reliability"] = {key: figure(one) for key, one in reliable.figures().items()}
    told |= _comparisons(found, name)
    told["confusing"] = _worst_items(cells, mine, places)
    return told


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


def _answer_counts(run: ReadRun, rows: Any, n_answers: int) -> dict[str, Any]:
    """Count how often each declared answer was given, and the outcomes of the other cells."""
    table = run.table
    status = table.status[rows]
    code = table.code[rows]
    counts: list[int] = np.bincount(code[code >= 0], minlength=n_answers).tolist()[:n_answers]
    return {
        "counts": counts,
        "answered": int(np.count_nonzero(status == ANSWERED)),
        "abstained": int(np.count_nonzero(status == 2)),
        "failed": int(np.count_nonzero(status == 3)),
        "not_applicable": int(np.count_nonzero(status == 5)),
    }


def _worst_items(cells: CellColumns, mine: Any, places: Mapping[int, int]) -> list[int]:
    """Return the items with the largest errors on the criterion, then those with the least agreement."""
    error = np.nan_to_num(cells.error[mine], nan=0.0)
    flagged = np.flatnonzero((cells.flags[mine] & 15) > 0)
    weight = error[flagged] * 100 + cells.flags[mine][flagged]
    ranked = flagged[np.argsort(-weight, kind="stable")]
    found = [places.get(int(cells.item[mine[at]]), -1) for at in ranked[: 4 * CONFUSING]]
    return [at for at in found if at >= 0][:CONFUSING]


def _definitions(run: ReadRun) -> dict[str, dict[str, Any]]:
    """Return the definitions of criteria by name; the first one is used if several share a name."""
    found: dict[str, dict[str, Any]] = {}
    read: set[int] = set()
    for one in run.item_results:
        try:
            root = run.dataset.get_item_rubric(one.item_idx).root
        except ValueError:
            continue
        if id(root) not in read:
            read.add(id(root))
            _declare(root, (), found)
    for one in run.item_results if not found else ():
        for criterion in one.report.report if one.report else ():
            found.setdefault(criterion.name, _facts(criterion.criterion, ()))
    return found


def _declare(group: RubricGroup, path: tuple[str, ...], found: dict[str, dict[str, Any]]) -> None:
    for one in group.criteria:
        if isinstance(one, RubricGroup):
            _declare(one, (*path, one.name), found)
        else:
            found.setdefault(one.name or "", _facts(one, path))
            for part in one.part_fields.values():
                found.setdefault(part.name or "", {**_facts(part, path), "part_of": one.name})


def _facts(criterion: Any, path: tuple[str, ...]) -> dict[str, Any]:
    told = {
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
    return {key: value for key, value in told.items() if value not in (None, [])}


def judges(run: ReadRun, found: RunFindings) -> dict[str, Any]:
    """Return the metrics of each judge, of pairs of judges, and of the panel."""
    biases = found.biases.per_judge
    spent, verdicts = _spend_by_judge(run), run.judge_verdicts()
    rows = []
    for name, one in found.judges.raters().items():
        told: dict[str, Any] = {"name": name, "kind": one.kind}
        told |= {key: figure(each) for key, each in one.macro.figures().items()}
        told["coverage"] = number(one.coverage)
        told["abstention"] = figure(one.failures.abstention_rate)
        counts = run.verdicts() if one.kind == "panel" else verdicts.get(one.rater)
        if counts is not None and one.kind != "human":
            told["verdicts"] = counts.to_dict()
        if one.scores is not None:
            told["score_bias"] = figure(one.scores.figures().get("mae"))
        if one.kind == "judge" and one.rater in biases:
            told["biases"] = {
                kind: {**(figure(each.effect) or {}), "p": number(each.adjusted_p_value)}
                for kind in (*BIASES, *SHIFTS)
                if kind != "own_error_difference"
                for each in (getattr(biases[one.rater], kind),)
            }
        told |= spent.get(one.rater, {}) if one.kind == "judge" else {}
        rows.append(told)
    pairs = found.pairs
    return {
        "too_many": MOST_IN_PAIRS if len(run.table.judges) > MOST_IN_PAIRS else None,
        "rows": rows,
        "matrix": _matrix(run),
        "pairs": []
        if pairs is None
        else [_pair(one) for one in (*pairs.judges, *([pairs.panel] if pairs.panel else []))],
        "stat": pairs.stat if pairs is not None else None,
        "same_cells": _same_cells(found.judges.panel_and_best),
        "ties": {"n": pairs.n_ties, "answered": pairs.n_ties_answered} if pairs is not None else None,
        "ceiling": _ceiling_row(found),
        "tied_labels": found.judges.n_tied_labels,
        "notes": list(found.biases.notes),
    }


def _ceiling_row(found: RunFindings) -> dict[str, Any] | None:
    people = found.judges.human_ceiling
    if people is None:
        return None
    return {
        "humans": list(people.humans),
        "figures": {key: figure(one) for key, one in people.macro.figures().items()},
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
    keys = np.unique(
        np.concatenate([run.keys(run.rows_of(one)) for one in raters] or [np.zeros(0, dtype=int)])
    )
    codes = {}
    for one in raters:
        rows = run.rows_of(one)
        rows = rows[(table.code[rows] >= 0) & (table.status[rows] == ANSWERED)]
        column = np.full(len(keys), np.nan)
        column[np.searchsorted(keys, run.keys(rows))] = table.code[rows]
        codes[one] = column
    item, criterion = np.divmod(keys, max(len(table.criteria), 1))
    values = [ordered_values(one) for one in table.criteria]
    counted = np.array([one.level in CATEGORICAL for one in table.criteria] or [False])[criterion]
    size = int(table.code.max()) + 1 if len(table) else 0
    cells: list[list[Any]] = []
    for a, b in combinations(range(len(raters)), 2) if size > 1 else ():
        both = np.column_stack([codes[raters[a]], codes[raters[b]]])
        both_answered = ~np.isnan(both).any(1)
        ratings = np.where(np.isnan(both), -1, both).astype(int)[both_answered]
        made = percent_agreement(ratings, labels=size, cluster=item[both_answered], ci="analytic")
        used = both_answered & counted
        one, other = both[used].astype(int).T
        kappa = mean_kappa(criterion[used], one, other, values)
        cells.append([a, b, figure(made), figure(kappa)])
    names = ["labels" if kind == "truth" else name for kind, name in raters]
    return {"names": names, "kinds": [kind for kind, _ in raters], "cells": cells}


def _spend_by_judge(run: ReadRun) -> dict[str, dict[str, Any]]:
    """Return the number of calls and the cost of each judge."""
    votes: dict[str, list[Any]] = {}
    for one in run.item_results:
        for criterion in one.report.report if one.report else ():
            for vote in criterion.votes:
                votes.setdefault(vote.judge_id, []).append(vote)
    found = {}
    for judge, cast in votes.items():
        costs = [vote.completion_cost for vote in cast if vote.completion_cost is not None]
        usages = [vote.token_usage for vote in cast if vote.token_usage is not None]
        waits = [vote.latency_seconds for vote in cast if vote.latency_seconds is not None]
        found[judge] = {
            "votes": sum(vote.status != "not_asked" for vote in cast),
            "cost": sum(costs) if costs else None,
            "tokens": TokenUsage.sum(usages).total_tokens if usages else None,
            "latency": number(score_distribution(waits).median) if waits else None,
            "models": sorted({vote.model for vote in cast if vote.model}),
        }
    return found
