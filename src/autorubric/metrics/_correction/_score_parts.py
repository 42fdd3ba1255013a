"""Per-item sums of criteria, corrected for the run and for resamples of its items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from autorubric.metrics._correction import _ppi as ppi
from autorubric.metrics._correction._arguments import PPI_LABELS, CorrectionMethod, CorrectionOptions
from autorubric.metrics._correction._score_columns import Measured, ScoredRun
from autorubric.metrics._estimate import Reason
from autorubric.metrics._resampling import Array, draw_weights

_SINGULAR = 1e-9


def distribution_of(tables: Array, answers: Array) -> Array:
    """Estimate the true proportions `π = M⁻¹ q`, shape `(r, K)`, projected onto valid proportions.

    An answer that is never true and never given is ignored. The result is NaN if an answer is given but never
    true, or if det M <= 0.

    Args:
        tables: Counts of labelled items with true answers as rows, shape `(r, K, K)`.
        answers: Counts of the judge's answers, shape `(r, K)`.
    """
    support, n = tables.sum(-1), answers.sum(-1)
    size = tables.shape[-1]
    known = support > 0
    absent = ~known & (answers == 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        given = np.where(known[..., None], tables / support[..., None], 0.0)
        q = answers / n[..., None]
    # An absent answer keeps its row and column, with 1 on the diagonal.
    given = given + absent[..., None] * np.eye(size)
    undefined = (n == 0) | np.any(~known & ~absent, axis=-1)
    given = np.where(undefined[..., None, None], np.eye(size), given)
    undefined |= np.linalg.det(given) <= _SINGULAR
    given = np.where(undefined[..., None, None], np.eye(size), given)
    shares = np.linalg.solve(np.swapaxes(given, -1, -2), np.nan_to_num(q)[..., None])[..., 0]
    return np.where(undefined[..., None], np.nan, onto_shares(shares))


def onto_shares(points: Array) -> Array:
    """Project points, shape `(..., K)`, onto the nearest proportions (>= 0, sum 1) [1].

    For two answers, this amounts to clipping to [0, 1].

    References:
        [1] W. Wang, M. A. Carreira-Perpiñán (2013), Projection onto the probability simplex, arXiv:1309.1541.
    """
    descending = -np.sort(-points, axis=-1)
    excess = (np.cumsum(descending, axis=-1) - 1) / np.arange(1, points.shape[-1] + 1)
    last = np.count_nonzero(descending > excess, axis=-1) - 1
    moved = np.take_along_axis(excess, np.maximum(last, 0)[..., None], axis=-1)
    return np.maximum(points - moved, 0.0)


_CHUNK_CELLS = 4_000_000


@dataclass(frozen=True, slots=True)
class Part:
    """The per-item sums of a criterion and their correction.

    Attributes:
        sums: Sums of each item, shape `(n_items, d)`.
        size: Number of answers K of the tables; 0 for ppi++.
        n_tested: Number of unlabelled items, for ppi++.
        n_labelled: Number of labelled items.
        values: Values of the answers; for numbers, the smallest and the largest.
        lam: λ of ppi++ if it is fixed; None if it is tuned.
    """

    sums: Array
    size: int
    n_labelled: int
    n_tested: int
    values: Array
    lam: float | None = None

    def correct(self, sums: Array) -> Array:
        """Compute corrected mean values from sums `(r, d)`, shape `(r,)`; NaN if undefined."""
        if self.size:
            return np.asarray(distribution_of(*self._tables(sums)) @ self.values)
        return np.clip(self.tuned(sums).value, self.values.min(), self.values.max())

    def distribution(self, sums: Array) -> Array:
        """Compute corrected proportions of the answers, shape `(r, K)`."""
        return distribution_of(*self._tables(sums))

    def tuned(self, sums: Array) -> ppi.Tuned:
        """Compute prediction-powered means."""
        squares = sums[:, ppi.WIDTH :].reshape(-1, ppi.WIDTH, ppi.WIDTH)
        return ppi.tuned_mean(sums[:, : ppi.WIDTH], squares, self.n_labelled, self.n_tested, self.lam)

    @property
    def df(self) -> int | None:
        """Number of labelled items of the rarest answer minus one; None for ppi++."""
        if not self.size:
            return None
        support = self.sums.sum(axis=0)[: self.size**2].reshape(self.size, self.size).sum(axis=1)
        rarest = support[support > 0].min(initial=np.inf)
        return max(1, int(rarest) - 1) if np.isfinite(rarest) else 1

    def _tables(self, sums: Array) -> tuple[Array, Array]:
        cells = self.size * self.size
        return sums[:, :cells].reshape(-1, self.size, self.size), sums[:, cells:]


def part_of(one: Measured, tested: Array, method: CorrectionMethod, lam: float | None) -> Part:
    judged, labelled = ~np.isnan(one.judged_value), ~np.isnan(one.true_value)
    both = judged & labelled
    if method == "rogan-gladen" and one.values is not None:
        size = len(one.values)
        n = len(one.truth)
        table, answers = np.zeros((n, size * size)), np.zeros((n, size))
        table[np.flatnonzero(both), one.truth[both] * size + one.judged[both]] = 1
        counted = judged & tested
        answers[np.flatnonzero(counted), one.judged[counted]] = 1
        return Part(np.concatenate([table, answers], axis=1), size, int(both.sum()), 0, one.values)
    alone = judged & ~labelled & tested
    reached = np.array([0.0, 1.0]) if one.values is None else one.values
    rows = np.column_stack(
        [
            both.astype(float),
            np.where(both, one.true_value, 0.0),
            np.where(both, one.judged_value, 0.0),
            alone.astype(float),
            np.where(alone, one.judged_value, 0.0),
        ]
    )
    squares = (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
    sums = np.concatenate([rows, squares], axis=1)
    return Part(sums, 0, int(both.sum()), int(alone.sum()), reached, lam)


def refusal(one: Measured, part: Part, method: CorrectionMethod) -> Reason | None:
    total = part.sums.sum(axis=0)[None, :]
    if method == "ppi++":
        if not part.n_tested:
            return "no_values"
        return "too_few_labels" if part.n_labelled < PPI_LABELS else None
    if not part.size:
        return "not_comparable"
    cells = part.size * part.size
    table, answers = total[0, :cells].reshape(part.size, part.size), total[0, cells:]
    if not answers.sum():
        return "no_values"
    if np.any((table.sum(axis=1) == 0) & (answers > 0)) or not table.sum():
        return "too_few_labels"
    return "uninformative_judge" if np.isnan(part.correct(total)[0]) else None


def draws(
    run: ScoredRun, parts: list[Part], refused: list[Reason | None], options: CorrectionOptions
) -> Iterator[Array]:
    """Yield corrected values in resamples of items, shape `(r, n_criteria)`; NaN if undefined or refused."""
    defined = [place for place, reason in enumerate(refused) if reason is None]
    ends = np.cumsum([0, *(parts[place].sums.shape[1] for place in defined)])
    sums = np.concatenate([np.zeros((run.n_items, 0)), *(parts[place].sums for place in defined)], axis=1)
    strata = [
        # Identical items are drawn as one kind with a count.
        np.unique(sums[chosen], axis=0, return_counts=True)
        for chosen in (run.judged & run.labelled, run.judged & ~run.labelled)
        if chosen.any()
    ]
    rng = options.generator()
    step = max(1, _CHUNK_CELLS // max(run.n_items, 1))
    for start in range(0, options.n_resamples, step):
        rows = min(step, options.n_resamples - start)
        found = np.full((rows, len(parts)), np.nan)
        drawn = np.zeros((rows, sums.shape[1]))
        for kinds, counts in strata:
            drawn += draw_weights(counts, int(counts.sum()), rows, rng) @ kinds
        for place, first, last in zip(defined, ends, ends[1:], strict=False):
            part = parts[place]
            found[:, place] = part.correct(drawn[:, first:last] + _smoothing(part, rows, rng))
        yield found


def _smoothing(part: Part, rows: int, rng: np.random.Generator) -> Array | float:
    """Draw one additional labelled item on average, in any cell, so that rare confusions remain possible."""
    if not part.size:
        return 0.0
    used = part.sums.sum(axis=0)[: part.size**2].reshape(part.size, part.size).sum(axis=1) > 0
    cells = np.outer(used, used).reshape(-1).astype(float)
    n = part.n_labelled
    times = rng.binomial(n + 1, 1 / (n + 1), size=rows)
    extra = rng.multinomial(times, cells / cells.sum())
    return np.concatenate([extra, np.zeros((rows, part.size))], axis=1)
