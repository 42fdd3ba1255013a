"""Opinion scores, which combine several evaluations into one number, and the agreement of the raters.

An evaluation is any object with `rating`, `score`, `passed`, `level_index` or `overall_score`, such as the
output of a critic. Pass evaluations as a flat list, or grouped by item and rater to measure agreement.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from autorubric.errors import ArgumentError
from autorubric.metrics.core.intervals import clustered_se
from autorubric.metrics.core.resampling import Resampling, interval_of
from autorubric.metrics.core.scales import Nominal, Ordinal
from autorubric.metrics.figures.icc import icc
from autorubric.metrics.figures.kappa import cohen_kappa, gwet_ac
from autorubric.metrics.figures.krippendorff import krippendorff_alpha
from autorubric.metrics.figures.many_raters import conger_kappa, fleiss_kappa

AggregationMethod: TypeAlias = Literal["mean", "median", "mode", "min", "max", "weighted_mean"]
ReliabilityMethod: TypeAlias = Literal[
    "fleiss_kappa", "cohen_kappa", "weighted_kappa", "icc", "krippendorff_alpha", "gwet_ac1"
]
Ratings: TypeAlias = Mapping[Any, Mapping[Any, Any]] | Sequence[Sequence[Any]]
"""Evaluations as `{item: {rater: evaluation}}`, or items × raters with None for a missing evaluation."""

SCORE_FIELDS = ("rating", "score", "passed", "level_index", "overall_score")
"""Fields searched for an evaluation's score, in this order."""

_RESAMPLES, _AT_ONCE = 2000, 250


class AggregatedScore(BaseModel):
    """Several scores combined into one, with measures of spread.

    Attributes:
        aggregated_value: The combined score, in the units of the scores.
        aggregation_method: Method that combined the scores.
        individual_scores: The scores in input order; grouped evaluations are listed item by item.
        n_scores: Number of scores.
        variance: Sample variance of the scores (denominator n - 1); None for a single score.
        std_dev: Square root of `variance`; None for a single score.
        confidence_interval: 95% confidence interval of the value: Student's t for the mean, otherwise a
            percentile bootstrap. The sampling units are items, or scores if there is only one item. For a
            minimum or maximum, the interval stays within the observed scores. None for a single score.
        inter_rater_reliability: Agreement between raters; None if it is undefined or the evaluations were not
            grouped by item and rater.
        agreement_method: Method that computed `inter_rater_reliability`; None for a flat list.
        timestamp: Time of the computation, with time zone.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    aggregated_value: float
    aggregation_method: str
    individual_scores: list[Any]
    n_scores: int
    variance: float | None = None
    std_dev: float | None = None
    confidence_interval: tuple[float, float] | None = None
    inter_rater_reliability: float | None = None
    agreement_method: str | None = None
    timestamp: AwareDatetime = Field(default_factory=lambda: datetime.now(UTC))


def mean_opinion_score(evaluations: Sequence[Any] | Ratings) -> AggregatedScore:
    """Return the mean of the evaluations' scores; see `aggregate_scores`."""
    return aggregate_scores(evaluations, "mean")


def median_opinion_score(evaluations: Sequence[Any] | Ratings) -> AggregatedScore:
    """Return the median of the evaluations' scores; see `aggregate_scores`."""
    return aggregate_scores(evaluations, "median")


def aggregate_scores(
    evaluations: Sequence[Any] | Ratings,
    method: AggregationMethod = "mean",
    weights: Sequence[float] | None = None,
) -> AggregatedScore:
    """Combine evaluations into one score with its spread and, for grouped evaluations, rater agreement.

    Args:
        evaluations: A list of evaluations, or evaluations grouped by item and rater.
        method: How to combine the scores. If there are several modes, the lowest is used.
        weights: One weight per score, for `weighted_mean` only. `variance` ignores the weights.

    Raises:
        ArgumentError: If there are no evaluations, an evaluation has no score, or `method` and `weights` do
            not match.
    """
    if method not in get_args(AggregationMethod):
        raise ArgumentError(f"unknown method {method!r}; available: {', '.join(get_args(AggregationMethod))}")
    table = _table(evaluations) if _is_grouped(evaluations) else None
    rows = [[one] for one in evaluations] if table is None else table
    if isinstance(evaluations, Mapping):
        # Weights are in the caller's order, which may differ from the order of the raters in the table.
        rows = [list(row.values()) for row in evaluations.values()]
    placed = [(item, _score(one)) for item, row in enumerate(rows) for one in row if one is not None]
    if not placed:
        raise ArgumentError("there are no evaluations; pass at least one")
    members = np.array([item for item, _ in placed])
    scores = np.array([score for _, score in placed])
    weighed = _weights(method, weights, len(scores))
    if len(set(members.tolist())) == 1:
        # With a single item, only the scores of its raters show how much the value varies.
        members = np.arange(len(scores))
    spread = statistics.variance(scores.tolist()) if len(scores) > 1 else None
    return AggregatedScore(
        aggregated_value=float(_METHODS[method](scores, weighed)),
        aggregation_method=method,
        individual_scores=scores.tolist(),
        n_scores=len(scores),
        variance=spread,
        std_dev=None if spread is None else math.sqrt(spread),
        confidence_interval=_interval(method, scores, weighed, members),
        inter_rater_reliability=None if table is None else inter_rater_reliability(table),
        agreement_method=None if table is None else "fleiss_kappa",
    )


