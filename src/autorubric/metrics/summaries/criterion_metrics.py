"""Metrics of one rater on one criterion, computed from two columns of codes or numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from autorubric.metrics.core.contingency import NumberPairs, divide, one_vs_rest
from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.intervals import wilson
from autorubric.metrics.core.metric import MetricDisplay, TableMetric
from autorubric.metrics.core.read_votes import Column, Modes, count_unanswered
from autorubric.metrics.core.resampling import IntervalOptions
from autorubric.metrics.core.scales import Array
from autorubric.metrics.core.votes_table import ABSTAINED, FAILED, MeasuredCriterion, Outcome
from autorubric.metrics.figures.bias import ConfidenceInterval, bias_of, interval_between
from autorubric.metrics.figures.correlation import (
    ccc_estimate,
    correlation_p_value,
    correlation_test,
    kendall_estimate,
    kendall_test,
    mae_estimate,
    pearson_estimate,
    rmse_estimate,
    spearman_estimate,
)
from autorubric.metrics.figures.one_vs_rest import MET
from autorubric.metrics.figures.ranks import RankedPairs, rank_pairs, rank_table
from autorubric.metrics.figures.specs import shown_metric, shown_metrics
from autorubric.metrics.summaries.results import (
    AnyCriterionMetrics,
    ConfusionMatrix,
    CorrelationResult,
    CriterionCoverage,
    CriterionMetrics,
    IntervalCriterionMetrics,
    NominalCriterionMetrics,
    OptionMetrics,
    OrdinalCriterionMetrics,
    RankingCriterionMetrics,
    interpret_correlation,
    interpret_kappa,
)
from autorubric.metrics.summaries.table_metrics import (
    category_values,
    numbers_of,
    table_value,
    weights_on_values,
    words_of,
)

_KAPPAS = ("kappa", "weighted_kappa")
_ON_VALUES = ("spearman", "kendall", "rmse", "mae")


def names_in_run(metric: MetricDisplay, level: str = "binary") -> Sequence[str]:
    """Return the names of a metric in results of `compute_metrics`."""
    match metric.key:
        case "phi":
            return ("mcc",)
        case "recall":
            return ("recall", "sensitivity")
        case "accuracy" if level in ("nominal", "ordinal"):
            return ("exact_accuracy",)
        case key:
            return (key,)


class Reasons(dict[str, Reason]):
    """Reasons why metrics are None, collected while the metrics are computed."""

    def number(self, name: str, value: Array | float, reason: Reason) -> float | None:
        """Return the value as a float; if it is NaN, record the reason and return None."""
        number = float(value)
        if math.isnan(number):
            self[name] = reason
            return None
        return number

    def estimate(self, name: str, found: Estimate) -> float | None:
        """Return the estimate's value; if it is undefined, record its reason and return None."""
        if found.value is None and found.reason is not None:
            self[name] = found.reason
        return found.value

    def of_table(
        self,
        table: Array,
        metrics: Iterable[MetricDisplay],
        level: str = "binary",
        weights: Array | None = None,
    ) -> dict[str, float | None]:
        """Compute metrics of a table by name; those that need an order have `weights`, or are undefined."""
        found: dict[str, float | None] = {}
        for one in metrics:
            value: float | Reason = "na_as_category"
            if one.table is not None and (weights is not None or not one.needs_order):
                value = table_value(one.table, table, weights if one.needs_order else None)
            for name in names_in_run(one, level):
                if isinstance(value, str):
                    self[name] = value
                found[name] = None if isinstance(value, str) else value
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class OnCriterion:
    """A criterion with the labels and the decisions of one rater."""

    criterion: MeasuredCriterion
    index: int
    truth: Column
    rater: Column
    table: Array  # counts of pairs, with the truth in rows; see `tables_of`
    modes: Modes
    options: IntervalOptions  # intervals of correlations
    fleiss_kappa: float | None  # agreement among the judges
    outcomes: tuple[Outcome, ...] = ()
    positions: tuple[int, int] = (0, 0)  # samples answered equally in both orders, and in both orders

    @property
    def labels(self) -> tuple[str, ...]:
        return (*words_of(self.criterion), *(("CANNOT_ASSESS",) if self.modes.has_category else ()))

    def coverage(self, n_samples: int, reasons: Reasons) -> dict[str, Any]:
        """Return the fields of `CriterionCoverage`."""
        labelled = self.truth.status > 0
        n, status = int(np.count_nonzero(labelled)), self.rater.status[labelled]
        return {
            "name": self.criterion.name,
            "index": self.index,
            "criterion_type": self.criterion.level,
            "n_samples": n_samples,
            "n_labelled": n,
            "coverage": n_samples / n if n else None,
            "abstention_rate": float((status == ABSTAINED).mean()) if n else None,
            "failure_rate": float((status == FAILED).mean()) if n else None,
            **count_unanswered(self.truth, self.rater),
            "reasons": dict(reasons),
        }

    def of_table(self, reasons: Reasons, result: type[CriterionCoverage]) -> dict[str, Any]:
        """Return the metrics of the table that a result contains, with interpretations of kappas."""
        level = self.criterion.level
        ordered = level == "ordinal" and not self.modes.has_category
        weights = weights_on_values(self.criterion) if ordered else None
        metrics = [one for one in shown_metrics() if level in one.where["run"]]
        named = result.in_order({names_in_run(one, level)[0]: one for one in metrics})
        # The reasons begin with that of kappa.
        kappa_first = sorted(named.values(), key=lambda one: one.key != "kappa")
        found = reasons.of_table(self.table, kappa_first, level, weights)
        words = {f"{name}_interpretation": interpret_kappa(found[name]) for name in found if name in _KAPPAS}
        return {**found, **words}

    def categorical(self, reasons: Reasons) -> dict[str, Any]:
        """Return the fields that binary, nominal and ordinal criteria share, except metrics."""
        counts = tuple(tuple(int(count) for count in row) for row in self.table)
        return {
            "confusion_matrix": ConfusionMatrix(labels=self.labels, counts=counts),
            "fleiss_kappa": self.fleiss_kappa,
            **self.coverage(int(self.table.sum()), reasons),
        }


