"""Estimation of the true proportions of answers from a judge's confusion matrix."""

from __future__ import annotations

import numpy as np

from autorubric.metrics._resampling import Array

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
