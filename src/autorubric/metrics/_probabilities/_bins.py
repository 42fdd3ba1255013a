"""Forecasts in bins: of equal width, of equal mass, or one for each distinct forecast."""

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
"""Bins of equal width, or of about equally many forecasts."""


@dataclass(frozen=True, slots=True)
class Binned:
    """Forecasts sorted by bin; bins without a forecast are left out.

    Attributes:
        prob: Forecast probability, shape `(n,)`.
        happened: 1 where what it was a forecast of happened, shape `(n,)`.
        place: Bin of each forecast, 0..B-1, rising, shape `(n,)`.
        starts: Where each bin begins, shape `(B,)`.
        edges: Lower and upper edge of each bin, shape `(B, 2)`.
        seen: What figures of these bins are resampled by.
    """

    prob: Array
    happened: Array
    place: Codes
    starts: Codes
    edges: Array
    seen: Observations

    def sums(self, weighted: Array) -> Array:
        """Sums within each bin, shape `(..., B)`, of numbers of shape `(..., n)`."""
        return np.asarray(np.add.reduceat(weighted, self.starts, axis=-1))

    def means(self, weights: Array) -> tuple[Array, Array, Array]:
        """Weight, mean forecast and rate of each bin, shape `(..., B)`; means are 0 without weight."""
        n = self.sums(weights)
        filled = np.where(n == 0, 1.0, n)
        return n, self.sums(weights * self.prob) / filled, self.sums(weights * self.happened) / filled

    @property
    def ones(self) -> Array:
        """Each observation once."""
        return np.ones(len(self.prob))


def into_bins(prob: Array, happened: Array, given: Forecasts, bins: int | None, strategy: Strategy) -> Binned:
    """Forecasts in bins; None gives each distinct forecast its own."""
    if bins is not None and (isinstance(bins, bool) or bins != int(bins) or bins < 1):
        raise ArgumentError(f"bins={bins!r}; give a whole number from 1")
    if strategy not in get_args(Strategy):
        raise ArgumentError(f"strategy={strategy!r}; give one of {list(get_args(Strategy))}")
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
    """The bins and their edge rule, in words."""
    if bins is None:
        return "a bin for each distinct forecast"
    kind = "equal width" if strategy == "width" else "equal mass (quantiles of the sample)"
    return f"{bins} bins of {kind}, closed above, the first at both ends"


def stated_forecasts(given: Forecasts) -> tuple[Array, Array, str]:
    """The probability that is to be calibrated, what it is a forecast of, and what to call it.

    One column: P(positive). K columns: the top label's probability and whether it was right; of equal
    probabilities the first column is the top.
    """
    if given.prob.ndim == 1:
        return given.prob, given.truth, "P(positive)"
    top = given.prob.argmax(axis=1)
    return given.prob[np.arange(given.n), top], top == given.truth, "top-label confidence"
