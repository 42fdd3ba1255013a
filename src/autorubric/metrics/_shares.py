"""Proportions of correct answers in count tables `(..., K, K)` with the truth in the rows.

A proportion is undefined (NaN) if its denominator is 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from autorubric.metrics._resampling import Array


class OneAgainstRest(NamedTuple):
    """Counts of one category against all others, as arrays of shape `(...)`."""

    tp: Array
    fp: Array
    fn: Array
    tn: Array


def one_against_rest(table: Array, positive: int) -> OneAgainstRest:
    """Count true positives, false positives, false negatives and true negatives of category `positive`."""
    tp = table[..., positive, positive]
    fp = table[..., :, positive].sum(-1) - tp
    fn = table[..., positive, :].sum(-1) - tp
    return OneAgainstRest(tp, fp, fn, table.sum((-1, -2)) - tp - fp - fn)


def divide(numerator: Array, denominator: Array) -> Array:
    """Divide the numerator by the denominator; NaN where the denominator is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(denominator == 0, np.nan, numerator / denominator)


def hits(table: Array) -> Array:
    """Compute the number of correct answers, the sum of the diagonal."""
    return np.asarray(np.trace(table, axis1=-2, axis2=-1))


def accuracy_of(table: Array) -> Array:
    """Compute the accuracy, the proportion on the diagonal."""
    return divide(hits(table), table.sum((-1, -2)))


def precision_of(table: Array, positive: int) -> Array:
    """Compute the precision TP / (TP + FP)."""
    cells = one_against_rest(table, positive)
    return divide(cells.tp, cells.tp + cells.fp)


def recall_of(table: Array, positive: int) -> Array:
    """Compute the recall TP / (TP + FN)."""
    cells = one_against_rest(table, positive)
    return divide(cells.tp, cells.tp + cells.fn)


def specificity_of(table: Array, positive: int) -> Array:
    """Compute the specificity TN / (TN + FP)."""
    cells = one_against_rest(table, positive)
    return divide(cells.tn, cells.tn + cells.fp)


def f1_of(table: Array, positive: int) -> Array:
    """Compute F1, 2 TP / (2 TP + FP + FN)."""
    cells = one_against_rest(table, positive)
    return divide(2 * cells.tp, 2 * cells.tp + cells.fp + cells.fn)


def negative_agreement_of(table: Array, positive: int) -> Array:
    """Compute the negative agreement 2 TN / (2 TN + FP + FN)."""
    cells = one_against_rest(table, positive)
    return divide(2 * cells.tn, 2 * cells.tn + cells.fp + cells.fn)


def balanced_accuracy_of(table: Array) -> Array:
    """Compute the mean recall over the classes that occur in the truth; NaN if there are fewer than two."""
    support = table.sum(-1)
    there = support != 0
    recalls = np.where(there, divide(np.diagonal(table, axis1=-2, axis2=-1), support), 0)
    n_classes = there.sum(-1)
    return divide(recalls.sum(-1), np.where(n_classes < 2, 0, n_classes))


def macro_f1_of(table: Array) -> Array:
    """Compute the mean one-against-rest F1 over the classes that occur in the truth or the predictions."""
    both = table.sum(-1) + table.sum(-2)
    there = both != 0
    scores = np.where(there, divide(2 * np.diagonal(table, axis1=-2, axis2=-1), both), 0)
    return divide(scores.sum(-1), there.sum(-1))


def macro_precision_of(table: Array) -> Array:
    """Compute the mean one-against-rest precision over the classes that occur in the predictions."""
    return _mean_share(table, table.sum(-2))


def macro_recall_of(table: Array) -> Array:
    """Compute the mean one-against-rest recall over the classes that occur in the truth."""
    return _mean_share(table, table.sum(-1))


def _mean_share(table: Array, of: Array) -> Array:
    there = of != 0
    shares = np.where(there, divide(np.diagonal(table, axis1=-2, axis2=-1), of), 0)
    return divide(shares.sum(-1), there.sum(-1))


def mcc_of(table: Array) -> Array:
    """Compute Gorodkin's R_K; NaN if the truth or the predictions are constant."""
    rows, columns = table.sum(-1), table.sum(-2)
    n = rows.sum(-1)
    covariance = n * hits(table) - (rows * columns).sum(-1)
    spread = (n * n - (rows**2).sum(-1)) * (n * n - (columns**2).sum(-1))
    return divide(covariance, np.sqrt(spread))


def near(size: int, k: int) -> Array:
    """Return a 0/1 mask of the cells of a K × K table that are at most k places off the diagonal."""
    places = np.arange(size)
    return np.asarray(np.abs(places[:, None] - places[None, :]) <= k, dtype=float)


def adjacent_accuracy_of(table: Array, k: int = 1) -> Array:
    """Compute the proportion of pairs at most k places off the diagonal."""
    return divide((table * near(table.shape[-1], k)).sum((-1, -2)), table.sum((-1, -2)))