def metrics_on_criterion(given: OnCriterion) -> AnyCriterionMetrics | None:
    """Compute the metrics of the criterion, or return None for levels without metrics."""
    reasons = Reasons()
    match given.criterion.level:
        case "binary":
            return _binary(given, reasons)
        case "nominal":
            values = {**given.of_table(reasons, NominalCriterionMetrics), **_per_option(given)}
            found = NominalCriterionMetrics.arrange(values)
            return NominalCriterionMetrics(**found, **given.categorical(reasons))
        case "ordinal":
            values = given.of_table(reasons, OrdinalCriterionMetrics)
            values |= {**_per_option(given), **_on_values(given, reasons)}
            found = OrdinalCriterionMetrics.arrange(values)
            return OrdinalCriterionMetrics(**found, **given.categorical(reasons))
        case "interval":
            return _interval(given, reasons)
        case "ranking" if given.outcomes:
            return _ranking(given, reasons)
        case _:
            return None


def _binary(given: OnCriterion, reasons: Reasons) -> CriterionMetrics:
    table = given.table
    cells = one_vs_rest(table, MET)
    return CriterionMetrics(
        **CriterionMetrics.arrange(given.of_table(reasons, CriterionMetrics)),
        sensitivity_ci=_wilson(cells.tp, cells.tp + cells.fn, given.options),
        specificity_ci=_wilson(cells.tn, cells.tn + cells.fp, given.options),
        support_true=int(table[MET].sum()),
        support_pred=int(table[:, MET].sum()),
        **given.categorical(reasons),
    )


def _wilson(hits: Array, n: Array, options: IntervalOptions) -> ConfidenceInterval | None:
    found = wilson(int(hits), int(n), confidence_level=options.confidence_level)
    return interval_between(found.low, found.high, options.confidence_level, "Wilson")


def _per_option(given: OnCriterion) -> dict[str, Any]:
    table = given.table

    def value_of(metric: TableMetric) -> float | None:
        value = table_value(metric, table)
        return None if isinstance(value, str) else value

    metrics = [one for one in shown_metrics() if one.per_option]
    per_option = tuple(
        OptionMetrics(
            label=label,
            **OptionMetrics.arrange(
                {one.key: value_of(one.per_option(place)) for one in metrics if one.per_option}
            ),
            support_true=int(table[place].sum()),
            support_pred=int(table[:, place].sum()),
        )
        for place, label in enumerate(given.labels)
    )
    return {"per_option": per_option}


def _on_values(given: OnCriterion, reasons: Reasons) -> dict[str, Any]:
    """Return the metrics of an ordinal criterion that use the values of its options."""
    table = given.table
    n = table.sum()
    if given.modes.has_category:
        # A category of abstentions has no place in the order, so metrics that need an order are undefined.
        reasons.update(dict.fromkeys(_ON_VALUES, "na_as_category"))
        nothing = CorrelationResult(coefficient=None, reason="na_as_category", n_samples=int(n))
        return {"rmse": None, "mae": None, "spearman": nothing, "kendall": nothing}
    values = np.array(category_values(given.criterion))
    if (expected := _expected_pairs(given, values)) is not None:
        found = number_metrics(expected, given.options, reasons)
        return {name: found[name] for name in ("spearman", "kendall", "rmse", "mae")}
    gaps = np.subtract.outer(values, values)
    return {
        **rank_correlations(rank_table(table, values), given.options, reasons),
        "rmse": reasons.number("rmse", np.sqrt(divide((table * gaps**2).sum(), n)), "no_pairs"),
        "mae": reasons.number("mae", divide((table * np.abs(gaps)).sum(), n), "no_pairs"),
    }


