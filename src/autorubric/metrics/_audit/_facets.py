"""Votes arranged by item, judge and order, for the estimation of variance components."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autorubric.metrics._audit._decided import distinct_names, rank_by_id
from autorubric.metrics._audit._resampled import ratio
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Codes
from autorubric.metrics._votes_table import ANSWERED, DECIDED, VotesTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The votes on one criterion, or on the item score, by cell (item × judge × order).

    Attributes:
        counts: Number of votes in each cell, shape `(n_items, n_judges, n_orders)`.
        sums: Sum of the votes in each cell, same shape.
        squares: Sum of the squared votes in each cell, same shape.
    """

    counts: Array
    sums: Array
    squares: Array

    @property
    def n(self) -> int:
        """Number of votes."""
        return int(self.counts.sum())

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of items, judges and orders that occur."""
        i, j, o = (int(np.count_nonzero(self.counts.sum(axis))) for axis in ((1, 2), (0, 2), (0, 1)))
        return i, j, o

    @property
    def has_repeats(self) -> bool:
        """Whether any judge voted at least twice on an item in one order."""
        return bool((self.counts >= 2).any())

    @property
    def is_balanced(self) -> bool:
        """Whether all combinations of item, judge and order have the same number of votes."""
        return self.n > 0 and bool((self.counts == self.counts.max()).all())


def laid_out(item: Codes, judge: Codes, order: Codes, values: Array) -> Layout:
    """Arrange votes by item, judge and order, without missing values and unused levels."""
    there = ~np.isnan(values)
    codes = [np.unique(one[there], return_inverse=True) for one in (item, judge, order)]
    shape = tuple(len(seen) for seen, _ in codes)
    flat = (
        np.ravel_multi_index([place.reshape(-1) for _, place in codes], shape)
        if there.any()
        else np.zeros(0, int)
    )
    # Centring first preserves the precision of the squares.
    kept = values[there] - (values[there].mean() if there.any() else 0.0)
    size = int(np.prod(shape))
    counted = [
        np.bincount(flat, weights=one, minlength=size) for one in (np.ones(len(kept)), kept, kept * kept)
    ]
    counts, sums, squares = (one.reshape(shape) for one in counted)
    return Layout(counts=counts, sums=sums, squares=squares)


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleVotes:
    """Individual votes of judges, one row each.

    Attributes:
        item: Position of the item, with items ordered by id.
        judge: Position of the judge.
        order: Position of the order in which candidates were shown; votes of unknown order share one
            position.
        sample: Index of the sample.
        criterion: Position of the criterion.
        value: The answer in [0, 1], or the number itself if it has no range.
        unit: Whether the value lies in [0, 1].
        names: Names of the criteria.
        judges: Ids of the judges.
        n_items: Number of items in the table.
    """

    item: Codes
    judge: Codes
    order: Codes
    sample: Codes
    criterion: Codes
    value: Array
    unit: Array
    names: tuple[str, ...]
    judges: tuple[str, ...]
    n_items: int

    def of_criterion(self, at: int) -> Layout:
        """Return the votes on one criterion."""
        mine = self.criterion == at
        return laid_out(self.item[mine], self.judge[mine], self.order[mine], self.value[mine])

    def of_scores(self, weights: Array) -> Layout:
        """Return the item scores of each judge by sample and order, if it answered every question asked.

        A score is Σ w v / Σ positive w clamped to [0, 1], or 1 + Σ w v / Σ |w| if there are only penalties.
        """
        rows = np.flatnonzero(self.unit)
        keys = np.column_stack([self.item, self.judge, self.order, self.sample])[rows]
        seen, votes = np.unique(keys, axis=0, return_inverse=True)
        votes = votes.reshape(-1)
        w = weights[self.item[rows], self.criterion[rows]]
        parts = [w * self.value[rows], np.maximum(w, 0.0), np.abs(w), np.ones(len(rows))]
        earned, positive, total, answered = (
            np.bincount(votes, weights=one, minlength=len(seen)) for one in parts
        )
        asked = np.zeros(self.n_items)
        np.maximum.at(asked, seen[:, 0], answered)
        scores = np.where(positive > 0, ratio(earned, positive), 1 + ratio(earned, total))
        scores = np.where(answered == asked[seen[:, 0]], np.clip(scores, 0.0, 1.0), np.nan)
        return laid_out(seen[:, 0], seen[:, 1], seen[:, 2], scores)


def single_votes(table: VotesTable) -> SingleVotes:
    """Return the individual votes of the judges in a votes table."""
    judged = np.array([kind == "judge" for kind, _ in table.raters], dtype=bool)
    single = (table.sample != DECIDED) & (table.status == ANSWERED)
    rows = np.flatnonzero(single & judged[table.rater]) if len(table) else np.zeros(0, dtype=np.int64)
    value = np.where(np.isnan(table.value[rows]), table.number[rows], table.value[rows])
    orders = {shown: at for at, shown in enumerate(dict.fromkeys(table.order[rows].tolist()))}
    place = {("judge", name): at for at, name in enumerate(table.judges)}
    ranked = np.array([one.level == "ranking" for one in table.criteria], dtype=bool)
    if len(rows):
        value = np.where(ranked[table.criterion[rows]] & np.isnan(table.value[rows]), np.nan, value)
    return SingleVotes(
        item=rank_by_id(table.item_ids)[table.item[rows]],
        judge=np.array([place[table.raters[at]] for at in table.rater[rows]], dtype=np.int64),
        order=np.array([orders[shown] for shown in table.order[rows].tolist()], dtype=np.int64),
        sample=table.sample[rows],
        criterion=table.criterion[rows],
        value=value,
        unit=~np.isnan(table.value[rows]),
        names=distinct_names(table.criteria),
        judges=table.judges,
        n_items=table.n_items,
    )
