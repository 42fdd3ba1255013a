"""Prediction-powered means, which combine a few labels with many verdicts of the judge.

The columns of a unit's row are, in this order: number of labelled items, sum of their labels, sum of the
judge's values on them, number of items under test, sum of the judge's values on these. The variance is a
quadratic form of the rows' outer products.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from autorubric.metrics._correction._strata import Strata, Stratum, strata_of
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Codes
from autorubric.metrics._shares import divide

WIDTH = 5


class Tuned(NamedTuple):
    """A prediction-powered mean, its λ and its variance, shape `(...)`; NaN with fewer than two units."""

    value: Array
    lam: Array
    variance: Array


def units_of(
    truth: Array, judged: Array, tested: Array, label_cluster: Codes | None, test_cluster: Codes | None
) -> Strata:
    """Build units from labelled pairs and from the judge's values on the items under test."""
    labelled = np.column_stack([np.ones(len(truth)), truth, judged])
    tests = np.column_stack([np.ones(len(tested)), tested])
    return strata_of(labelled, tests, label_cluster, test_cluster)


_CELLS = np.array([[1.0, y, f, 0.0, 0.0] for y in (0.0, 1.0) for f in (0.0, 1.0)])


def smoothed(units: Strata) -> Strata:
    """Return the units plus one labelled item, split equally over the cells of the label × verdict table.

    Labels and verdicts must be 0 or 1 and without clusters.
    """
    parts = []
    for part in units.parts:
        if part.labelled:
            alike = (part.rows[None, :, :] == _CELLS[:, None, :]).all(-1)
            part = Stratum(_CELLS, alike @ part.counts + 0.25, True, False)
        parts.append(part)
    return Strata(tuple(parts), units.clustered_tests, units.clustered_labels)


def smoothed_by() -> Array:
    """Return the amounts that `smoothed` adds to sums and to sums of outer products, shape `(5 + 25,)`."""
    squares = (_CELLS[:, :, None] * _CELLS[:, None, :]).reshape(len(_CELLS), -1)
    return np.asarray(np.concatenate([_CELLS, squares], axis=1).sum(axis=0) / 4)


def tuned_mean(
    sums: Array, squares: Array, n_labelled: int, n_tested: int, fixed: float | None = None
) -> Tuned:
    """Compute λ mean(f_U) + mean(Y - λ f_L), with λ tuned to minimise the variance unless it is fixed.

    The tuned λ is cov_n(Y, f) / ((1 + n/N) var_{n+N}(f)), clipped to [0, 1]. The variance of the mean is λ²
    var(f_U)/N + var(Y - λ f_L)/n; with clusters, each variance is that of sums over clusters.

    Args:
        sums: Sums of the rows, shape `(..., 5)`.
        squares: Sums of their outer products, shape `(..., 5, 5)`.
        n_labelled: Number of units with labels.
        n_tested: Number of units with items under test.
        fixed: Value of λ; None tunes it, and 1 yields the estimate of Angelopoulos et al. (2023).
    """
    n, n_tests = sums[..., 0], sums[..., 3]
    y, f, g = divide(sums[..., 1], n), divide(sums[..., 2], n), divide(sums[..., 4], n_tests)
    zero = np.zeros_like(n)
    of_y = np.stack([-y, zero + 1, zero, zero, zero], axis=-1) / n[..., None]
    of_f = np.stack([-f, zero, zero + 1, zero, zero], axis=-1) / n[..., None]
    of_g = np.stack([zero, zero, zero, -g, zero + 1], axis=-1) / n_tests[..., None]
    both = divide(sums[..., 2] + sums[..., 4], n + n_tests)
    pooled = np.stack([-both, zero, zero + 1, -both, zero + 1], axis=-1)
    n_units = n_labelled + n_tested
    spread = _form(pooled, squares, pooled) / (n + n_tests) * n_units / max(n_units - 1, 1)
    least = divide(n * _form(of_y, squares, of_f), (1 + n / n_tests) * np.where(spread > 1e-15, spread, 0.0))
    tuned = np.clip(np.nan_to_num(least, nan=0.0), 0.0, 1.0)
    lam = tuned if fixed is None else np.full_like(tuned, fixed)
    rectified = (of_y - lam[..., None] * of_f) * _factor(n_labelled)
    effect = rectified + lam[..., None] * of_g * _factor(n_tested)
    return Tuned(lam * g + y - lam * f, lam, np.maximum(_form(effect, squares, effect), 0.0))


def _form(left: Array, squares: Array, right: Array) -> Array:
    return np.asarray(np.einsum("...i,...ij,...j->...", left, squares, right))


def _factor(n_units: int) -> float:
    return (n_units / (n_units - 1)) ** 0.5 if n_units > 1 else 1.0
