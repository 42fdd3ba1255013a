"""Counts of the pairs that two columns order alike, for rank correlations and pairwise accuracy.

Counts over two columns of scores take O(n log² n) time and O(n log n) memory. The place of an item is the
number of smaller distinct scores. A pair that gold orders strictly is right if the item with the smaller gold
score has the smaller predicted score, by more than the tie threshold. Such partners of an item are to its
left in gold order and below a certain place. A pair tied in gold is right if the predicted scores differ by
at most the threshold; such partners lie between two places."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.core.contingency import (
    NumberPairs,
    cell_units,
    check_lengths,
    cluster_codes,
    drop_incomplete,
    numeric_column,
    renumber,
    renumber_kept,
)
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
        table = sums.reshape(*sums.shape[:-1], *ranked.shape)
        return table.sum(-1), table.sum(-2)
    return count_kinds(sums, ranked.x, ranked.shape[0]), count_kinds(sums, ranked.y, ranked.shape[1])


def _ratio(numerator: Array, left: Array, right: Array) -> Array:
    product = left * right
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.clip(np.where(product <= 0, np.nan, numerator / np.sqrt(product)), -1.0, 1.0)


def _midranks(margin: Array) -> Array:
    """Compute the mean rank of each distinct value, counted from 0 and doubled so that it is an integer."""
    return np.asarray(2 * np.cumsum(margin, axis=-1) - margin)


def spearman_of(ranked: RankedPairs) -> Callable[[Array], Array]:
    """Return the function that computes Spearman's rho, Pearson's r of the midranks, from resampled sums."""

    def compute(sums: Array) -> Array:
        rows, columns = margins(ranked, sums)
        n = rows.sum(-1)[..., None]
        # The doubled midranks average n. Centring before multiplying keeps the result exact for large n.
        x, y = _midranks(rows) - n, _midranks(columns) - n
        if ranked.on_table:
            table = sums.reshape(*sums.shape[:-1], *ranked.shape)
            product = (x * (table @ y[..., None])[..., 0]).sum(-1)
        else:
            # All sums are of integers, so they are exact in any order.
            ranks = np.take(x, ranked.x, axis=-1), np.take(y, ranked.y, axis=-1)
            product = np.einsum("...i,...i->...", sums * ranks[0], ranks[1])
        return _ratio(product, (rows * x * x).sum(-1), (columns * y * y).sum(-1))

    return compute


def count_kinds(weights: Array, places: Codes, size: int) -> Array:
    """Add up weights `(..., n)` of entries of the same kind, from each entry's kind; shape `(..., size)`."""
    rows = weights.reshape(-1, weights.shape[-1])
    flat = (np.arange(len(rows))[:, None] * size + places).reshape(-1)
    counted = np.bincount(flat, weights=rows.reshape(-1), minlength=len(rows) * size)
    return counted.reshape(*weights.shape[:-1], size)


def kendall_of(ranked: RankedPairs) -> Callable[[Array], Array]:
    """Return the function that computes tau-b, (C - D) / √((n₀ - t_x)(n₀ - t_y)), from resampled sums."""

    def compute(sums: Array) -> Array:
        rows, columns = margins(ranked, sums)
        if not ranked.on_table:
            return _tau(_concordance(ranked, sums), rows, columns)
        table = sums.reshape(*sums.shape[:-1], *ranked.shape)
        before = np.cumsum(np.cumsum(table, axis=-1), axis=-2)
        smaller = np.zeros_like(table)
        smaller[..., 1:, 1:] = before[..., :-1, :-1]
        crossed = np.zeros_like(table)
        after = np.cumsum(np.cumsum(table[..., ::-1], axis=-1)[..., ::-1], axis=-2)
        crossed[..., 1:, :-1] = after[..., :-1, 1:]
        return _tau((table * (smaller - crossed)).sum((-1, -2)), rows, columns)

    return compute


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

    Each pair is counted at the first bit in which its values differ: 0 before 1 adds, and 1 before 0
    subtracts.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredItems:
    gold: Array
    pred: Array
    group: Codes | None  # group of each item, 0..G-1 without gaps; None if all pairs are compared
    # cluster of each item, 0..C-1 without gaps; None if each item, or group, is its own unit
    cluster: Codes | None
    n_missing: int  # number of items dropped because a score was missing

    @property
    def n(self) -> int:
        return len(self.gold)

    @property
    def groups(self) -> Codes:
        """Group of each item; 0 for all items if there are no groups."""
        return np.zeros(self.n, dtype=np.int64) if self.group is None else self.group


