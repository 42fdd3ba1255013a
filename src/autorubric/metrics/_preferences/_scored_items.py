"""Items with two scores each, and the pairs of items within groups."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics._columns import numeric_column
from autorubric.metrics._contingency import cluster_codes
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Codes, as_sequence, is_missing


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredItems:
    """Items that have both scores.

    Attributes:
        gold: Gold scores, shape `(n,)`.
        pred: Predicted scores, shape `(n,)`.
        group: Group of each item, 0..G-1 without gaps; None if all pairs are compared.
        cluster: Cluster of each item, 0..C-1 without gaps; None if each item, or group, is its own unit.
        n_missing: Number of items dropped because a score was missing.
    """

    gold: Array
    pred: Array
    group: Codes | None
    cluster: Codes | None
    n_missing: int

    @property
    def n(self) -> int:
        """Number of items."""
        return len(self.gold)

    @property
    def groups(self) -> Codes:
        """Group of each item; 0 for all items if there are no groups."""
        return np.zeros(self.n, dtype=np.int64) if self.group is None else self.group


def scored_items(
    gold: Iterable[Any], pred: Iterable[Any], groups: Iterable[Any] | None, cluster: Iterable[Any] | None
) -> ScoredItems:
    """Return the items that have both scores.

    Raises:
        ArgumentError: If the lengths differ, a score is not a number, a group id is missing, or a group is
            split over clusters.
    """
    left, right = numeric_column(gold, "gold"), numeric_column(pred, "pred")
    if len(left) != len(right):
        raise ArgumentError(f"gold has {len(left)} scores but pred has {len(right)}; lengths must match")
    both = ~(np.isnan(left) | np.isnan(right))
    group, clusters = _group_codes(groups, len(left)), cluster_codes(cluster, len(left))
    if group is not None and clusters is not None:
        _refuse_split(group, clusters)
    return ScoredItems(
        gold=left[both],
        pred=right[both],
        group=None if group is None else _without_gaps(group[both]),
        cluster=None if clusters is None else _without_gaps(clusters[both]),
        n_missing=int(both.size - np.count_nonzero(both)),
    )


def _without_gaps(codes: Codes) -> Codes:
    return np.unique(codes, return_inverse=True)[1].reshape(-1)


def _group_codes(groups: Iterable[Any] | None, n: int) -> Codes | None:
    if groups is None:
        return None
    ids = as_sequence(groups, "groups")
    if len(ids) != n:
        raise ArgumentError(f"groups has {len(ids)} ids for {n} items; pass one per item")
    if any(is_missing(one) for one in ids):
        raise ArgumentError("groups contains a missing id; pass one id per item")
    return cluster_codes(ids, n)


def _refuse_split(group: Codes, cluster: Codes) -> None:
    if len(np.unique(np.stack([group, cluster]), axis=1).T) > len(np.unique(group)):
        raise ArgumentError(
            "cluster must not split a group, because its items are compared; use one cluster id per group"
        )


class ItemPairs(NamedTuple):
    """Pairs of items within groups, as the positions of both items; each pair occurs once, shape `(m,)`."""

    one: Codes
    other: Codes


def pairs_within(group: Codes, limit: int, rng: np.random.Generator) -> tuple[ItemPairs, int]:
    """Return all pairs within groups (a sample of `limit` with replacement if more) and their number."""
    order = np.argsort(group, kind="stable")
    grouped = group[order]
    start = np.searchsorted(grouped, grouped, side="left")
    before = np.arange(len(group)) - start
    upto = np.cumsum(before)
    total = int(upto[-1]) if len(upto) else 0
    drawn = np.arange(total) if total <= limit else rng.integers(0, total, limit)
    one = np.searchsorted(upto, drawn, side="right")
    other = start[one] + drawn - (upto[one] - before[one])
    return ItemPairs(order[one], order[other]), total
