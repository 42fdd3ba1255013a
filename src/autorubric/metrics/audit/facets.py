"""Votes by item, judge and order, and their variance components by MIVQUE(0)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, Protocol, TypeAlias

import numpy as np

from autorubric.metrics.audit.labelled_votes import distinct_names, rank_by_id
from autorubric.metrics.audit.resampled import ratio
from autorubric.metrics.core.estimate import Reason
from autorubric.metrics.core.scales import Array, Codes
from autorubric.metrics.core.votes_table import ANSWERED, DECIDED, VotesTable


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetLayout:
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


def laid_out(item: Codes, judge: Codes, order: Codes, values: Array) -> FacetLayout:
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

    def of_criterion(self, at: int) -> FacetLayout:
        """Return the votes on one criterion."""
        mine = self.criterion == at
        return laid_out(self.item[mine], self.judge[mine], self.order[mine], self.value[mine])

    def of_scores(self, weights: Array) -> FacetLayout:
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


Effect: TypeAlias = frozenset[int]
"""The facets of an effect: 0 item, 1 judge, 2 order; the empty set is the residual of single votes."""

RESIDUAL: Effect = frozenset()


def effects_of(layout: FacetLayout) -> list[Effect]:
    """Return the effects that can be separated: all combinations of varying facets, then the residual.

    If no cell has two votes, the residual includes the highest interaction.
    """
    facets = [facet for facet, size in enumerate(layout.shape) if size > 1]
    found = [frozenset(one) for size in range(1, len(facets) + 1) for one in combinations(facets, size)]
    if not layout.has_repeats and found:
        found = found[:-1]
    return [*found, RESIDUAL]


def component_figures(
    layout: FacetLayout, effects: Sequence[Effect]
) -> tuple[Array, Callable[[Array], Array]]:
    """Return each item's sums, shape `(n_items, d)`, and a function from their totals to the components.

    The function maps totals of shape `(r, d)` to components of shape `(r, m)`, NaN if effects are
    inseparable.
    """
    recorder = _Recorder()
    _components(_Forms(layout, recorder), effects)
    sums = np.concatenate(recorder.columns, axis=1)

    def compute(totals: Array) -> Array:
        return _components(_Forms(layout, _SymbolicReader(totals)), effects)

    return sums, compute


def _components(forms: _Forms, effects: Sequence[Effect]) -> Array:
    size, rows = len(effects), len(forms.n)
    system, found = np.zeros((rows, size, size)), np.zeros((rows, size))
    for a, first in enumerate(effects):
        found[:, a] = forms.form(first)
        for b in range(a, size):
            system[:, a, b] = system[:, b, a] = forms.expectation(first, effects[b])
    return _solved(system, found)


def _solved(system: Array, forms: Array) -> Array:
    scale = np.sqrt(np.maximum(np.einsum("rii->ri", system), 1e-300))
    scaled = system / scale[:, :, None] / scale[:, None, :]
    solvable = np.abs(np.linalg.det(scaled)) > 1e-10
    safe = np.where(solvable[:, None, None], scaled, np.eye(scaled.shape[1]))
    found = np.linalg.solve(safe, (forms / scale)[:, :, None])[:, :, 0] / scale
    return np.where(solvable[:, None], found, np.nan)


class _OverItems(Protocol):
    """A callable that sums over items, one row per resample."""

    def __call__(self, values: Array) -> Array:
        """Sum the values of items, shape `(n_items, …)`, to shape `(r, …)`."""
        ...


class _Recorder:
    """A callable that sums over all items and records each item's values in call order."""

    def __init__(self) -> None:
        self.columns: list[Array] = []

    def __call__(self, values: Array) -> Array:
        self.columns.append(values.reshape(len(values), math.prod(values.shape[1:])))
        return np.asarray(values.sum(axis=0)[None])