def scored_items(
    gold: Iterable[Any], pred: Iterable[Any], groups: Iterable[Any] | None, cluster: Iterable[Any] | None
) -> ScoredItems:
    """Return the items that have both scores."""
    left, right = numeric_column(gold, "gold"), numeric_column(pred, "pred")
    check_lengths("scores", gold=left, pred=right)
    both = ~(np.isnan(left) | np.isnan(right))
    group, clusters = cluster_codes(groups, len(left), "groups"), cluster_codes(cluster, len(left))
    if group is not None and clusters is not None:
        _check_groups(group, clusters)
    members, n_missing = drop_incomplete(both, clusters)
    return ScoredItems(
        gold=left[both],
        pred=right[both],
        group=renumber_kept(group, both),
        cluster=members,
        n_missing=n_missing,
    )


def _check_groups(group: Codes, cluster: Codes) -> None:
    if len(np.unique(np.stack([group, cluster]), axis=1).T) > len(np.unique(group)):
        raise ArgumentError(
            "cluster must not split a group, because its items are compared; use one cluster id per group"
        )


Ties: TypeAlias = Literal["credit", "skip"]
"""Whether pairs tied in gold are credited when also tied in the prediction, or skipped."""


class _Level(NamedTuple):
    """Look-ups from right halves of blocks into left halves: `before[end] - before[start]` of the weights."""

    left: Codes
    right: Codes
    start: Codes
    end: Codes


class _Places(NamedTuple):
    """Gold codes and predicted places, kept apart by group; places in `low <= place < high` are tied."""

    gold: Codes
    pred: Codes
    low: Codes
    high: Codes


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCounts:
    """Pairs of items within groups, with methods that count the compared and the right pairs."""

    ties: Ties
    places: _Places  # both scores as places
    group: Codes
    rising: tuple[_Level, ...]  # look-ups that find the partners with a smaller gold score in right pairs

    def right(self, weights: Array) -> Array:
        """Count the right pairs for item weights of shape `(..., n)`; no item is paired with itself."""
        found = (weights * _look_up(self.rising, weights)).sum(-1)
        if self.ties == "skip":
            return np.asarray(found)
        tied = _tied_weight(self.places, weights) - weights
        return np.asarray(found + (weights * tied).sum(-1) / 2)

    def count_compared(self, weights: Array) -> Array:
        """Count the compared pairs for item weights of shape `(..., n)`."""
        own = (weights * weights).sum(-1) if self.ties == "credit" else _squares(self.places.gold, weights)
        return np.asarray((_squares(self.group, weights) - own) / 2)

    def right_of_each(self) -> Array:
        """Count the right pairs that include each item, shape `(n,)`."""
        ones = np.ones(len(self.group))
        falling = _levels(_mirror(self.places))
        found = _look_up(self.rising, ones) + _look_up(falling, ones)
        return found if self.ties == "skip" else found + _tied_weight(self.places, ones) - 1

    def count_compared_of_each(self) -> Array:
        """Count the compared pairs that include each item, shape `(n,)`."""
        size = np.bincount(self.group)[self.group]
        if self.ties == "credit":
            return np.asarray(size - 1.0)
        _, where, alike = np.unique(self.places.gold, return_inverse=True, return_counts=True)
        return np.asarray(size - alike[where.reshape(-1)], dtype=float)


