"""Metrics of raters on criteria, averaged over criteria, pooled over cells, and of item scores, with reasons.

`compute_metrics` presents these metrics, and `judge_report` takes the reasons for its warnings from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autorubric.criteria.values import NamedList
from autorubric.metrics.core import contingency as shares
from autorubric.metrics.core.contingency import NumberPairs
from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.item_scores import TRUTH, Rater
from autorubric.metrics.core.metric import MetricDisplay
from autorubric.metrics.core.read_votes import Cells, Column, Modes, count_unanswered
from autorubric.metrics.core.resampling import IntervalOptions
from autorubric.metrics.core.scales import Array
from autorubric.metrics.core.votes_table import (
    ABSENT,
    ABSTAINED,
    ANSWERED,
    FAILED,
    NOT_APPLICABLE,
    NOT_ASKED,
    UNDECIDED,
)
from autorubric.metrics.figures.bias import ConfidenceInterval, interval_between
from autorubric.metrics.figures.correlation import pearson_estimate
from autorubric.metrics.figures.kappa import kappa_of
from autorubric.metrics.figures.many_raters import fleiss_kappa
from autorubric.metrics.figures.one_vs_rest import MET
from autorubric.metrics.figures.specs import shown_metrics
from autorubric.metrics.summaries.criterion_metrics import (
    OnCriterion,
    Reasons,
    metrics_on_criterion,
    names_in_run,
    number_metrics,
    tables_of,
)
from autorubric.metrics.summaries.macro_bootstrap import mean_share_ends
from autorubric.metrics.summaries.results import (
    AnyCriterionMetrics,
    BootstrapResults,
    JudgeMetrics,
    NaStats,
    PooledMetrics,
    RaterMetrics,
    shown_value,
)
from autorubric.metrics.summaries.table_metrics import (
    ScaleGroup,
    layout_of,
    one_table,
    weights_on_values,
    words_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterTable:
    """Truth and decisions of all raters of a run, from which the metrics of each rater are computed."""

    cells: Cells
    modes: Modes
    options: IntervalOptions  # intervals of correlations and bias
    scales: Sequence[ScaleGroup]  # scales of the categorical criteria
    fleiss: tuple[float | None, ...]  # kappa among judges by criterion; None if undefined or with one judge


def rater_table(cells: Cells, modes: Modes, options: IntervalOptions) -> RaterTable:
    """Return the table of raters and criteria from which the metrics of each rater are computed."""
    scales = layout_of(cells, modes, comparisons=False).groups
    fleiss = _judges_agreement(cells, modes)
    return RaterTable(cells=cells, modes=modes, options=options, scales=scales, fleiss=fleiss)


def _judges_agreement(cells: Cells, modes: Modes) -> tuple[float | None, ...]:
    judges = [column for (kind, _), column in cells.raters.items() if kind == "judge"]
    if len(judges) < 2:
        return (None,) * len(cells.criteria)
    found = []
    for place, span in enumerate(cells.spans):
        codes = np.column_stack([column.code[span] for column in judges])
        has_kappa = bool(cells.criteria[place].categories)
        found.append(
            fleiss_kappa(codes, labels=cells.size(place, modes), ci=None).value if has_kappa else None
        )
    return tuple(found)


def rater_metrics(
    table: RaterTable, rater: Rater, bootstrap: BootstrapResults | None = None
) -> tuple[RaterMetrics, dict[str, Reason]]:
    """Return the metrics of the panel or of a judge, and the reasons for metrics that are None."""
    cells, column = table.cells, table.cells.raters[rater]
    sizes = [cells.size(place, table.modes) for place in range(len(cells.criteria))]
    tables = tables_of(cells.spans, sizes, cells.truth, column)
    per_criterion = _per_criterion(table, rater, tables)
    reasons = Reasons()
    macro, defined = _macro(per_criterion, reasons)
    stats = na_stats(cells.truth, column)
    pooled, by_scale = _pooled(table, column, tables)
    fields = {
        **RaterMetrics.arrange(macro),
        **_true_rate_intervals(table, column),
        "defined": defined,
        "per_criterion": per_criterion,
        "pooled": pooled,
        "pooled_by_scale": by_scale,
        **_scores(table, rater, reasons),
        "bootstrap": bootstrap,
        "na_stats": stats,
        "coverage": sum(one.n_samples for one in per_criterion) / stats.n_cells if stats.n_cells else None,
        "abstention_rate": stats.judge_rate,
        "failure_rate": stats.failed / stats.n_cells if stats.n_cells else None,
    }
    of_pooled = pooled.reasons if pooled.n else {}
    every = {**reasons, **{f"pooled.{name}": why for name, why in of_pooled.items()}}
    kind, name = rater
    return (RaterMetrics(**fields) if kind == "panel" else JudgeMetrics(judge_id=name, **fields)), every


def _per_criterion(
    table: RaterTable, rater: Rater, tables: Sequence[Array]
) -> NamedList[AnyCriterionMetrics]:
    cells, column, samples = table.cells, table.cells.raters[rater], table.cells.positions[rater]
    found = NamedList[AnyCriterionMetrics]()
    for index, (criterion, span) in enumerate(zip(cells.criteria, cells.spans, strict=True)):
        alike = samples[samples[:, 0] == index, 2]
        one = metrics_on_criterion(
            OnCriterion(
                criterion=criterion,
                index=index,
                truth=cells.truth.take(span),
                rater=column.take(span),
                table=tables[index],
                modes=table.modes,
                options=table.options,
                fleiss_kappa=table.fleiss[index],
                outcomes=cells.outcomes.get(index, ()),
                positions=(int(alike.sum()), len(alike)),
            )
        )
        if one is not None:
            found.append(one)
    return found


def _macro(
    per_criterion: Sequence[AnyCriterionMetrics], reasons: Reasons
) -> tuple[dict[str, float | None], dict[str, tuple[int, int]]]:
    found = {}
    for metric, name in ((one, name) for one in shown_metrics() for name in names_in_run(one)):
        levels = metric.where["run_mean"]
        values = [shown_value(one, name) for one in per_criterion if one.criterion_type in levels]
        key = "mean_kappa" if name == "kappa" else f"criterion_{name}"
        if levels and (values or key in RaterMetrics.__dataclass_fields__):
            found[key] = values
    macro, defined = {}, {}
    for key, values in RaterMetrics.in_order(found).items():
        there = [value for value in values if value is not None]
        mean = float(np.mean(there)) if there else np.nan
        macro[key] = reasons.number(key, mean, "no_criterion_defined")
        defined[key] = (len(there), len(values))
    return macro, defined


def _true_rate_intervals(table: RaterTable, column: Column) -> dict[str, ConfidenceInterval | None]:
    """Compute intervals for the mean sensitivity and specificity over binary criteria, keyed by field."""
    cells, level = table.cells, table.options.confidence_level
    binary = np.array([one.level == "binary" for one in cells.criteria], dtype=bool)
    criterion = cells.criterion
    pairs = (cells.truth.code >= 0) & (column.code >= 0) & binary[criterion]
    found: dict[str, ConfidenceInterval | None] = {}
    for name, positive in (("sensitivity", True), ("specificity", False)):
        mine = pairs & ((cells.truth.code == MET) == positive)
        hit = ((column.code[mine] == MET) == positive).astype(float)
        low, high, _ = mean_share_ends(cells.item[mine], criterion[mine], hit, level)
        found[f"criterion_{name}_ci"] = interval_between(low, high, level, "logit-t over items")
    return found


def _pooled(
    table: RaterTable, rater: Column, tables: Sequence[Array]
) -> tuple[PooledMetrics, dict[str, PooledMetrics]]:
    """Pool all cells, and the cells of each scale by its labels; `tables` are those returned by `tables_of`.

    Metrics of a confusion table need one scale; of several, they use the binary cells (else
    `not_comparable`).
    """
    cells = table.cells
    # The value of a comparison is that of its first candidate, which differs from item to item.
    single = [place for place, one in enumerate(cells.criteria) if one.level != "ranking"]
    every = _pearson(cells, rater, single)

    def of_scales(scales: Sequence[ScaleGroup], linear: Estimate | None = None) -> PooledMetrics:
        places = sorted(place for scale in scales for place in scale.places)
        if linear is None:
            linear = every if len(places) == len(single) else _pearson(cells, rater, places)
        return _of_one_table(table, tables, places, linear)

    by_scale = {" | ".join(scale.labels): of_scales([scale]) for scale in table.scales}
    if len(table.scales) == 1:
        return of_scales(table.scales, every), by_scale
    alike = one_table(table.scales)
    base = of_scales(alike, every) if alike else _without_scale(cells, every)
    reasons = Reasons(base.reasons)
    categorical = [tables[place] for scale in table.scales for place in scale.places]
    right, n = (sum(int(of(one)) for one in categorical) for of in (shares.hits, np.sum))
    accuracy = reasons.number("accuracy", right / n if n else float("nan"), "no_pairs")
    numeric = [place for place, criterion in enumerate(cells.criteria) if criterion.level == "interval"]
    numbers = _values(cells, cells.truth, numeric) + _values(cells, rater, numeric)
    used = n + int((~np.isnan(numbers)).sum())
    return replace(base, accuracy=accuracy, n=used, reasons=dict(reasons)), by_scale


def _values(cells: Cells, column: Column, places: Sequence[int]) -> Array:
    if len(places) == len(cells.criteria):
        return column.value
    return np.concatenate([column.value[:0], *(column.value[cells.spans[place]] for place in places)])


def _pearson(cells: Cells, rater: Column, places: Sequence[int]) -> Estimate:
    """Compute Pearson's r between true and judged values of the criteria at `places`."""
    truth, judged = _values(cells, cells.truth, places), _values(cells, rater, places)
    both = ~np.isnan(truth + judged)
    return pearson_estimate(NumberPairs(truth[both], judged[both], None, 0), IntervalOptions(ci=None))


