"""Reading and validation of truth and forecast probabilities, and estimates from weighted observations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.core.contingency import divide, drop_incomplete, encode, numeric_column, renumber
from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.estimation import Figure, estimate, proportion, ratio_figure
from autorubric.metrics.core.intervals import logit_t_ends, t_quantile
from autorubric.metrics.core.read_votes import Cells
from autorubric.metrics.core.resampling import (
    NO_ENDS,
    Compute,
    Ends,
    IntervalOptions,
    Units,
    row_units,
    standard_error,
    weighted_units,
)
from autorubric.metrics.core.scales import MISSING, Array, Binary, Codes, Scale
from autorubric.metrics.core.votes_table import ANSWERED, MeasuredCriterion


@dataclass(frozen=True, slots=True)
class Observations:
    """Observations and clusters used for resampling."""

    n: int
    # cluster of each observation, 0..C-1 without gaps; None if each observation is its own unit
    cluster: Codes | None
    n_missing: int

    @property
    def n_units(self) -> int:
        return self.n if self.cluster is None else int(self.cluster.max(initial=-1)) + 1

    def estimate(self, figure: Figure, options: IntervalOptions, *, note: str = "") -> Estimate:
        units = weighted_units(self.n, self.cluster)
        return estimate(figure, units, options, n_missing=self.n_missing, note=note)

    def spread(self, effects: Array) -> float:
        """Return the standard error from first-order effects, with the factor C/(C-1)."""
        sums = effects if self.cluster is None else np.bincount(self.cluster, weights=effects)
        return standard_error(sums, self.n_units)

    def quantile(self, confidence_level: float) -> float:
        """Return the two-sided t quantile with one degree of freedom fewer than the number of units."""
        return t_quantile(confidence_level, self.n_units - 1)


EndsOf = Callable[[float, float], Ends]
"""Function from (value, confidence level) to the bounds of an interval."""


def weighted_figure(
    name: str, compute: Compute, ends: EndsOf, *, reason: Reason = "no_pairs", high: float = 1.0
) -> Figure:
    """Return a metric in [0, high] of the observation weights, with an analytic interval by default."""

    def analytic(figure: Figure, units: Units, value: float, confidence_level: float) -> Ends:
        return ends(value, confidence_level)

    return Figure(
        name=name,
        compute=compute,
        reason=lambda sums: reason,
        bounds=(0.0, high),
        auto="analytic",
        analytic=analytic,
        on_table=False,
    )


def t_ends(
    seen: Observations, effects: Callable[[], Array], bounds: tuple[float, float] = (0.0, 1.0)
) -> EndsOf:
    """Return a t interval from first-order effects, clipped to the bounds."""

    def ends(value: float, confidence_level: float) -> Ends:
        if seen.n_units < 2:
            return NO_ENDS
        se = seen.spread(effects())
        half = seen.quantile(confidence_level) * se
        return Ends(max(bounds[0], value - half), min(bounds[1], value + half), se)

    return ends


def logit_ends(seen: Observations, effects: Callable[[], Array], high: float) -> EndsOf:
    """Return a logit-t interval for a mean in [0, high]; without spread, Wilson's with one trial per unit."""

    def ends(value: float, confidence_level: float) -> Ends:
        if seen.n_units < 2:
            return NO_ENDS
        se = seen.spread(effects())
        low, up = logit_t_ends(value / high, se / high, seen.n_units, confidence_level)
        return Ends(high * low, high * up, se)

    return ends


def rate(name: str, hits: Array, cluster: Codes | None, options: IntervalOptions) -> Estimate:
    """Return the share of ones in `hits`, shape `(n,)`, with Wilson's interval, or logit-t with clusters."""
    if cluster is None:
        right = np.count_nonzero(hits)
        counts, sums = np.array([len(hits) - right, right]), np.array([[0.0, 1.0], [1.0, 1.0]])
        units = Units(counts=counts, n=len(hits), sums=sums)
    else:
        units = row_units(np.column_stack([hits, np.ones(len(hits))]), renumber(cluster))
    return estimate(ratio_figure(name, proportion, trials=lambda sums: sums[..., 1]), units, options)


def split_mass(criterion: MeasuredCriterion, given: Sequence[Mapping[str, float]]) -> tuple[Array, float]:
    """Return the mean probabilities of categories if one is the answer (NaN if none), and the other mass."""
    places = {answer.label: at for at, answer in enumerate(criterion.categories)}
    mass = np.zeros(len(places) + 1)
    for label, share in (one for distribution in given for one in distribution.items()):
        mass[places.get(label, -1)] += share
    return divide(mass[:-1], mass[:-1].sum()), float(mass[-1] / mass.sum())


def labels_of(cells: Cells, place: int) -> dict[int, int]:
    """Return the category of each item's label on a criterion, without labels that are abstentions."""
    span = cells.spans[place]
    labelled = (cells.truth.status[span] == ANSWERED) & (cells.truth.code[span] >= 0)
    return dict(
        zip(cells.item[span][labelled].tolist(), cells.truth.code[span][labelled].tolist(), strict=True)
    )


