"""Estimates of metrics that are functions of the observation weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from autorubric.metrics._estimate import Estimate, Reason
from autorubric.metrics._estimation import Figure, estimate, proportion
from autorubric.metrics._intervals import Ends, logit_t_ends, t_quantile
from autorubric.metrics._options import IntervalOptions
from autorubric.metrics._rater_tables import weighted_units
from autorubric.metrics._resampling import Array, Compute, Units
from autorubric.metrics._scales import Codes


@dataclass(frozen=True, slots=True)
class Observations:
    """Observations and clusters used for resampling.

    Attributes:
        n: Number of observations.
        cluster: Cluster of each observation, 0..C-1 without gaps; None if each observation is its own unit.
        n_missing: Number of excluded observations.
    """

    n: int
    cluster: Codes | None
    n_missing: int

    @property
    def n_units(self) -> int:
        """Number of sampling units."""
        return self.n if self.cluster is None else int(self.cluster.max(initial=-1)) + 1

    def estimate(self, figure: Figure, options: IntervalOptions, *, note: str = "") -> Estimate:
        """Return the metric with the interval requested by the options."""
        units = weighted_units(self.n, self.cluster)
        return estimate(figure, units, options, n_missing=self.n_missing, note=note)

    def spread(self, effects: Array) -> float:
        """Return the standard error from first-order effects, with the factor C/(C-1)."""
        sums = effects if self.cluster is None else np.bincount(self.cluster, weights=effects)
        return math.sqrt(float((sums**2).sum()) * self.n_units / (self.n_units - 1))

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
        auto_clustered="analytic",
        analytic=analytic,
        on_table=False,
    )


def t_ends(
    seen: Observations, effects: Callable[[], Array], bounds: tuple[float, float] = (0.0, 1.0)
) -> EndsOf:
    """Return a t interval from first-order effects, clipped to the bounds."""

    def ends(value: float, confidence_level: float) -> Ends:
        if seen.n_units < 2:
            return Ends(None, None, None)
        se = seen.spread(effects())
        half = seen.quantile(confidence_level) * se
        return Ends(max(bounds[0], value - half), min(bounds[1], value + half), se)

    return ends


def logit_ends(seen: Observations, effects: Callable[[], Array], high: float) -> EndsOf:
    """Return a t interval on the logit scale for a mean in [0, high].

    At the bounds, and where all units contribute the same, this is Wilson's interval with one trial per unit.
    """

    def ends(value: float, confidence_level: float) -> Ends:
        if seen.n_units < 2:
            return Ends(None, None, None)
        se = seen.spread(effects())
        low, up = logit_t_ends(value / high, se / high, seen.n_units, confidence_level)
        return Ends(high * low, high * up, se)

    return ends


_RATE = Figure(
    name="rate",
    compute=lambda sums: sums[..., 1] / sums[..., 0],
    reason=lambda sums: "no_pairs",
    bounds=(0.0, 1.0),
    auto="analytic",
    auto_clustered="analytic",
    analytic=proportion,
    trials=lambda sums: sums[..., 0],
    on_table=False,
)


def rate(name: str, hits: Array, cluster: Codes | None, options: IntervalOptions) -> Estimate:
    """Return the share of ones in `hits`, shape `(n,)`, with Wilson's interval, or logit-t with clusters."""
    if cluster is None:
        right = np.count_nonzero(hits)
        counts, sums = np.array([len(hits) - right, right]), np.array([[1.0, 0.0], [1.0, 1.0]])
    else:
        sizes = np.bincount(cluster)
        there = sizes > 0
        sums = np.column_stack([sizes, np.bincount(cluster, weights=hits)])[there]
        counts = np.ones(len(sums), dtype=np.int64)
    units = Units(counts=counts, n=len(hits), sums=sums, clustered=cluster is not None)
    return estimate(replace(_RATE, name=name), units, options)


def mean_of(values: Array) -> Compute:
    """Return a function that computes the weighted mean of values, shape `(n,)`, for weights `(..., n)`."""
    return lambda weights: np.asarray((weights @ values) / weights.sum(-1))