def _of_one_table(
    table: RaterTable, tables: Sequence[Array], places: Sequence[int], linear: Estimate
) -> PooledMetrics:
    """Compute the metrics of the criteria at `places`, whose tables are added; `linear` is Pearson's r."""
    cells, criterion = table.cells, table.cells.criteria[places[0]]
    counts = np.sum([tables[place] for place in places], axis=0)
    pooled = [one for one in shown_metrics() if criterion.level in one.where["run_pooled"]]
    reasons = Reasons()
    if criterion.level != "binary":
        reasons.update(dict.fromkeys(_names_of(_of_one_class()), "not_comparable"))
    ordered = criterion.level == "ordinal" and not table.modes.has_category
    weights = weights_on_values(criterion) if ordered else None
    in_order = sorted(pooled, key=lambda one: one not in _of_one_class())
    found = reasons.of_table(counts, in_order, weights=weights)
    return PooledMetrics(
        n=int(counts.sum()),
        n_labelled=sum(int((cells.truth.status[cells.spans[place]] > 0).sum()) for place in places),
        labels=(*words_of(criterion), *(("CANNOT_ASSESS",) if table.modes.has_category else ())),
        pearson=reasons.estimate("pearson", linear),
        reasons=dict(reasons),
        **PooledMetrics.arrange(found),
    )


