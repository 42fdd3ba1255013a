"""Spearman's rho and Kendall's tau-b as functions of a table of distinct values or of pair weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from autorubric.metrics.core.contingency import NumberPairs, cell_units
from autorubric.metrics.core.resampling import Units, weighted_units
from autorubric.metrics.core.scales import Array, Codes

_TABLE_CELLS = 4096
_MATRIX_ROWS = 1500


@dataclass(frozen=True, slots=True)
class RankedPairs:
    """Two columns of numbers as indices into their sorted distinct values, with the units to resample."""

    x: Codes  # index of each observation's true value, shape `(n,)`
    y: Codes  # index of each observation's predicted value, shape `(n,)`
    shape: tuple[int, int]  # numbers of distinct true and predicted values
    # whether the units' sums are the cells of a table with this shape; otherwise they are weights per
    # observation
    on_table: bool
    units: Units


def rank_pairs(pairs: NumberPairs) -> RankedPairs:
    """Rank the columns. If there are few distinct values, use a table, which is much cheaper to resample."""
    seen_x, x = np.unique(pairs.truth, return_inverse=True)
    seen_y, y = np.unique(pairs.pred, return_inverse=True)
    shape = (len(seen_x), len(seen_y))
    x, y = x.reshape(-1), y.reshape(-1)
    cells = shape[0] * shape[1]
    if cells > _TABLE_CELLS or not pairs.n:
        return RankedPairs(x, y, shape, False, weighted_units(pairs.n, pairs.cluster))
    return RankedPairs(x, y, shape, True, cell_units(x * shape[1] + y, cells, pairs.cluster))


def rank_table(table: Array, values: Array) -> RankedPairs:
    """Convert a K × K table of categories with the given values to a table of sorted distinct values."""
    distinct, where = np.unique(values, return_inverse=True)
    member = (where.reshape(-1)[:, None] == np.arange(len(distinct))).astype(float)
    merged = (member.T @ table @ member).reshape(-1)
    units = Units(counts=merged.astype(np.int64), n=int(merged.sum()))
    none = np.zeros(0, dtype=np.int64)
    return RankedPairs(none, none, (len(distinct), len(distinct)), True, units)


def margins(ranked: RankedPairs, sums: Array) -> tuple[Array, Array]:
    """Count how often each distinct value occurs in truth and in pred, from sums laid out as in `ranked`."""
    if ranked.on_table:
        table = sums.reshape(ranked.shape)
        return table.sum(1), table.sum(0)
    return _margin(sums, ranked.x, ranked.shape[0]), _margin(sums, ranked.y, ranked.shape[1])


def _ratio(numerator: Array, left: Array, right: Array) -> Array:
    product = left * right
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.clip(np.where(product <= 0, np.nan, numerator / np.sqrt(product)), -1.0, 1.0)


def _midranks(margin: Array) -> Array:
    """Compute the mean rank of each distinct value, counted from 0 and doubled so that it is an integer."""
    return np.asarray(2 * np.cumsum(margin, axis=-1) - margin)


def spearman_of(ranked: RankedPairs) -> Callable[[Array], Array]:
    """Return the function that computes Spearman's rho, Pearson's r of the midranks, from resampled sums."""

    def on_table(sums: Array) -> Array:
        table = sums.reshape(*sums.shape[:-1], *ranked.shape)
        rows, columns = table.sum(-1), table.sum(-2)
        n = rows.sum(-1)[..., None]
        # The doubled midranks average n. Centring before multiplying keeps the result exact for large n.
        x, y = _midranks(rows) - n, _midranks(columns) - n
        product = (x * (table @ y[..., None])[..., 0]).sum(-1)
        return _ratio(product, (rows * x * x).sum(-1), (columns * y * y).sum(-1))

    def on_weights(weights: Array) -> Array:
        n = weights.sum(-1)[..., None]
        x = _midranks(_margin(weights, ranked.x, ranked.shape[0]))[..., ranked.x] - n
        y = _midranks(_margin(weights, ranked.y, ranked.shape[1]))[..., ranked.y] - n
        squares = ((weights * v * v).sum(-1) for v in (x, y))
        return _ratio((weights * x * y).sum(-1), *squares)

    return on_table if ranked.on_table else on_weights


def _margin(weights: Array, places: Codes, size: int) -> Array:
    rows = weights.reshape(-1, weights.shape[-1])
    flat = (np.arange(len(rows))[:, None] * size + places).reshape(-1)
    counted = np.bincount(flat, weights=rows.reshape(-1), minlength=len(rows) * size)
    return counted.reshape(*weights.shape[:-1], size)


def kendall_of(ranked: RankedPairs) -> Callable[[Array], Array]:
    """Return the function that computes tau-b, (C - D) / √((n₀ - t_x)(n₀ - t_y)), from resampled sums."""

    def on_table(sums: Array) -> Array:
        table = sums.reshape(*sums.shape[:-1], *ranked.shape)
        before = np.cumsum(np.cumsum(table, axis=-1), axis=-2)
        smaller = np.zeros_like(table)
        smaller[..., 1:, 1:] = before[..., :-1, :-1]
        crossed = np.zeros_like(table)
        after = np.cumsum(np.cumsum(table[..., ::-1], axis=-1)[..., ::-1], axis=-2)
        crossed[..., 1:, :-1] = after[..., :-1, 1:]
        return _tau((table * (smaller - crossed)).sum((-1, -2)), table.sum(-1), table.sum(-2))

    def on_weights(weights: Array) -> Array:
        rows = _margin(weights, ranked.x, ranked.shape[0])
        columns = _margin(weights, ranked.y, ranked.shape[1])
        return _tau(_concordance(ranked, weights), rows, columns)

    return on_table if ranked.on_table else on_weights


def _tau(difference: Array, rows: Array, columns: Array) -> Array:
    n = rows.sum(-1)
    return _ratio(2 * difference, n * n - (rows**2).sum(-1), n * n - (columns**2).sum(-1))


def _concordance(ranked: RankedPairs, weights: Array) -> Array:
    """Compute the weighted number of concordant minus discordant pairs for each row of weights."""
    n = len(ranked.x)
    if n <= _MATRIX_ROWS:
        order = np.sign(ranked.x[:, None] - ranked.x) * np.sign(ranked.y[:, None] - ranked.y)
        return np.asarray(((weights @ order.astype(float)) * weights).sum(-1) / 2)
    order = np.lexsort((ranked.y, ranked.x))
    x, y, sorted_weights = ranked.x[order], ranked.y[order], weights[..., order]
    return _rising(y, sorted_weights) - _rising_within(x, y, sorted_weights)


def _rising(y: Codes, weights: Array) -> Array:
    """Compute Σ_{i<j} w_i w_j sign(y_j - y_i) by processing the bits of y, in O(n log max y).

    Two different values share some leading bits and differ in the next one. Each pair is therefore counted at
    exactly one bit, among the values with the same higher bits: 0 before 1 adds, and 1 before 0 subtracts.
    """
    total = np.zeros(weights.shape[:-1])
    y = y.astype(np.min_scalar_type(y.max()))  # integers of 16 bits or fewer are sorted in linear time
    for bit in range(int(y.max()).bit_length()):
        alike = y >> (bit + 1)
        order = np.argsort(alike, kind="stable")
        group, is_one = alike[order], ((y[order] >> bit) & 1).astype(bool)
        size = np.bincount(group)
        start = (np.cumsum(size) - size)[group]
        drawn = weights[..., order]
        zeros, ones = sums_before(np.where(is_one, 0.0, drawn)), sums_before(np.where(is_one, drawn, 0.0))
        zeros, ones = zeros[..., :-1] - zeros[..., start], ones[..., :-1] - ones[..., start]
        total += (drawn * np.where(is_one, zeros, -ones)).sum(-1)
    return total


def _rising_within(x: Codes, y: Codes, weights: Array) -> Array:
    """Compute the sum of `_rising` over the pairs with equal x, for y sorted within x."""
    key = x * (int(y.max()) + 2) + y
    before = sums_before(weights)
    smaller = np.searchsorted(key, key, side="left")
    start = np.searchsorted(x, x, side="left")
    return np.asarray((weights * (before[..., smaller] - before[..., start])).sum(-1))


def sums_before(weights: Array) -> Array:
    """Compute the cumulative sum of the weights before each position 0..n, shape `(..., n + 1)`."""
    return np.concatenate([np.zeros((*weights.shape[:-1], 1)), np.cumsum(weights, axis=-1)], axis=-1)
