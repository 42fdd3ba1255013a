"""Votes by item, judge and order, and their variance components by MIVQUE(0)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np

from autorubric.metrics.audit.item_resampling import item_units
from autorubric.metrics.audit.rubric_weights import weighted_score
from autorubric.metrics.core.resampling import Units
from autorubric.metrics.core.scales import Array, Codes
from autorubric.metrics.core.votes_table import VotesTable, distinct_names, rank_by_id, single_vote_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetLayout:
    """The votes on one criterion, or on the item score, by cell; arrays `(n_items, n_judges, n_orders)`."""

    counts: Array  # votes in each cell
    sums: Array
    squares: Array

    @property
    def n(self) -> int:
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


def arrange_votes(item: Codes, judge: Codes, order: Codes, values: Array) -> FacetLayout:
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
    return FacetLayout(counts=counts, sums=sums, squares=squares)


def vote_layouts(table: VotesTable, weights: Array) -> tuple[FacetLayout, dict[str, FacetLayout]]:
    """Return the item scores of each judge by sample and order, and its single votes on each criterion.

    Values are in [0, 1], or numbers without a range. `weights` is `(n_items, n_criteria)`, with items
    ordered by id. Votes of unknown order share one order.
    """
    rows = single_vote_rows(table)
    item, criterion = rank_by_id(table.item_ids)[table.item[rows]], table.criterion[rows]
    unit = table.value[rows]
    place = {("judge", name): at for at, name in enumerate(table.judges)}
    judge = np.array([place.get(one, -1) for one in table.raters], dtype=np.int64)[table.rater[rows]]
    orders = {shown: at for at, shown in enumerate(dict.fromkeys(table.order[rows].tolist()))}
    order = np.array([orders[shown] for shown in table.order[rows].tolist()], dtype=np.int64)
    ranked = np.array([one.level == "ranking" for one in table.criteria], dtype=bool)
    number = np.where(ranked[criterion], np.nan, table.number[rows]) if len(rows) else table.number[rows]
    value = np.where(np.isnan(unit), number, unit)
    by_criterion = {}
    for at, name in enumerate(distinct_names(table.criteria)):
        mine = criterion == at
        by_criterion[name] = arrange_votes(item[mine], judge[mine], order[mine], value[mine])
    kept = np.flatnonzero(~np.isnan(unit))
    keys = np.column_stack([item, judge, order, table.sample[rows]])[kept]
    w = weights[item[kept], criterion[kept]]
    return _score_layout(keys, w, unit[kept], table.n_items), by_criterion


def _score_layout(keys: Codes, w: Array, values: Array, n_items: int) -> FacetLayout:
    """Arrange scores of items on which a judge answered everything, by item, judge, order and sample."""
    seen, votes = np.unique(keys, axis=0, return_inverse=True)
    parts = [w * values, np.maximum(w, 0.0), np.abs(w), np.ones(len(w))]
    earned, positive, total, answered = (
        np.bincount(votes.reshape(-1), weights=one, minlength=len(seen)) for one in parts
    )
    asked = np.zeros(n_items)
    np.maximum.at(asked, seen[:, 0], answered)
    scores = np.where(answered == asked[seen[:, 0]], weighted_score(earned, positive, total), np.nan)
    return arrange_votes(seen[:, 0], seen[:, 1], seen[:, 2], scores)


Effect: TypeAlias = frozenset[int]
"""The facets of an effect: 0 item, 1 judge, 2 order; the empty set is the residual of single votes."""

RESIDUAL: Effect = frozenset()


def effects_of(layout: FacetLayout) -> list[Effect]:
    """Return the effects that can be separated: all combinations of varying facets, then the residual."""
    facets = [facet for facet, size in enumerate(layout.shape) if size > 1]
    found = [frozenset(one) for size in range(1, len(facets) + 1) for one in combinations(facets, size)]
    if not layout.has_repeats and found:
        found = found[:-1]
    return [*found, RESIDUAL]


def merge_items(layout: FacetLayout) -> tuple[FacetLayout, Units]:
    """Return the items as units to draw, with alike items merged if that saves draws."""
    n_items = len(layout.counts)
    cells = [layout.counts, layout.sums, layout.squares]
    units = item_units(np.concatenate([one.reshape(n_items, -1) for one in cells], axis=1))
    assert units.sums is not None
    counts, sums, squares = (
        one.reshape(-1, *layout.counts.shape[1:]) for one in np.split(units.sums, len(cells), axis=1)
    )
    merged = FacetLayout(counts=counts, sums=sums, squares=squares)
    return merged, Units(counts=units.counts, n=n_items)


def variance_estimates(layout: FacetLayout, effects: Sequence[Effect], weights: Array) -> Array:
    """Estimate the variance components by MIVQUE(0), shape `(r, n_effects)`; NaN if effects are inseparable.

    `weights`, `(r, n_items)`, is how often each item was drawn; an item drawn twice counts as two items. With
    n_f and t_f as numbers and sums of votes in the groups of effect f, the components solve S σ² = q, where
    q_f = Σ (t_f - n_f mean)² is centred at the resample's own mean, and S_fg is the expectation of q_f for a
    unit component of g.
    """
    forms = _QuadraticForms(layout, effects, weights)
    size = len(effects)
    system = np.zeros((len(weights), size, size))
    found = np.column_stack([forms.form(one) for one in effects])
    for a, first in enumerate(effects):
        for b in range(a, size):
            system[:, a, b] = system[:, b, a] = forms.expectation(first, effects[b])
    return _solve(system, found)


def _solve(system: Array, forms: Array) -> Array:
    scale = np.sqrt(np.maximum(np.einsum("rii->ri", system), 1e-300))
    scaled = system / scale[:, :, None] / scale[:, None, :]
    solvable = np.abs(np.linalg.det(scaled)) > 1e-10
    safe = np.where(solvable[:, None, None], scaled, np.eye(scaled.shape[1]))
    found = np.linalg.solve(safe, (forms / scale)[:, :, None])[:, :, 0] / scale
    return np.where(solvable[:, None], found, np.nan)


class _QuadraticForms:
    """The quadratic forms of votes and their expectations, one per resample, each of shape `(r,)`.

    Groups of an effect that includes items are `(n_items, n_judges, n_orders)`; the sizes of other groups
    depend on the items drawn: `(r, n_judges, n_orders)`.
    """

    def __init__(self, layout: FacetLayout, effects: Sequence[Effect], weights: Array) -> None:
        self._weights, self._layout = weights, layout
        self._sizes = {one: self._group(layout.counts, one) for one in effects}
        self._n = self._total(layout.counts.sum(axis=(1, 2)))
        self._safe_n = np.maximum(self._n, 1.0)
        self._mean = self._total(layout.sums.sum(axis=(1, 2))) / self._safe_n
        self._squares = {one: self._sum(size * size, one) for one, size in self._sizes.items()}

    def form(self, effect: Effect) -> Array:
        """Return q_f."""
        if effect == RESIDUAL:
            return self._total(self._layout.squares.sum(axis=(1, 2))) - self._n * self._mean**2
        n, t = self._sizes[effect], self._group(self._layout.sums, effect)
        square, cross = self._sum(t * t, effect), self._sum(t * n, effect)
        return np.asarray(square - 2 * self._mean * cross + self._mean**2 * self._squares[effect])

    def expectation(self, first: Effect, second: Effect) -> Array:
        """Return S_fg."""
        if first == RESIDUAL or second == RESIDUAL:
            other = second if first == RESIDUAL else first
            return np.asarray(self._n - (1.0 if other == RESIDUAL else self._squares[other] / self._safe_n))
        shared, cross = self._shared(first, second)
        corrected = self._squares[first] * self._squares[second] / self._safe_n**2
        return np.asarray(shared - 2 * cross / self._safe_n + corrected)

    def _shared(self, first: Effect, second: Effect) -> tuple[Array, Array]:
        """Return Σ N_fg² and Σ N_fg n_f n_g over the groups that f and g share."""
        union = first | second
        joint, a, b = self._group(self._layout.counts, union), self._sizes[first], self._sizes[second]
        shared = self._sum(joint * joint, union)
        if (0 in first) == (0 in second):
            return shared, self._sum(joint * a * b, union)
        inner, spanning = (a, b) if 0 in first else (b, a)
        return shared, (self._total(joint * inner) * spanning).sum(axis=(1, 2))

    def _group(self, values: Array, effect: Effect) -> Array:
        """Sum values over the facets that the effect lacks; axes of judges and orders keep length 1."""
        lacking = tuple(axis for axis in (1, 2) if axis not in effect)
        grouped = np.asarray(values.sum(axis=lacking, keepdims=True))
        return grouped if 0 in effect else self._total(grouped)

    def _sum(self, values: Array, effect: Effect) -> Array:
        """Sum values over the groups of an effect."""
        summed = values.sum(axis=(1, 2))
        return self._total(summed) if 0 in effect else np.asarray(summed)

    def _total(self, values: Array) -> Array:
        """Sum over the items drawn, from shape `(n_items, …)` to `(r, …)`."""
        flat = values.reshape(len(values), math.prod(values.shape[1:]))
        return np.asarray((self._weights @ flat).reshape(len(self._weights), *values.shape[1:]))