def _expected_pairs(given: OnCriterion, values: Array) -> NumberPairs | None:
    """Return the values of labels and expected values of soft votes; None if all are values of options."""
    both = (given.truth.code >= 0) & (given.rater.code >= 0)
    expected, chosen = given.rater.value[both], values[given.rater.code[both]]
    if np.isnan(expected).any() or np.array_equal(expected, chosen):
        return None
    return NumberPairs(values[given.truth.code[both]], expected, None, int((~both).sum()))


def _interval(given: OnCriterion, reasons: Reasons) -> IntervalCriterionMetrics:
    truth, rater = numbers_of(given.truth, given.rater)
    both = ~np.isnan(truth + rater)
    pairs = NumberPairs(truth[both], rater[both], None, int((~both).sum()))
    return IntervalCriterionMetrics(
        **number_metrics(pairs, given.options, reasons),
        ccc=reasons.estimate("ccc", ccc_estimate(pairs, IntervalOptions(ci=None))),
        **given.coverage(pairs.n, reasons),
    )


def _ranking(given: OnCriterion, reasons: Reasons) -> RankingCriterionMetrics:
    shared = np.array([outcome.count(0) > 1 for outcome in given.outcomes])
    judged = given.rater.code[given.rater.code >= 0]
    alike, n = given.positions
    found: dict[str, Any] = reasons.of_table(given.table, [shown_metric("accuracy"), shown_metric("kappa")])
    return RankingCriterionMetrics(
        **found,
        kappa_interpretation=interpret_kappa(found["kappa"]),
        tie_rate=reasons.number("tie_rate", shared[judged].mean() if judged.size else np.nan, "no_pairs"),
        position_consistency=reasons.number("position_consistency", alike / n if n else np.nan, "no_pairs"),
        n_position_pairs=n,
        **given.coverage(int(given.table.sum()), reasons),
    )


def number_metrics(
    pairs: NumberPairs, options: IntervalOptions, reasons: Reasons, prefix: str = ""
) -> dict[str, Any]:
    """Compute errors, bias and correlations of two columns of numbers; all but `bias` have the prefix."""
    plain = IntervalOptions(ci=None)
    found = pearson_estimate(pairs, options)
    return {
        f"{prefix}rmse": reasons.estimate(f"{prefix}rmse", rmse_estimate(pairs, plain)),
        f"{prefix}mae": reasons.estimate(f"{prefix}mae", mae_estimate(pairs, plain)),
        "bias": bias_of(pairs, options),
        f"{prefix}pearson": _correlation("pearson", found, options, reasons, prefix),
        **rank_correlations(rank_pairs(pairs), options, reasons, prefix),
    }


def rank_correlations(
    ranked: RankedPairs, options: IntervalOptions, reasons: Reasons, prefix: str = ""
) -> dict[str, CorrelationResult]:
    """Compute Spearman's rho and Kendall's tau-b with p-values and intervals, named with a prefix."""
    kendall = kendall_estimate(ranked, options)
    test = kendall_test(ranked, kendall.value)
    tested = {"p_value": None if test is None else test.p_value, "test": test}
    return {
        f"{prefix}spearman": _correlation(
            "spearman", spearman_estimate(ranked, options), options, reasons, prefix
        ),
        f"{prefix}kendall": _correlation("kendall", kendall, options, reasons, prefix, tested),
    }


def _correlation(
    name: str,
    found: Estimate,
    options: IntervalOptions,
    reasons: Reasons,
    prefix: str,
    tested: dict[str, Any] | None = None,
) -> CorrelationResult:
    """Return a correlation, with the t test of its value unless `tested` contains another test."""
    reasons.estimate(f"{prefix}{name}", found)
    if tested is None and found.value is not None:
        # There is no test of ±1, where t is infinite.
        p_value, test = (of(found.value, found.n) for of in (correlation_p_value, correlation_test))
        tested = {"p_value": p_value, "test": test}
    return CorrelationResult(
        coefficient=found.value,
        ci=interval_between(found.low, found.high, options.confidence_level, "Fisher z"),
        interpretation=interpret_correlation(found.value),
        n_samples=found.n,
        method=name,
        reason=found.reason,
        **(tested or {}),
    )


def tables_of(spans: Sequence[slice], sizes: Sequence[int], truth: Column, rater: Column) -> list[Array]:
    """Count the pairs of codes on each criterion, as `(K, K)` tables with truth in the rows."""
    tables = []
    for span, size in zip(spans, sizes, strict=True):
        left, right = truth.code[span], rater.code[span]
        both = (left >= 0) & (right >= 0)
        pairs = left[both] * size + right[both]
        tables.append(np.bincount(pairs, minlength=size * size).reshape(size, size).astype(float))
    return tables