class _SymbolicReader:
    """A callable that returns the totals of resamples in the call order of a recorder."""

    def __init__(self, totals: Array) -> None:
        self.totals, self.at = totals, 0

    def __call__(self, values: Array) -> Array:
        size = math.prod(values.shape[1:])
        self.at += size
        return self.totals[:, self.at - size : self.at].reshape(len(self.totals), *values.shape[1:])


class _Forms:
    """The quadratic forms and their expectations; an item drawn twice counts as two items."""

    def __init__(self, layout: FacetLayout, over_items: _OverItems) -> None:
        self.layout, self._over_items = layout, over_items
        self.n = over_items(layout.counts.sum(axis=(1, 2)))
        self.safe_n = np.maximum(self.n, 1.0)
        self.mean = over_items(layout.sums.sum(axis=(1, 2))) / self.safe_n

    def form(self, effect: Effect) -> Array:
        """Return q_f, centred at the resample's own mean."""
        if effect == RESIDUAL:
            return self._over_items(self.layout.squares.sum(axis=(1, 2))) - self.n * self.mean**2
        n, t = (_groups(one, effect) for one in (self.layout.counts, self.layout.sums))
        if 0 in effect:
            square, cross, size = (self._over_items(one.sum(axis=(1, 2))) for one in (t * t, t * n, n * n))
        else:
            n, t = self._over_items(n), self._over_items(t)
            square, cross, size = (one.sum(axis=(1, 2)) for one in (t * t, t * n, n * n))
        return np.asarray(square - 2 * self.mean * cross + self.mean**2 * size)

    def expectation(self, first: Effect, second: Effect) -> Array:
        """Return S_fg."""
        if first == RESIDUAL or second == RESIDUAL:
            other = second if first == RESIDUAL else first
            return np.asarray(self.n - (1.0 if other == RESIDUAL else self._squares(other) / self.safe_n))
        shared, cross = self._shared(first, second)
        corrected = self._squares(first) * self._squares(second) / self.safe_n**2
        return np.asarray(shared - 2 * cross / self.safe_n + corrected)

    def _squares(self, effect: Effect) -> Array:
        """Return Σ n_f²."""
        n = _groups(self.layout.counts, effect)
        if 0 in effect:
            return self._over_items((n * n).sum(axis=(1, 2)))
        return np.asarray((self._over_items(n) ** 2).sum(axis=(1, 2)))

    def _shared(self, first: Effect, second: Effect) -> tuple[Array, Array]:
        """Return Σ N_fg² and Σ N_fg n_f n_g over the groups that f and g share."""
        counts = self.layout.counts
        joint, a, b = (_groups(counts, one) for one in (first | second, first, second))
        if 0 not in first | second:
            joint, a, b = (self._over_items(one) for one in (joint, a, b))
            return (joint * joint).sum(axis=(1, 2)), (joint * a * b).sum(axis=(1, 2))
        shared = self._over_items((joint * joint).sum(axis=(1, 2)))
        if 0 in first and 0 in second:
            return shared, self._over_items((joint * a * b).sum(axis=(1, 2)))
        if 0 not in first:
            a, b = b, a
        # One of the two spans items: its groups' sizes are known only once the items are drawn.
        spanning = self._over_items(b)
        inner = self._over_items(joint * a)
        return shared, (inner * spanning).sum(axis=(1, 2))


def _groups(values: Array, effect: Effect) -> Array:
    """Sum values over judges and orders unless the effect includes them; summed axes keep length 1."""
    lacking = tuple(axis for axis in (1, 2) if axis not in effect)
    return np.asarray(values.sum(axis=lacking, keepdims=True))


Coefficient: TypeAlias = Literal["phi", "g"]

MOST_SAMPLES = 10
"""Maximum number of samples per judge in a plan."""

MOST_JUDGES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """The numbers of judges, samples and orders in a mean, which may be fractional if they are averages.

    Attributes:
        judges: Number of judges.
        samples: Number of votes of a judge in each order.
        orders: Number of orders.
    """

    judges: float
    samples: float
    orders: float


