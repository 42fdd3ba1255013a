"""Pearson's r, Lin's concordance, RMSE and MAE as functions of sums over pairs of numbers.

The sums of a pair are, in this order, 1, x, y, x², y², xy, (y - x)² and |y - x|, where x and y are first
shifted and scaled to avoid cancellation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from autorubric.metrics._columns import NumberPairs
from autorubric.metrics._resampling import Array, Units
from autorubric.metrics._rounding import RELATIVE_ZERO


@dataclass(frozen=True, slots=True)
class Moments:
    """Sums over pairs, ready for resampling.

    Attributes:
        units: Sampling units with the sums listed in the module docstring.
        shift: Mean of x minus mean of y before centring, divided by `unit`.
        unit: Number by which x and y are divided.
    """

    units: Units
    shift: float
    unit: float


def moments_of(pairs: NumberPairs) -> Moments:
    """Compute the sums of each pair, or of each cluster of pairs."""
    x, y = pairs.truth, pairs.pred
    if not pairs.n:
        return Moments(Units(counts=np.zeros(0, dtype=np.int64), n=0, sums=np.zeros((0, 8))), 0.0, 1.0)
    # If all values are equal, use the first one, because their mean may differ from it by rounding.
    mean_x, mean_y = (float(v[0] if np.ptp(v) == 0 else v.mean()) for v in (x, y))
    centred_x, centred_y = x - mean_x, y - mean_y
    unit = float(max(np.abs(centred_x).max(), np.abs(centred_y).max(), abs(mean_x - mean_y))) or 1.0
    u, v, gap = centred_x / unit, centred_y / unit, (y - x) / unit
    # Each column is contiguous in memory, because columns are created and summed one at a time.
    sums = np.stack([np.ones(pairs.n), u, v, u * u, v * v, u * v, gap * gap, np.abs(gap)]).T
    return Moments(_units(sums, pairs), (mean_x - mean_y) / unit, unit)


def _units(sums: Array, pairs: NumberPairs) -> Units:
    if pairs.cluster is None:
        return Units(counts=np.ones(len(sums), dtype=np.int64), n=pairs.n, sums=sums)
    n_clusters = int(pairs.cluster.max()) + 1
    by_cluster = np.column_stack(
        [np.bincount(pairs.cluster, weights=column, minlength=n_clusters) for column in sums.T]
    )
    ones = np.ones(n_clusters, dtype=np.int64)
    return Units(counts=ones, n=pairs.n, sums=by_cluster, clustered=True)


def _spread(n: Array, total: Array, squares: Array) -> Array:
    """Compute n² times the variance, or exactly 0 if it is only rounding error."""
    spread = n * squares - total * total
    return np.where(spread.real <= RELATIVE_ZERO * (n * squares).real, 0, spread)


def pearson_of(sums: Array) -> Array:
    """Compute s_xy / (s_x s_y); NaN if x or y is constant."""
    n, x, y, xx, yy, xy = (sums[..., j] for j in range(6))
    product = _spread(n, x, xx) * _spread(n, y, yy)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(product == 0, np.nan, (n * xy - x * y) / np.sqrt(product))
    # Rounding may exceed the bounds, but complex-step derivatives must not be clipped.
    return ratio if np.iscomplexobj(ratio) else np.clip(ratio, -1.0, 1.0)


def ccc_of(shift: float) -> Callable[[Array], Array]:
    """Return the function that computes Lin's concordance from sums, given the `shift` between the means.

    The function computes 2 s_xy / (s_x² + s_y² + (m_x - m_y)²), which is NaN if the denominator is 0.
    """

    def compute(sums: Array) -> Array:
        n, x, y, xx, yy, xy = (sums[..., j] for j in range(6))
        apart = x - y + n * shift
        room = _spread(n, x, xx) + _spread(n, y, yy) + apart * apart
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(room == 0, np.nan, 2 * (n * xy - x * y) / room)

    return compute


def mean_square_of(sums: Array) -> Array:
    """Compute the mean of (y - x)²."""
    return np.asarray(sums[..., 6] / sums[..., 0])


def mean_absolute_of(sums: Array) -> Array:
    """Compute the mean of |y - x|."""
    return np.asarray(sums[..., 7] / sums[..., 0])