def inter_rater_reliability(
    ratings: Ratings, method: ReliabilityMethod = "fleiss_kappa", *, categories: Sequence[float] | None = None
) -> float | None:
    """Compute chance-corrected agreement between raters, or return None if it is undefined.

    `fleiss_kappa` and `gwet_ac1` (for categories) and `krippendorff_alpha` (nominal for `passed`, ordinal for
    `rating` and `level_index`, interval for `score` and `overall_score`) accept any number of raters and
    missing evaluations. `cohen_kappa` requires two raters. `weighted_kappa` uses quadratic weights: Cohen's
    kappa for two raters, Conger's for more. `icc` is ICC(2,1) over the items that every rater rated.
    `autorubric.metrics` provides the same statistics with confidence intervals.

    Args:
        ratings: `{item: {rater: evaluation}}`, or items × raters with None for a missing evaluation. A flat
            list is not accepted because it does not identify items and raters.
        method: Agreement statistic to compute.
        categories: All possible scores; only `gwet_ac1` uses them. Defaults to the range declared in the
            evaluations' schema or, if there is none, to the scores that occur.

    Raises:
        ArgumentError: If the evaluations are not grouped, an evaluation has no score, or the method does not
            support this number of raters.
    """
    if method not in get_args(ReliabilityMethod):
        raise ArgumentError(f"unknown method {method!r}; available: {', '.join(get_args(ReliabilityMethod))}")
    if not _is_grouped(ratings):
        raise ArgumentError(
            "ratings must not be a flat list, which does not identify raters; pass {item: {rater: "
            "evaluation}} or a list of items, each of which is a list with one evaluation per rater"
        )
    table = _table(ratings)
    scores = [[None if one is None else _score(one) for one in row] for row in table]
    if method == "gwet_ac1":
        return _gwet(scores, categories or _declared_categories(table))
    if method == "krippendorff_alpha":
        level = _level(one for row in table for one in row if one is not None)
        return krippendorff_alpha(scores, level=level, ci=None).value
    return _FIGURES[method](scores)


def _cohen(scores: list[list[float | None]]) -> float | None:
    if scores and len(scores[0]) != 2:
        raise ArgumentError(f"cohen_kappa requires two raters; got {len(scores[0])}. Use fleiss_kappa")
    return cohen_kappa([row[0] for row in scores], [row[1] for row in scores], ci=None).value


def _weighted(scores: list[list[float | None]]) -> float | None:
    seen = sorted({score for row in scores for score in row if score is not None})
    if not seen:
        return None
    if len(scores[0]) == 2:
        left, right = ([row[rater] for row in scores] for rater in (0, 1))
        return cohen_kappa(left, right, scale=Ordinal(seen, seen), weights="quadratic", ci=None).value
    return conger_kappa(scores, scale=Ordinal(seen, seen), weights="quadratic", ci=None).value


def _gwet(scores: list[list[float | None]], categories: Sequence[float] | None) -> float | None:
    seen = sorted({score for row in scores for score in row if score is not None})
    labels = [float(one) for one in categories] if categories is not None else seen
    if not labels:
        return None
    return gwet_ac(ratings=scores, scale=Nominal(labels), ci=None).value


_FIGURES: dict[str, Callable[[list[list[float | None]]], float | None]] = {
    "fleiss_kappa": lambda scores: fleiss_kappa(scores, ci=None).value,
    "cohen_kappa": _cohen,
    "weighted_kappa": _weighted,
    "icc": lambda scores: icc(scores, form="ICC(2,1)", ci=None).value,
}


def _is_grouped(evaluations: Any) -> bool:
    if isinstance(evaluations, Mapping):
        return True
    if isinstance(evaluations, str) or not isinstance(evaluations, Sequence):
        raise ArgumentError(
            f"evaluations must be a list or a mapping of items; got {type(evaluations).__name__}"
        )
    return bool(evaluations) and all(isinstance(one, list | tuple) for one in evaluations)


def _table(ratings: Any) -> list[list[Any]]:
    """Return items × raters; raters of a mapping are in the order of their first evaluation."""
    if not isinstance(ratings, Mapping):
        rows = [list(row) for row in ratings]
        if len({len(row) for row in rows}) > 1:
            raise ArgumentError("items have different numbers of raters; use None for missing evaluations")
        return rows
    wrong = [item for item, row in ratings.items() if not isinstance(row, Mapping)]
    if wrong:
        raise ArgumentError(f"item {wrong[0]!r} must be a mapping of raters to evaluations")
    raters = list(dict.fromkeys(rater for row in ratings.values() for rater in row))
    return [[row.get(rater) for rater in raters] for row in ratings.values()]