def count_pairs(gold: Array, pred: Array, group: Codes, *, ties: Ties, epsilon: float) -> PairCounts:
    """Prepare the pairs of these items for counting."""
    gold_code = renumber(gold)
    values, place = np.unique(pred, return_inverse=True)
    place = place.reshape(-1)
    low, high = _windows(values, epsilon)
    n = len(gold) + 1
    # Later groups get larger gold codes and smaller places, so no pair across groups is in order.
    shift = (int(group.max(initial=0)) - group) * n
    places = _Places(group * n + gold_code, shift + place, shift + low[place], shift + high[place])
    return PairCounts(ties=ties, places=places, group=group, rising=_levels(places))


def _windows(values: Array, epsilon: float) -> tuple[Codes, Codes]:
    """For each rising value, return the first index within epsilon below and the first beyond it above."""
    each = np.arange(len(values))
    if epsilon == 0:
        return each, each + 1
    with np.errstate(over="ignore"):
        low = _first(lambda at: values - values[at] <= epsilon, len(values))
        high = _first(lambda at: values[at] - values > epsilon, len(values))
    return low, high


def _first(holds: Callable[[Codes], Array], n: int) -> Codes:
    """Return the first index (or n) at which a monotone predicate of differences, exact in floats, holds."""
    low, high = np.zeros(n, dtype=np.int64), np.full(n, n, dtype=np.int64)
    while (low < high).any():
        middle = np.minimum((low + high) // 2, n - 1)
        found = holds(middle)
        open_ = low < high
        high = np.where(open_ & found, middle, high)
        low = np.where(open_ & ~found, middle + 1, low)
    return low


def _mirror(places: _Places) -> _Places:
    """Return the places with both scores reversed."""
    top = int(places.pred.max(initial=0)) + 1
    low, high = np.maximum(top + 1 - places.high, 0), top + 1 - places.low
    return _Places(-places.gold, top - places.pred, low, high)


def _levels(places: _Places) -> tuple[_Level, ...]:
    """Build lookups over blocks of 1, 2, 4, … items in gold order; each right block looks up its left."""
    # Items with equal gold are sorted by decreasing place, so that none is counted below another.
    order = np.lexsort((-places.pred, places.gold))
    pred, low = places.pred[order], places.low[order]
    position, step = np.arange(len(order)), int(places.high.max(initial=0)) + 2
    levels, width = [], 1
    while width < len(order):
        block, is_right = position // (2 * width) * step, (position // width) % 2 == 1
        left, right = np.flatnonzero(~is_right), np.flatnonzero(is_right)
        left = left[np.argsort(block[left] + pred[left], kind="stable")]
        keys = block[left] + pred[left]
        start, end = (np.searchsorted(keys, block[right] + of) for of in (0, low[right]))
        levels.append(_Level(order[left], order[right], start, end))
        width *= 2
    return tuple(levels)


def _look_up(levels: tuple[_Level, ...], weights: Array) -> Array:
    """Sum the weights of the partners of each item, shape `(..., n)`."""
    found = np.zeros(weights.shape)
    for level in levels:
        before = sums_before(weights[..., level.left])
        found[..., level.right] += before[..., level.end] - before[..., level.start]
    return found


def _tied_weight(places: _Places, weights: Array) -> Array:
    """Sum for each item the weights of items tied with it in both scores, itself included, `(..., n)`."""
    step = int(places.high.max(initial=0)) + 1
    own = renumber(places.gold) * step
    order = np.argsort(own + places.pred, kind="stable")
    keys = (own + places.pred)[order]
    before = sums_before(weights[..., order])
    ends = (np.searchsorted(keys, own + places.high), np.searchsorted(keys, own + places.low))
    return np.asarray(before[..., ends[0]] - before[..., ends[1]])


def _squares(codes: Codes, weights: Array) -> Array:
    """Sum the squared total weight of each code."""
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    summed = np.add.reduceat(weights[..., order], starts, axis=-1)
    return np.asarray((summed * summed).sum(-1))
