"""Binning of forecasts: equal width, equal mass, or one bin for each distinct forecast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics._probabilities._forecasts import Forecasts
from autorubric.metrics._probabilities._observations import Observations
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Codes

Strategy: TypeAlias = Literal["width", "mass"]
"""Bins of equal width, or with roughly equal numbers of forecasts."""


@dataclass(frozen=True, slots=True)
class Binned:
    """Forecasts sorted by bin, without empty bins.

    Attributes:
        prob: Forecast probability, shape `(n,)`.
        happened: 1 if the forecast event happened, otherwise 0, shape `(n,)`.
        place: Bin of each forecast, 0..B-1, in increasing order, shape `(n,)`.
        starts: Index of the first forecast of each bin, shape `(B,)`.
        edges: Lower and upper edge of each bin, shape `(B, 2)`.
        seen: Observations and clusters used for resampling.
    """

    prob: Array
    happened: Array
    place: Codes
    starts: Codes
    edges: Array
    seen: Observations

    def sums(self, weighted: Array) -> Array:
        """Sum values of shape `(..., n)` within each bin; the result has shape `(..., B)`."""
        return np.asarray(np.add.reduceat(weighted, self.starts, axis=-1))

    def means(self, weights: Array) -> tuple[Array, Array, Array]:
        """Return weight, mean forecast and rate of each bin, shape `(..., B)`; means without weight are 0."""
        n = self.sums(weights)
        filled = np.where(n == 0, 1.0, n)
        return n, self.sums(weights * self.prob) / filled, self.sums(weights * self.happened) / filled

    @property
    def ones(self) -> Array:
        """A weight of 1 for each observation, shape `(n,)`."""
        return np.ones(len(self.prob))


def into_bins(prob: Array, happened: Array, given: Forecasts, bins: int | None, strategy: Strategy) -> Binned:
    """Put forecasts into bins; `bins=None` gives each distinct forecast its own bin."""
    if bins is not None and (isinstance(bins, bool) or bins != int(bins) or bins < 1):
        raise ArgumentError(f"bins must be a positive integer; got {bins!r}")
    if strategy not in get_args(Strategy):
        raise ArgumentError(f"strategy must be one of {list(get_args(Strategy))}; got {strategy!r}")
    edges, where = _edges(prob, bins, strategy)
    order = np.argsort(where, kind="stable")
    used, starts, place = np.unique(where[order], return_index=True, return_inverse=True)
    cluster = None if given.cluster is None else given.cluster[order]
    return Binned(
        prob[order],
        happened[order].astype(float),
        place.reshape(-1),
        starts,
        edges[used],
        Observations(given.n, cluster, given.n_missing),
    )


def _edges(prob: Array, bins: int | None, strategy: Strategy) -> tuple[Array, Codes]:
    if bins is None or not prob.size:
        distinct, where = np.unique(prob, return_inverse=True)
        return np.column_stack([distinct, distinct]), where.reshape(-1)
    # k / bins is the float nearest to the decimal, so that 0.3 falls on the edge 3 / 10.
    cuts = np.arange(int(bins) + 1) / int(bins)
    if strategy == "mass":
        cuts = np.quantile(prob, cuts)
    where = np.searchsorted(cuts[1:-1], prob, side="left")
    return np.column_stack([cuts[:-1], cuts[1:]]), where


def describe_bins(bins: int | None, strategy: Strategy) -> str:
    """Describe the bins and their edge rule in words."""
    if bins is None:
        return "one bin per distinct forecast"
    kind = "equal width" if strategy == "width" else "equal mass (quantiles of the sample)"
    return f"{bins} bins of {kind}, closed above (the first also below)"


def stated_forecasts(given: Forecasts) -> tuple[Array, Array, str]:
    """Return the probabilities to calibrate, whether their events happened, and their description.

    With one column, the probability is P(positive). With K columns, it is the probability of the top label,
    and the event is that this label is right; among equal probabilities, the first is the top label.
    """
    if given.prob.ndim == 1:
        return given.prob, given.truth, "P(positive)"
    top = given.prob.argmax(axis=1)
    return given.prob[np.arange(given.n), top], top == given.truth, "top-label confidence"
