"""Variance components of crossed random facets by MIVQUE(0), as functions of item weights in a resample.

With y centred at its mean, T_f the totals of y over the groups of an effect f, and N_fg the number of votes
that the groups of f and g share, the quadratic forms q_f = Σ T_f² have the expectations Σ_g S_fg σ²_g, with
S_fg = Σ N_fg² - 2/n Σ N_fg n_f n_g + 1/n² Σ n_f² Σ n_g² [1]. Solving for σ² gives unbiased estimates. If
every cell has equally many votes, they equal those of ANOVA, whatever the a priori weights [2].

References:
    [1] H. O. Hartley, J. N. K. Rao, L. R. LaMotte (1978), A simple 'synthesis'-based method of variance
        component estimation, Biometrics 34, 233-242.
    [2] S. R. Searle, G. Casella, C. E. McCulloch (1992), Variance components, ch. 4 and 11.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Protocol, TypeAlias

import numpy as np

from autorubric.metrics._audit._facets import Layout
from autorubric.metrics._resampling import Array

Effect: TypeAlias = frozenset[int]
"""The facets of an effect: 0 item, 1 judge, 2 order; the empty set is the residual of single votes."""

RESIDUAL: Effect = frozenset()


def effects_of(layout: Layout) -> list[Effect]:
    """Return the effects that can be separated: all combinations of varying facets, then the residual.

    If no cell has two votes, the residual includes the highest interaction.
    """
    facets = [facet for facet, size in enumerate(layout.shape) if size > 1]
    found = [frozenset(one) for size in range(1, len(facets) + 1) for one in combinations(facets, size)]
    if not layout.has_repeats and found:
        found = found[:-1]
    return [*found, RESIDUAL]


def component_figures(layout: Layout, effects: Sequence[Effect]) -> tuple[Array, Callable[[Array], Array]]:
    """Return each item's sums, shape `(n_items, d)`, and a function from their totals to the components.

    The function maps totals of shape `(r, d)` to components of shape `(r, m)`, NaN if effects are
    inseparable.
    """
    recorder = _Recorder()
    _components(_Forms(layout, recorder), effects)
    sums = np.concatenate(recorder.columns, axis=1)

    def compute(totals: Array) -> Array:
        return _components(_Forms(layout, _Reader(totals)), effects)

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


class _Reader:
    """A callable that returns the totals of resamples in the call order of a recorder."""

    def __init__(self, totals: Array) -> None:
        self.totals, self.at = totals, 0

    def __call__(self, values: Array) -> Array:
        size = math.prod(values.shape[1:])
        self.at += size
        return self.totals[:, self.at - size : self.at].reshape(len(self.totals), *values.shape[1:])


class _Forms:
    """The quadratic forms and their expectations; an item drawn twice counts as two items."""

    def __init__(self, layout: Layout, over_items: _OverItems) -> None:
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
