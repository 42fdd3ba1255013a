"""Metrics for comparing two judges: reading of items, differences, and each judge's own estimate."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from autorubric.metrics._chance import cohen_kappa
from autorubric.metrics._classification import accuracy
from autorubric.metrics._correlation import pearson
from autorubric.metrics._errors import mae
from autorubric.metrics._estimate import Estimate
from autorubric.metrics._estimation import Figure, estimate
from autorubric.metrics._judge_comparison._contests import (
    Contest,
    Statistic,
    accuracy_contest,
    callable_contest,
    kappa_contest,
    mae_contest,
    pearson_contest,
)
from autorubric.metrics._judge_comparison._triples import Triples, code_triples, label_triples, number_triples
from autorubric.metrics._options import CodedOptions, IntervalArguments, IntervalOptions
from autorubric.metrics._rater_tables import no_analytic
from autorubric.metrics._scales import Scale
from autorubric.metrics._weights import Weights, weight_matrix

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