def reliability(components: Array, effects: list[Effect], design: Design, coefficient: Coefficient) -> Array:
    """Compute G or Φ from components of shape `(..., m)`; NaN if there is no variance.

    Negative components are treated as 0.
    """
    true, error = _split(np.maximum(components, 0.0), effects, design, coefficient)
    # Reliability is undefined without variance.
    return np.where(np.isnan(components).any(-1), np.nan, ratio(true, true + error))


def _split(
    components: Array, effects: list[Effect], design: Design, coefficient: Coefficient
) -> tuple[Array, Array]:
    true, error = np.zeros(components.shape[:-1]), np.zeros(components.shape[:-1])
    for at, effect in enumerate(effects):
        if effect == frozenset({0}):
            true = true + components[..., at]
        elif coefficient == "phi" or 0 in effect or effect == RESIDUAL:
            error = error + components[..., at] / _size(effect, design)
    return true, error


def _size(effect: Effect, design: Design) -> float:
    """Return the number of levels of the effect over which a mean is taken."""
    if effect == RESIDUAL:
        return design.judges * design.orders * design.samples
    return (design.judges if 1 in effect else 1.0) * (design.orders if 2 in effect else 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The fewest votes that reach a target reliability.

    Attributes:
        judges: Number of judges; None if no number reaches the target.
        samples: Number of samples per judge; None if there is no plan.
        reached: Coefficient reached by the plan; None if there is no plan.
        reason: Reason why there is no plan; None if there is one.
    """

    judges: int | None
    samples: int | None
    reached: float | None
    reason: Reason | None = None


def plan_for(
    components: Mapping[Effect, float],
    target: float,
    coefficient: Coefficient,
    *,
    judges_vary: bool,
    repeats: bool,
) -> Plan:
    """Find the smallest number of votes (judges × samples in one order) that reaches the target.

    Among plans of equal size, the one with the fewest judges is chosen. If the study has only one judge,
    other judges are unknown, so only samples are added. Without repeated votes, the variance between samples
    cannot be separated, so plans use one sample.
    """
    effects, values = list(components), np.array(list(components.values()))
    if components.get(frozenset({0}), 0.0) <= 0:
        return Plan(judges=None, samples=None, reached=None, reason="no_variance")
    if not judges_vary and not repeats:
        return Plan(judges=None, samples=None, reached=None, reason="no_repeats")
    best: tuple[int, int, float] | None = None
    for samples in range(1, (MOST_SAMPLES if judges_vary else MOST_JUDGES) + 1 if repeats else 2):
        judges = _judges_needed(components, target, coefficient, samples) if judges_vary else 1
        if judges is None:
            continue
        reached = float(
            reliability(values, effects, Design(judges=judges, samples=samples, orders=1.0), coefficient)
        )
        if reached < target - 1e-9:
            continue
        votes = judges * samples
        if best is None or (votes, judges) < (best[0] * best[1], best[0]):
            best = (judges, samples, reached)
    if best is None:
        return Plan(judges=None, samples=None, reached=None, reason="unattainable")
    return Plan(judges=best[0], samples=best[1], reached=best[2])


def _judges_needed(
    components: Mapping[Effect, float], target: float, coefficient: Coefficient, samples: int
) -> int | None:
    """Solve n_j ≥ (error that judges average out) / (σ²_p (1 - ρ) / ρ - error that remains)."""
    effects, values = list(components), np.array(list(components.values()))
    one = Design(judges=1.0, samples=float(samples), orders=1.0)
    many = Design(judges=1e300, samples=float(samples), orders=1.0)
    true, whole = _split(np.maximum(values, 0.0), effects, one, coefficient)
    _, stays = _split(np.maximum(values, 0.0), effects, many, coefficient)
    room = float(true) * (1 - target) / target - float(stays)
    shrinks = float(whole - stays)
    if room <= 0:
        return 1 if shrinks <= 0 and float(stays) <= float(true) * (1 - target) / target else None
    needed = max(1, math.ceil(shrinks / room - 1e-9))
    return needed if needed <= MOST_JUDGES else None
