"""How many pairs of items two scores order alike, in O(n log² n) time and O(n log n) memory.

An item's place counts the smaller distinct scores. A pair whose gold order is strict is right where the one
of smaller gold has the smaller predicted score, by more than the tie threshold: of an item all such partners
lie left of it in the order of gold and below a place of their own. A pair tied in gold is right where the
predicted scores lie within the threshold: such partners lie between two places.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Codes

Ties: TypeAlias = Literal["credit", "skip"]
"""Whether pairs tied in gold count, right where they are tied in the prediction too, or are left out."""


class _Level(NamedTuple):
    """Look-ups of right halves of blocks in the left halves: `before[end] - before[start]` of the weights."""

    left: Codes
    right: Codes
    start: Codes
    end: Codes


class _Places(NamedTuple):
    """Codes of gold and places of pred, groups apart; within the threshold are `low <= place < high`."""

    gold: Codes
    pred: Codes
    low: Codes
    high: Codes


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCounts:
    """The pairs within groups that are compared, and those of them that are right.

    Attributes:
        ties: What becomes of pairs that gold ties.
        places: Both scores as places.
        group: Group of each item.
        rising: Look-ups that find the right partners of smaller gold.
    """

    ties: Ties
    places: _Places
    group: Codes
    rising: tuple[_Level, ...]

    def right(self, weights: Array) -> Array:
        """Right pairs, from how often each item counts, shape `(..., n)`; no item pairs with itself."""
        found = (weights * _look_up(self.rising, weights)).sum(-1)
        if self.ties == "skip":
            return np.asarray(found)
        tied = _tied(self.places, weights) - weights
        return np.asarray(found + (weights * tied).sum(-1) / 2)

    def compared(self, weights: Array) -> Array:
        """Pairs compared, likewise."""
        own = (weights * weights).sum(-1) if self.ties == "credit" else _squares(self.places.gold, weights)
        return np.asarray((_squares(self.group, weights) - own) / 2)

    def right_of_each(self) -> Array:
        """Right pairs that each item is in, shape `(n,)`."""
        ones = np.ones(len(self.group))
        falling = _levels(_mirrored(self.places))
        found = _look_up(self.rising, ones) + _look_up(falling, ones)
        return found if self.ties == "skip" else found + _tied(self.places, ones) - 1

    def compared_of_each(self) -> Array:
        """Pairs compared that each item is in, shape `(n,)`."""
        size = np.bincount(self.group)[self.group]
        if self.ties == "credit":
            return np.asarray(size - 1.0)
        _, where, alike = np.unique(self.places.gold, return_inverse=True, return_counts=True)
        return np.asarray(size - alike[where.reshape(-1)], dtype=float)


def count_pairs(gold: Array, pred: Array, group: Codes, *, ties: Ties, epsilon: float) -> PairCounts:
    """The pairs of these items.

    Args:
        gold: Shape `(n,)`.
        pred: Shape `(n,)`; a pair is tied where the difference of its floats is at most `epsilon`.
        group: Group of each, from 0.
        ties: What becomes of pairs that gold ties.
        epsilon: Tie threshold.
    """
    gold_code = np.unique(gold, return_inverse=True)[1].reshape(-1)
    values, place = np.unique(pred, return_inverse=True)
    place = place.reshape(-1)
    low, high = _windows(values, epsilon)
    n = len(gold) + 1
    # Later groups get greater codes of gold and smaller places: no pair across groups is in order.
    shift = (int(group.max(initial=0)) - group) * n
    places = _Places(group * n + gold_code, shift + place, shift + low[place], shift + high[place])
    return PairCounts(ties=ties, places=places, group=group, rising=_levels(places))


def _windows(values: Array, epsilon: float) -> tuple[Codes, Codes]:
    """For each of the rising values, the first one within epsilon below and the first beyond it above."""
    each = np.arange(len(values))
    if epsilon == 0:
        return each, each + 1
    with np.errstate(over="ignore"):
        low = _first(lambda at: values - values[at] <= epsilon, len(values))
        high = _first(lambda at: values[at] - values > epsilon, len(values))
    return low, high


def _first(holds: Callable[[Codes], Array], n: int) -> Codes:
    """For each of n the first place at which a predicate holds that does so from some place on, else n.

    Comparing differences, and not values with a sum, keeps the rule exact: it is the one of the docstring.
    """
    low, high = np.zeros(n, dtype=np.int64), np.full(n, n, dtype=np.int64)
    while (low < high).any():
        middle = np.minimum((low + high) // 2, n - 1)
        found = holds(middle)
        open_ = low < high
        high = np.where(open_ & found, middle, high)
        low = np.where(open_ & ~found, middle + 1, low)
    return low


def _mirrored(places: _Places) -> _Places:
    """Both scores upside down."""
    top = int(places.pred.max(initial=0)) + 1
    low, high = np.maximum(top + 1 - places.high, 0), top + 1 - places.low
    return _Places(-places.gold, top - places.pred, low, high)


def _levels(places: _Places) -> tuple[_Level, ...]:
    """Blocks of 1, 2, 4, … items in the order of gold, the right of each two looking up the left."""
    # Among equal gold the greater places come first, so that no item finds one of its own gold below it.
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
    """Weight of the partners that each item looks up, shape `(..., n)`."""
    found = np.zeros(weights.shape)
    for level in levels:
        before = _before(weights[..., level.left])
        found[..., level.right] += before[..., level.end] - before[..., level.start]
    return found


def _tied(places: _Places, weights: Array) -> Array:
    """Weight of the items of each one's gold within the threshold, itself among them, shape `(..., n)`."""
    step = int(places.high.max(initial=0)) + 1
    own = np.unique(places.gold, return_inverse=True)[1].reshape(-1) * step
    order = np.argsort(own + places.pred, kind="stable")
    keys = (own + places.pred)[order]
    before = _before(weights[..., order])
    ends = (np.searchsorted(keys, own + places.high), np.searchsorted(keys, own + places.low))
    return np.asarray(before[..., ends[0]] - before[..., ends[1]])


def _squares(codes: Codes, weights: Array) -> Array:
    """Sum over codes of the squared weight of each."""
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    summed = np.add.reduceat(weights[..., order], starts, axis=-1)
    return np.asarray((summed * summed).sum(-1))


def _before(weights: Array) -> Array:
    """Sum of the weights before each place, from 0 to n, shape `(..., n + 1)`."""
    return np.concatenate([np.zeros((*weights.shape[:-1], 1)), np.cumsum(weights, axis=-1)], axis=-1)
