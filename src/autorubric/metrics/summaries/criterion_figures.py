"""Metrics of one rater on one criterion, computed from two columns of codes or numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from autorubric.metrics.core import contingency as shares
from autorubric.metrics.core.contingency import NumberPairs
from autorubric.metrics.core.estimate import Estimate, Reason, TestStatistic
from autorubric.metrics.core.intervals import wilson
from autorubric.metrics.core.read_votes import Cells, Column, Modes
from autorubric.metrics.core.resampling import IntervalOptions
from autorubric.metrics.core.scales import Array, Ordinal, weight_matrix
from autorubric.metrics.core.votes_table import ABSTAINED, FAILED, MeasuredCriterion, Outcome
from autorubric.metrics.figures.bias import ConfidenceInterval, bias_of
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
from autorubric.metrics.figures.kappa import kappa_of, undefined_reason
from autorubric.metrics.figures.ranks import Ranked, rank_pairs, rank_table
from autorubric.metrics.summaries.results import (
    AnyCriterionMetrics,
    ConfusionMatrix,
    CorrelationResult,
    CriterionMetrics,
    IntervalCriterionMetrics,
    NominalCriterionMetrics,
    OptionMetrics,
    OrdinalCriterionMetrics,
    RankingCriterionMetrics,
    interpret_correlation,
    interpret_kappa,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnCriterion:
    """A criterion with the labels and the decisions of one rater.

    Attributes:
        criterion: Criterion with its measurement level and answers.
        index: Position of the criterion in the run.
        truth: Ground-truth labels.
        rater: Decisions of the rater.
        table: Counts of pairs of label and decision, with truth in the rows; see `tables_of`.
        modes: Treatment of abstentions.
        options: Interval options of correlations.
        fleiss_kappa: Agreement among the judges.
        outcomes: Outcomes of comparisons on the criterion.
        positions: Samples answered equally in both orders of the candidates, and samples answered in both.
    """

    criterion: MeasuredCriterion
    index: int
    truth: Column
    rater: Column
    table: Array
    modes: Modes
    options: IntervalOptions
    fleiss_kappa: float | None
    outcomes: tuple[Outcome, ...] = ()
    positions: tuple[int, int] = (0, 0)


class Noted:
    """A collector of the reasons why metrics are None."""

    def __init__(self) -> None:
        self.reasons: dict[str, Reason] = {}

    def take(self, name: str, value: Array | float, reason: Reason) -> float | None:
        """Return the value as a float; if it is NaN, record the reason and return None."""
        number = float(value)
        if math.isnan(number):
            self.reasons[name] = reason
            return None
        return number

    def refuse(self, name: str, reason: Reason) -> None:
        """Record the reason why a metric is None."""
        self.reasons[name] = reason

    def estimate(self, name: str, found: Estimate) -> float | None:
        """Return the estimate's value; if it is undefined, record its reason and return None."""
        if found.value is None and found.reason is not None:
            self.reasons[name] = found.reason
        return found.value


def tables_of(cells: Cells, rater: Column, modes: Modes) -> list[Array]:
    """Count the pairs of codes on each criterion, as `(K, K)` tables with truth in the rows."""
    tables = []
    for place, span in enumerate(cells.spans):
        size = cells.size(place, modes)
        truth, judged = cells.truth.code[span], rater.code[span]
        both = (truth >= 0) & (judged >= 0)
        pairs = truth[both] * size + judged[both]
        tables.append(np.bincount(pairs, minlength=size * size).reshape(size, size).astype(float))
    return tables


def weights_on_values(criterion: MeasuredCriterion) -> Array:
    """Return quadratic agreement weights on the option values, shape `(K, K)`."""
    return weight_matrix(
        "quadratic", Ordinal(range(len(criterion.categories)), category_values(criterion)), 0
    )


def category_values(criterion: MeasuredCriterion) -> list[float]:
    """Return the values of the categories in [0, 1], or their positions if any value is missing."""
    values = [answer.value for answer in criterion.categories]
    if any(value is None for value in values):
        return [float(place) for place in range(len(values))]
    return [value for value in values if value is not None]


def figures_on(given: OnCriterion) -> AnyCriterionMetrics | None:
    """Compute the metrics of the criterion, or return None for levels without metrics."""
    match given.criterion.level:
        case "binary":
            return _binary(given)
        case "nominal":
            return NominalCriterionMetrics(**_nominal(given, Noted()))
        case "ordinal":
            return _ordinal(given)
        case "interval":
            return _interval(given)
        case "ranking":
            return _ranking(given) if given.outcomes else None
        case _:
            return None


def _coverage(given: OnCriterion, n_samples: int, noted: Noted) -> dict[str, Any]:
    labelled = given.truth.status > 0
    n = int(np.count_nonzero(labelled))
    status = given.rater.status[labelled]
    return {
        "name": given.criterion.name,
        "index": given.index,
        "criterion_type": given.criterion.level,
        "n_samples": n_samples,
        "n_labelled": n,
        "coverage": n_samples / n if n else None,
        "abstention_rate": float((status == ABSTAINED).mean()) if n else None,
        "failure_rate": float((status == FAILED).mean()) if n else None,
        "reasons": noted.reasons,
    }