def mean_score(values: Array) -> Compute:
    """Return a function that computes the weighted mean of values, shape `(n,)`, for weights `(..., n)`."""
    return lambda weights: np.asarray((weights @ values) / weights.sum(-1))


SUM_TOLERANCE = 1e-3
"""Tolerance for the sum of a row of probabilities, sufficient for three printed decimals."""

_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Forecasts(Observations):
    """Observations with both a truth and a probability."""

    truth: Codes  # code of the outcome, shape `(n,)`; 0 or 1 with a single column
    prob: Array  # P(positive), shape `(n,)`, or a probability for each class, shape `(n, K)`

    @property
    def n_classes(self) -> int:
        return 2 if self.prob.ndim == 1 else int(self.prob.shape[1])

    @property
    def positive(self) -> Array:
        """P(class 1) if there are two classes, shape `(n,)`."""
        return self.prob if self.prob.ndim == 1 else self.prob[:, 1]


def read_forecasts(
    truth: Iterable[Any], prob: Any, scale: Scale | None, options: IntervalOptions
) -> Forecasts:
    """Read the observations that have both a truth and a probability."""
    chances = _check_probabilities(_columns(prob))
    codes = _binary_codes(truth, scale) if chances.ndim == 1 else _class_codes(truth, scale, chances.shape[1])
    if len(codes) != len(chances):
        raise ArgumentError(
            f"truth has {len(codes)} labels but prob has {len(chances)} rows; pass one of each per item"
        )
    there = ~np.isnan(chances) if chances.ndim == 1 else ~np.isnan(chances).any(axis=1)
    kept = there & (codes >= 0)
    members, n_missing = drop_incomplete(kept, options.cluster)
    return Forecasts(int(np.count_nonzero(kept)), members, n_missing, codes[kept], chances[kept])


def _columns(prob: Any) -> Array:
    if hasattr(prob, "__array__"):
        table = np.asarray(prob)
        if table.ndim not in (1, 2):
            raise ArgumentError(f"prob must have shape (n,) or (n, K); got {table.shape}")
        return numeric_column(table.reshape(-1), "prob").reshape(table.shape)
    rows = list(prob)
    widths = {len(row) for row in rows if _is_row(row)}
    if not widths:
        return numeric_column(rows, "prob")
    if len(widths) > 1:
        raise ArgumentError(f"rows of prob must have equal lengths; got lengths {sorted(widths)}")
    nothing = [None] * widths.pop()
    return np.array([numeric_column(row if _is_row(row) else nothing, "a row of prob") for row in rows])


def _is_row(row: Any) -> bool:
    return isinstance(row, list | tuple | np.ndarray)


def _check_probabilities(chances: Array) -> Array:
    with np.errstate(invalid="ignore"):
        outside = chances[(chances < -_ROUNDING) | (chances > 1 + _ROUNDING)]
    if outside.size:
        raise ArgumentError(
            f"prob must contain probabilities in [0, 1]; got {float(outside[0])!r}. Transform logits and "
            "scores to probabilities first"
        )
    if chances.ndim == 2:
        if chances.shape[1] < 2:
            raise ArgumentError(
                f"prob must be P(positive) of shape (n,), or (n, K) with K >= 2; got shape {chances.shape}"
            )
        sums = chances.sum(axis=1)
        off = sums[np.abs(sums - 1) > SUM_TOLERANCE + _ROUNDING]
        if off.size:
            raise ArgumentError(
                f"each row of prob must sum to 1 over all classes; a row sums to {float(off[0])!r}. "
                "Divide each row by its sum if its numbers are proportions"
            )
    return np.clip(chances, 0.0, 1.0)


def _binary_codes(truth: Iterable[Any], scale: Scale | None) -> Codes:
    coded = encode((truth,), scale or Binary(), None)
    if coded.size != 2:
        raise ArgumentError(
            f"{scale} has {coded.size} categories but prob has one column; pass shape (n, {coded.size})"
        )
    return coded.codes[0]


def _class_codes(truth: Iterable[Any], scale: Scale | None, n_classes: int) -> Codes:
    if scale is not None:
        coded = encode((truth,), scale, None)
        if coded.size != n_classes:
            raise ArgumentError(f"{scale} has {coded.size} categories but prob has {n_classes} columns")
        return coded.codes[0]
    numbers = numeric_column(truth, "truth")
    numbers = np.where(np.isnan(numbers), MISSING, numbers)
    wrong = numbers[(numbers != np.round(numbers)) | (numbers < MISSING) | (numbers >= n_classes)]
    if wrong.size:
        raise ArgumentError(
            f"with {n_classes} columns, truth must be a code from 0 to {n_classes - 1}, -1 or None if "
            f"missing, or a label of the scale that you pass; got {float(wrong[0])!r}"
        )
    return numbers.astype(np.int64)
