"""Discrimination of criteria between good and bad items, and redundancy between criteria."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autorubric.metrics._audit._item_results import RedundantPair
from autorubric.metrics._audit._resampled import ratio, resampled_units
from autorubric.metrics._correlation import pearson
from autorubric.metrics._estimate import Estimate
from autorubric.metrics._intervals import mean_ends, wilson
from autorubric.metrics._options import Resampling
from autorubric.metrics._resampling import Array, Units

TAIL = 0.27
"""Share of the items in the upper and the lower group, which is Kelley's optimum for normal scores."""

FEWEST_PAIRS = 10
"""Minimum number of common items of a redundant pair, since few items may correlate by chance."""


def mean_of(values: Array, confidence_level: float, *, binary: bool) -> Estimate:
    """Return the pass rate with Wilson's interval, or the mean value with a t interval."""
    kept = values[~np.isnan(values)]
    n_missing = len(values) - len(kept)
    if not len(kept):
        return Estimate.undefined("no_values", method="mean value", n_missing=n_missing)
    if binary:
        return wilson(int(kept.sum()), len(kept), confidence_level=confidence_level)
    ends = mean_ends(kept, np.arange(len(kept)), confidence_level)
    method = f"mean value; t, {confidence_level:.0%}"
    reason = None if ends.low is not None else "too_few_units" if ends.se is None else "no_variance"
    low, high = (
        (None, None) if ends.low is None or ends.high is None else (max(0.0, ends.low), min(1.0, ends.high))
    )
    return Estimate(float(kept.mean()), low, high, ends.se, len(kept), method, reason, n_missing)  # type: ignore[arg-type]


def rest_means(values: Array) -> Array:
    """Return the mean of each item's other criteria for each criterion, shape `(n_items, n_criteria)`."""
    there = ~np.isnan(values)
    filled = np.where(there, values, 0.0)
    total, count = filled.sum(1, keepdims=True), there.sum(1, keepdims=True)
    return ratio(total - filled, (count - there).astype(float))


def upper_lower(values: Array, totals: Array, resampling: Resampling) -> Estimate:
    """Return the mean value among the best 27 % of items minus that among the worst.

    Items tied at the cut-off are included with equal fractional weight.
    """
    method = f"mean in the upper {TAIL:.0%} of items - mean in the lower"
    kept = ~(np.isnan(values) | np.isnan(totals))
    n = int(np.count_nonzero(kept))
    # Identical items form one unit with a count, because few distinct values occur.
    alike, counts = np.unique(
        np.column_stack([np.round(totals[kept], 12), values[kept]]), axis=0, return_counts=True
    )
    seen, place = np.unique(alike[:, 0], return_inverse=True)
    place, x = place.reshape(-1), alike[:, 1]

    def compute(weights: Array) -> Array:
        tied = _by_place(weights, place, len(seen))
        share = _edge_shares(tied)
        mirrored = _edge_shares(tied[:, ::-1])[:, ::-1]
        low, high = (weights * one[:, place] for one in (share, mirrored))
        return (ratio(high @ x, high.sum(1)) - ratio(low @ x, low.sum(1)))[:, None]

    units = Units(counts=counts.astype(np.int64), n=n) if n and len(seen) > 1 else None
    reason = "no_variance" if n else "no_values"
    return resampled_units(units, compute, resampling, [method], n=[n], reasons=[reason])[0]  # type: ignore[list-item]


def _by_place(weights: Array, place: Array, size: int) -> Array:
    flat = (np.arange(len(weights))[:, None] * size + place).reshape(-1)
    counted = np.bincount(flat, weights=weights.reshape(-1), minlength=len(weights) * size)
    return np.asarray(counted.reshape(-1, size))


def _edge_shares(tied: Array) -> Array:
    """Return the share of each group of tied items that lies within the first 27 % of the weight."""
    wanted = TAIL * tied.sum(1, keepdims=True)
    before = np.cumsum(tied, axis=1) - tied
    return np.asarray(np.clip((wanted - before) / np.where(tied > 0, tied, 1.0), 0.0, 1.0))


def redundant_pairs(
    values: Array, names: Sequence[str], threshold: float, confidence_level: float
) -> tuple[RedundantPair, ...]:
    """Return the pairs of criteria with |r| at or above the threshold, in order of decreasing |r|."""
    n, r = _correlation_matrix(values)
    found = []
    for a, b in np.argwhere(np.triu((np.abs(r) >= threshold - 1e-12) & (n >= FEWEST_PAIRS), 1)):
        correlation = pearson(values[:, a], values[:, b], confidence_level=confidence_level)
        found.append(RedundantPair(first=names[a], second=names[b], correlation=correlation))
    return tuple(sorted(found, key=lambda one: -abs(one.correlation.value or 0.0)))


def _correlation_matrix(values: Array) -> tuple[Array, Array]:
    """Return the number of common items and Pearson's r for every pair of columns; r is 0 if undefined."""
    there = (~np.isnan(values)).astype(float)
    # Centring keeps constant columns from varying by rounding.
    centre = np.where(
        there.sum(0) > 0, np.where(there > 0, values, 0.0).sum(0) / np.maximum(there.sum(0), 1), 0.0
    )
    x = np.where(there > 0, values - centre, 0.0)
    n = there.T @ there
    first, square, safe = x.T @ there, (x * x).T @ there, np.maximum(n, 1.0)
    product = x.T @ x - first * first.T / safe
    left, right = square - first**2 / safe, square.T - first.T**2 / safe
    room = np.sqrt(np.maximum(left, 0.0) * np.maximum(right, 0.0))
    return n, np.where(room > 1e-12, product / np.where(room > 1e-12, room, 1.0), 0.0)