def _labels(given: OnCriterion) -> tuple[str, ...]:
    extra = ("CANNOT_ASSESS",) if given.modes.has_category else ()
    return (*(answer.label or str(answer.code) for answer in given.criterion.categories), *extra)


def _confusion(given: OnCriterion, table: Array) -> ConfusionMatrix:
    return ConfusionMatrix(
        labels=_labels(given), counts=tuple(tuple(int(count) for count in row) for row in table)
    )


def _binary(given: OnCriterion) -> CriterionMetrics:
    table = given.table
    noted, met = Noted(), 1
    cells = shares.one_against_rest(table, met)
    n = int(table.sum())
    none: Reason | None = "no_pairs" if not n else None
    kappa = noted.take("kappa", kappa_of(table), undefined_reason(table))
    return CriterionMetrics(
        accuracy=noted.take("accuracy", shares.accuracy_of(table), "no_pairs"),
        balanced_accuracy=noted.take(
            "balanced_accuracy", shares.balanced_accuracy_of(table), none or "single_class"
        ),
        precision=noted.take("precision", shares.precision_of(table, met), none or "no_positive_in_pred"),
        recall=noted.take("recall", shares.recall_of(table, met), none or "no_positive_in_truth"),
        sensitivity=noted.take("sensitivity", shares.recall_of(table, met), none or "no_positive_in_truth"),
        sensitivity_ci=_wilson(cells.tp, cells.tp + cells.fn, given.options),
        specificity=noted.take(
            "specificity", shares.specificity_of(table, met), none or "no_negative_in_truth"
        ),
        specificity_ci=_wilson(cells.tn, cells.tn + cells.fp, given.options),
        f1=noted.take("f1", shares.f1_of(table, met), none or "no_positive"),
        kappa=kappa,
        kappa_interpretation=interpret_kappa(kappa),
        mcc=noted.take("mcc", shares.mcc_of(table), none or "no_variance"),
        support_true=int(table[met].sum()),
        support_pred=int(table[:, met].sum()),
        confusion_matrix=_confusion(given, table),
        fleiss_kappa=given.fleiss_kappa,
        **_coverage(given, n, noted),
    )


def _wilson(hits: Array, n: Array, options: IntervalOptions) -> ConfidenceInterval | None:
    found = wilson(int(hits), int(n), confidence_level=options.confidence_level)
    if found.low is None or found.high is None:
        return None
    return ConfidenceInterval(
        lower=found.low, upper=found.high, confidence=options.confidence_level, method="Wilson"
    )


def _nominal(given: OnCriterion, noted: Noted) -> dict[str, Any]:
    labels = _labels(given)
    table = given.table
    n = int(table.sum())
    kappa = noted.take("kappa", kappa_of(table), undefined_reason(table))
    return {
        "exact_accuracy": noted.take("exact_accuracy", shares.accuracy_of(table), "no_pairs"),
        "balanced_accuracy": noted.take(
            "balanced_accuracy", shares.balanced_accuracy_of(table), "single_class" if n else "no_pairs"
        ),
        "macro_f1": noted.take("macro_f1", shares.macro_f1_of(table), "no_pairs"),
        "kappa": kappa,
        "kappa_interpretation": interpret_kappa(kappa),
        "per_option": tuple(_option(label, table, place) for place, label in enumerate(labels)),
        "confusion_matrix": _confusion(given, table),
        "fleiss_kappa": given.fleiss_kappa,
        **_coverage(given, n, noted),
    }


def _option(label: str, table: Array, place: int) -> OptionMetrics:
    plain = Noted()
    return OptionMetrics(
        label=label,
        precision=plain.take("precision", shares.precision_of(table, place), "no_positive_in_pred"),
        recall=plain.take("recall", shares.recall_of(table, place), "no_positive_in_truth"),
        f1=plain.take("f1", shares.f1_of(table, place), "no_positive"),
        support_true=int(table[place].sum()),
        support_pred=int(table[:, place].sum()),
    )


