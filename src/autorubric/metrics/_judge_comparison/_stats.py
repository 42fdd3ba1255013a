"""Metrics for comparing two judges: items, differences, each judge's own estimate, adjusted p-values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics._chance import cohen_kappa
from autorubric.metrics._classification import accuracy
from autorubric.metrics._columns import numeric_column
from autorubric.metrics._correlation import pearson
from autorubric.metrics._errors import mae
from autorubric.metrics._estimate import Estimate
from autorubric.metrics._estimation import Figure, estimate
from autorubric.metrics._judge_comparison._contests import (
    Contest,
    Statistic,
    Triples,
    accuracy_contest,
    callable_contest,
    code_triples,
    kappa_contest,
    label_triples,
    mae_contest,
    number_triples,
    pearson_contest,
)
from autorubric.metrics._options import CodedOptions, IntervalArguments, IntervalOptions
from autorubric.metrics._rater_tables import no_analytic
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Scale
from autorubric.metrics._weights import Weights, weight_matrix

Adjustment: TypeAlias = Literal["holm", "bh", "by", "bonferroni"]


def adjust_pvalues(p: Iterable[float | None], method: Adjustment = "holm") -> list[float | None]:
    """Adjust p-values for multiple testing, keeping their order; None stays None and is not counted.

    The m p-values are sorted in increasing order, p_(1) ≤ … ≤ p_(m), and adjusted as follows:

    - `"holm"`: max over j ≤ i of (m - j + 1) p_(j) [1]; reporting adjusted values below α keeps the
      probability of any false positive at or below α;
    - `"bh"`: min over j ≥ i of m p_(j) / j [2]; reporting adjusted values below q keeps the expected fraction
      of false positives among them at or below q, if tests are independent or positively dependent;
    - `"by"`: the `"bh"` value times 1 + 1/2 + … + 1/m [3], with the same guarantee under any dependence;
    - `"bonferroni"`: m p [4], with the same guarantee as `"holm"`, which never gives larger values.

    Adjusted values are capped at 1 and are never below the original p-values.

    Args:
        p: P-values in [0, 1]; None and NaN mark tests that could not be run.
        method: Adjustment method.

    Raises:
        ArgumentError: If a p-value is outside [0, 1], or the method is unknown.

    References:
        [1] S. Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of
            Statistics 6(2), 65-70.
        [2] Y. Benjamini, Y. Hochberg (1995), Controlling the false discovery rate, Journal of the Royal
            Statistical Society B 57(1), 289-300.
        [3] Y. Benjamini, D. Yekutieli (2001), The control of the false discovery rate in multiple testing
            under dependency, Annals of Statistics 29(4), 1165-1188.
        [4] O. J. Dunn (1961), Multiple comparisons among means, JASA 56(293), 52-64.
    """
    if method not in get_args(Adjustment):
        raise ArgumentError(f"method must be one of {list(get_args(Adjustment))}; got {method!r}")
    given = numeric_column(p, "p")
    there = ~np.isnan(given)
    values = given[there]
    if np.any((values < 0) | (values > 1)):
        raise ArgumentError(f"p must be in [0, 1]; got {float(values[(values < 0) | (values > 1)][0])!r}")
    adjusted = np.full(len(given), np.nan)
    order = np.argsort(values, kind="stable")
    adjusted[np.flatnonzero(there)[order]] = _adjusted(values[order], method)
    return [None if np.isnan(one) else float(one) for one in adjusted]


def _adjusted(ascending: Array, method: Adjustment) -> Array:
    m = len(ascending)
    if method == "bonferroni":
        return np.asarray(np.minimum(m * ascending, 1.0))
    rank = np.arange(1, m + 1)
    if method == "holm":
        return np.minimum(np.maximum.accumulate((m - rank + 1) * ascending), 1.0)
    factor = float((1.0 / rank).sum()) if method == "by" else 1.0
    # In this order of operations, rounding never makes the last value less than p.
    scaled = ascending * (factor * (m / rank))
    return np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)


ComparisonStat: TypeAlias = Literal["kappa", "accuracy", "mae", "pearson"]
AnyStat: TypeAlias = ComparisonStat | Statistic


def read_triples(
    columns: tuple[Any, Any, Any], stat: AnyStat, scale: Scale | None, options: CodedOptions
) -> Triples:
    """Return the complete items in the form that the metric needs."""
    if stat == "kappa" or stat == "accuracy":
        return code_triples(columns, scale, options)
    if stat == "mae" or stat == "pearson":
        return number_triples(columns, scale, options)
    return label_triples(columns, scale, options)


def contest_of(triples: Triples, stat: AnyStat, weights: Weights) -> Contest:
    """Build the `Contest` that compares the judges by the metric."""
    if stat == "kappa":
        return kappa_contest(triples, weights)
    if stat == "accuracy":
        return accuracy_contest(triples)
    if stat == "mae":
        return mae_contest(triples)
    if stat == "pearson":
        return pearson_contest(triples)
    return callable_contest(stat, triples)


def side_estimates(
    triples: Triples, contest: Contest, stat: AnyStat, weights: Weights, options: IntervalOptions
) -> tuple[Estimate, Estimate]:
    """Return the metric of a and of b, each as computed by its own function."""
    if callable(stat):
        a, b = (estimate(_called_figure(contest, side), contest.units, options) for side in (0, 1))
        return a, b
    a, b = (_alone(triples, pred, stat, weights, options) for pred in (triples.a, triples.b))
    return a, b


def _alone(
    triples: Triples, pred: Any, stat: ComparisonStat, weights: Weights, options: IntervalOptions
) -> Estimate:
    # A correlation over clusters has no closed-form interval, although the difference has one.
    unavailable = stat == "pearson" and options.ci == "analytic" and triples.cluster is not None
    interval: IntervalArguments = {
        "cluster": options.cluster,
        "ci": "auto" if unavailable else options.ci,
        "confidence_level": options.confidence_level,
        "n_resamples": options.n_resamples,
        "rng": options.rng,
    }
    if stat == "mae":
        return mae(triples.truth, pred, **interval)
    if stat == "pearson":
        return pearson(triples.truth, pred, **interval)
    assert triples.coded is not None
    # Without labels there are no categories, so one is assumed.
    size = max(triples.coded.size, 1)
    if stat == "accuracy":
        return accuracy(triples.truth, pred, labels=size, **interval)
    matrix = None if weights is None else weight_matrix(weights, triples.coded.scale, size)
    return cohen_kappa(triples.truth, pred, labels=size, weights=matrix, **interval)


def _called_figure(contest: Contest, side: int) -> Figure:
    return Figure(
        name=contest.name,
        compute=lambda sums: contest.sides(sums)[side],
        reason=contest.reason,
        auto="percentile",
        auto_clustered="percentile",
        analytic=no_analytic,
        on_table=False,
    )