def _of_one_class() -> list[MetricDisplay]:
    return [one for one in shown_metrics() if one.where["run_pooled"] == ("binary",)]


def _names_of(metrics: Iterable[MetricDisplay]) -> list[str]:
    return [name for one in metrics for name in names_in_run(one)]


def _without_scale(cells: Cells, linear: Estimate) -> PooledMetrics:
    names = _names_of(one for one in shown_metrics() if one.where["run_pooled"] and one.key != "accuracy")
    values = PooledMetrics.arrange(dict.fromkeys(names))
    reasons = Reasons(dict.fromkeys([*values, *values.pop("more")], "not_comparable"))
    return PooledMetrics(
        n=0,
        n_labelled=int((cells.truth.status > 0).sum()),
        pearson=reasons.estimate("pearson", linear),
        reasons=dict(reasons),
    )


def _scores(table: RaterTable, rater: Rater, reasons: Reasons) -> dict[str, Any]:
    cells = table.cells
    truth = cells.scores[TRUTH]
    judged = cells.scores.get(rater, np.full(cells.n_items, np.nan))
    both = ~np.isnan(truth + judged)
    pairs = NumberPairs(truth[both], judged[both], None, 0)
    return {**number_metrics(pairs, table.options, reasons, "score_"), "n_scores": pairs.n}


def count_items(cells: Cells, rater: Rater) -> int:
    """Return the number of items with both a label and a row of the rater."""
    both = (cells.truth.status > 0) & (cells.raters[rater].status > 0)
    return len(np.unique(cells.item[both]))


def na_stats(truth: Column, rater: Column) -> NaStats:
    """Count abstentions and failures over labelled cells."""
    labelled = truth.status > 0
    left, right = truth.status[labelled], rater.status[labelled]
    n = len(left)
    voted = (right == ANSWERED) | (right == ABSTAINED)
    cells = 2 * (left[voted] == ABSTAINED) + (right[voted] == ABSTAINED)
    kappa = float(kappa_of(np.bincount(cells, minlength=4).reshape(2, 2).astype(float)))

    def count(status: int) -> int:
        return int(np.count_nonzero(right == status))

    abstained = int(np.count_nonzero(left == ABSTAINED))
    return NaStats(
        n_cells=n,
        n_answered=int(np.count_nonzero((left == ANSWERED) & (right == ANSWERED))),
        truth_abstained=abstained,
        judge_abstained=count(ABSTAINED),
        both_abstained=int(np.count_nonzero((left == ABSTAINED) & (right == ABSTAINED))),
        failed=count(FAILED),
        not_asked=count(NOT_ASKED) + count(ABSENT),
        not_applicable=count(NOT_APPLICABLE),
        undecided=count(UNDECIDED),
        truth_rate=abstained / n if n else None,
        judge_rate=count(ABSTAINED) / n if n else None,
        **count_unanswered(truth, rater),
        kappa=None if np.isnan(kappa) else kappa,
    )