def _ordinal(given: OnCriterion) -> OrdinalCriterionMetrics:
    noted = Noted()
    shared = _nominal(given, noted)
    if given.modes.has_category:
        # A category of abstentions has no place in the order, so metrics that need an order are undefined.
        for name in ("adjacent_accuracy", "weighted_kappa", "spearman", "kendall", "rmse", "mae"):
            noted.refuse(name, "na_as_category")
        nothing = CorrelationResult(coefficient=None, reason="na_as_category", n_samples=shared["n_samples"])
        return OrdinalCriterionMetrics(
            adjacent_accuracy=None, adjacent_by_chance=None, weighted_kappa=None,
            weighted_kappa_interpretation="undefined", spearman=nothing, kendall=nothing, rmse=None, mae=None,
            **shared,
        )  # fmt: skip
    table = given.table
    values = np.array(category_values(given.criterion))
    ranked = rank_table(table, values)
    weighted = noted.take(
        "weighted_kappa", kappa_of(table, weights_on_values(given.criterion)), undefined_reason(table)
    )
    gaps = np.subtract.outer(values, values)
    n = table.sum()
    by_chance = np.outer(table.sum(1), table.sum(0))
    return OrdinalCriterionMetrics(
        adjacent_accuracy=noted.take("adjacent_accuracy", shares.adjacent_accuracy_of(table), "no_pairs"),
        adjacent_by_chance=noted.take(
            "adjacent_by_chance", shares.adjacent_accuracy_of(by_chance), "no_pairs"
        ),
        weighted_kappa=weighted,
        weighted_kappa_interpretation=interpret_kappa(weighted),
        spearman=rank_correlation("spearman", ranked, given.options, noted),
        kendall=rank_correlation("kendall", ranked, given.options, noted),
        rmse=noted.take("rmse", np.sqrt(shares.divide((table * gaps**2).sum(), n)), "no_pairs"),
        mae=noted.take("mae", shares.divide((table * np.abs(gaps)).sum(), n), "no_pairs"),
        **shared,
    )


def _interval(given: OnCriterion) -> IntervalCriterionMetrics:
    in_units = given.truth.number, given.rater.number
    both = ~(np.isnan(in_units[0]) | np.isnan(in_units[1]))
    if not both.any():
        # Answers that are not single numbers (a checklist, several dimensions) are compared by their value.
        in_units = given.truth.value, given.rater.value
        both = ~(np.isnan(in_units[0]) | np.isnan(in_units[1]))
    pairs = NumberPairs(in_units[0][both], in_units[1][both], None, int((~both).sum()))
    noted = Noted()
    ranked = rank_pairs(pairs)
    plain = IntervalOptions(ci=None)
    return IntervalCriterionMetrics(
        rmse=noted.estimate("rmse", rmse_estimate(pairs, plain)),
        mae=noted.estimate("mae", mae_estimate(pairs, plain)),
        bias=bias_of(pairs, given.options),
        pearson=linear_correlation(pairs, given.options, noted),
        spearman=rank_correlation("spearman", ranked, given.options, noted),
        kendall=rank_correlation("kendall", ranked, given.options, noted),
        ccc=noted.estimate("ccc", ccc_estimate(pairs, plain)),
        **_coverage(given, pairs.n, noted),
    )


def _ranking(given: OnCriterion) -> RankingCriterionMetrics:
    table = given.table
    noted = Noted()
    n = int(table.sum())
    kappa = noted.take("kappa", kappa_of(table), undefined_reason(table))
    shared = [outcome.count(0) > 1 for outcome in given.outcomes]
    judged = given.rater.code[given.rater.code >= 0]
    alike, pairs = given.positions
    return RankingCriterionMetrics(
        accuracy=noted.take("accuracy", shares.accuracy_of(table), "no_pairs"),
        kappa=kappa,
        kappa_interpretation=interpret_kappa(kappa),
        tie_rate=noted.take(
            "tie_rate", np.array(shared)[judged].mean() if judged.size else np.nan, "no_pairs"
        ),
        position_consistency=noted.take(
            "position_consistency", alike / pairs if pairs else np.nan, "no_pairs"
        ),
        n_position_pairs=pairs,
        **_coverage(given, n, noted),
    )


def linear_correlation(pairs: NumberPairs, options: IntervalOptions, noted: Noted) -> CorrelationResult:
    """Compute Pearson's r with p-value and interval."""
    found = pearson_estimate(pairs, options)
    return _correlation("pearson", found, _test_of(found), options, noted)


def rank_correlation(name: str, ranked: Ranked, options: IntervalOptions, noted: Noted) -> CorrelationResult:
    """Compute Spearman's rho or Kendall's tau-b with p-value and interval."""
    if name == "spearman":
        found = spearman_estimate(ranked, options)
        return _correlation(name, found, _test_of(found), options, noted)
    found = kendall_estimate(ranked, options)
    test = kendall_test(ranked, found.value)
    return _correlation(name, found, (None if test is None else test.p_value, test), options, noted)


def _test_of(found: Estimate) -> tuple[float | None, TestStatistic | None]:
    """Return a coefficient's p-value and test: neither if it is undefined, and no test if it is ±1."""
    if found.value is None:
        return None, None
    return correlation_p_value(found.value, found.n), correlation_test(found.value, found.n)


def _correlation(
    name: str,
    found: Estimate,
    tested: tuple[float | None, TestStatistic | None],
    options: IntervalOptions,
    noted: Noted,
) -> CorrelationResult:
    noted.estimate(name, found)
    ends = None
    if found.low is not None and found.high is not None:
        ends = ConfidenceInterval(
            lower=found.low, upper=found.high, confidence=options.confidence_level, method="Fisher z"
        )
    return CorrelationResult(
        coefficient=found.value,
        p_value=tested[0],
        test=tested[1],
        ci=ends,
        interpretation=interpret_correlation(found.value),
        n_samples=found.n,
        method=name,
        reason=found.reason,
    )