def _scored_field(evaluation: Any) -> tuple[str, Any]:
    """Return the name and the value of the field that holds an evaluation's score."""
    for name in SCORE_FIELDS:
        found = evaluation.get(name) if isinstance(evaluation, Mapping) else getattr(evaluation, name, None)
        if found is not None:
            return name, found
    raise ArgumentError(
        f"{type(evaluation).__name__} has no score; an evaluation must have one of {', '.join(SCORE_FIELDS)}"
    )


def _score(evaluation: Any) -> float:
    name, found = _scored_field(evaluation)
    try:
        score = float(found)
    except (TypeError, ValueError):
        score = math.nan
    if not math.isfinite(score):
        raise ArgumentError(f"{type(evaluation).__name__}.{name} must be a finite number; got {found!r}")
    return score


def _level(evaluations: Iterable[Any]) -> Literal["nominal", "ordinal", "interval"]:
    fields = {_scored_field(one)[0] for one in evaluations}
    if fields <= {"passed"}:
        return "nominal"
    return "ordinal" if fields <= {"passed", "rating", "level_index"} else "interval"


def _declared_categories(table: list[list[Any]]) -> Sequence[float] | None:
    """Return all scores that the evaluations' schemas allow; None if a schema does not declare them."""
    allowed: set[float] = set()
    for one in (one for row in table for one in row if one is not None):
        name, _ = _scored_field(one)
        if name == "passed":
            allowed |= {0.0, 1.0}
            continue
        declared = type(one).model_fields.get(name) if isinstance(one, BaseModel) else None
        limits = declared.metadata if declared is not None else ()
        bounds = {end: getattr(one, end) for one in limits for end in ("ge", "le") if hasattr(one, end)}
        if declared is None or declared.annotation is not int or set(bounds) != {"ge", "le"}:
            return None
        allowed |= {float(score) for score in range(bounds["ge"], bounds["le"] + 1)}
    return sorted(allowed)


def _weights(method: str, weights: Sequence[float] | None, count: int) -> Any:
    if (weights is not None) != (method == "weighted_mean"):
        raise ArgumentError("weights and method='weighted_mean' must be used together")
    if weights is None:
        return np.ones(count)
    try:
        given = np.array([float(one) for one in weights])
    except (TypeError, ValueError):
        raise ArgumentError(f"weights must be one non-negative number per score; got {weights!r}") from None
    if len(given) != count:
        raise ArgumentError(f"got {len(given)} weights for {count} scores; pass one weight per score")
    if not (np.isfinite(given).all() and (given >= 0).all() and given.sum() > 0):
        raise ArgumentError(f"weights must be finite, non-negative and not all 0; got {list(weights)!r}")
    return given


def _mode(scores: Any, weights: Any) -> Any:
    values = np.unique(scores[~np.isnan(scores)])
    counts = (scores[..., None] == values).sum(-2)
    return values[counts.argmax(-1)]


def _weighted_mean(scores: Any, weights: Any) -> Any:
    total = np.asarray(weights.sum(-1))
    return np.where(total > 0, np.nansum(scores * weights, -1) / np.where(total > 0, total, 1.0), np.nan)


_METHODS: dict[str, Callable[[Any, Any], Any]] = {
    "mean": lambda scores, weights: np.nanmean(scores, -1),
    "median": lambda scores, weights: np.nanmedian(scores, -1),
    "mode": _mode,
    "min": lambda scores, weights: np.nanmin(scores, -1),
    "max": lambda scores, weights: np.nanmax(scores, -1),
    "weighted_mean": _weighted_mean,
}
"""Functions from scores and weights of shape `(…, n)` to values of shape `(…)`; NaN scores are ignored."""


def _interval(method: str, scores: Any, weights: Any, members: Any) -> tuple[float, float] | None:
    if len(scores) < 2:
        return None
    if method == "mean":
        found = clustered_se(scores, members)
        if found.low is None or found.high is None:
            # All groups have the same mean.
            return float(found), float(found)
        return found.low, found.high
    return _bootstrap(_METHODS[method], scores, weights, members)


def _bootstrap(
    compute: Callable[[Any, Any], Any], scores: Any, weights: Any, members: Any
) -> tuple[float, float] | None:
    """Compute a percentile interval over resampled items; the same scores always give the same interval."""
    rng = np.random.default_rng(0)
    places = [np.flatnonzero(members == one) for one in np.unique(members)]
    # Items are padded with NaN scores to the same length, so that all resamples have the same shape.
    longest = max(len(own) for own in places)
    units = np.full((len(places), longest), len(scores))
    for unit, own in zip(units, places, strict=True):
        unit[: len(own)] = own
    padded, own_weights = np.append(scores, np.nan), np.append(weights, 0.0)
    drawn = []
    for _ in range(_RESAMPLES // _AT_ONCE):
        chosen = units[rng.integers(0, len(units), size=(_AT_ONCE, len(units)))].reshape(_AT_ONCE, -1)
        drawn.append(compute(padded[chosen], own_weights[chosen]))
    low, high, _ = interval_of(np.concatenate(drawn), Resampling(), most_undefined=1.0)[0]
    return None if low is None or high is None else (low, high)
