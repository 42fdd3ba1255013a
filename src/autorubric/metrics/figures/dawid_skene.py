"""Dawid and Skene's model: true labels from raters with different error rates."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.core.contingency import cluster_codes
from autorubric.metrics.core.estimate import Reason
from autorubric.metrics.core.result import to_plain
from autorubric.metrics.core.scales import Array, Codes, Scale, as_sequence
from autorubric.metrics.figures.identifiability import DawidSkeneFit, fit, fit_warnings
from autorubric.metrics.figures.majority import CodedVotes, Patterns, collapse, read_votes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DawidSkeneResult:
    """Estimated labels, their probabilities and each rater's confusion matrix.

    Attributes:
        labels: Most probable category of each item; None if categories tie or the item has no votes.
        posterior: Probability of each category, shape `(n_items, K)`; an item that has no votes gets the
            prior. `posterior`, `prior` and `confusion` are None if there are no votes at all.
        confusion: Probability of each rater's labels (columns) given the true class (rows), shape `(R, K,
            K)`. A row without support is not estimated and has equal probabilities.
        prior: Estimated proportion of each category, shape `(K,)`.
        support: Expected number of each rater's votes on items of each class, shape `(R, K)`.
        categories: The K labels, in the order used by all arrays.
        raters: Ids of the R raters, or their column numbers.
        n: Number of items that have votes.
        n_missing: Number of items that have no votes.
        iterations: Number of EM iterations.
        converged: Whether EM converged.
        log_likelihood: Log-likelihood of the votes under the estimates.
        warnings: Warnings about potentially unreliable estimates.
        reason: Reason why there are no estimates; None if there are estimates.
    """

    labels: list[Any]
    posterior: Array | None = None
    confusion: Array | None = None
    prior: Array | None = None
    support: Array | None = None
    categories: tuple[Any, ...] = ()
    raters: tuple[Any, ...] = ()
    n: int = 0
    n_missing: int = 0
    iterations: int = 0
    converged: bool = False
    log_likelihood: float | None = None
    warnings: tuple[str, ...] = ()
    reason: Reason | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-compatible values; confusion rows that have no support are None."""
        plain: dict[str, Any] = to_plain(self)
        if self.confusion is not None and self.support is not None:
            plain["confusion"] = [
                [row if votes > 0 else None for row, votes in zip(table, supports, strict=True)]
                for table, supports in zip(self.confusion.tolist(), self.support.tolist(), strict=True)
            ]
        return plain


_EQUAL = 1e-9


def dawid_skene(
    ratings: Any,
    *,
    scale: Scale | None = None,
    smoothing: float = 0.0,
    raters: Iterable[Any] | None = None,
    labels: int | None = None,
    max_iterations: int = 1000,
    tolerance: float = 1e-8,
) -> DawidSkeneResult:
    """Estimate the most probable labels, their probabilities and each rater's confusion matrix [1].

    The model assumes that an item belongs to class k with probability p_k, and rater r then gives label l
    with probability π_rkl, independently of the other raters. The parameters are fitted by maximum likelihood
    with EM, starting from each item's proportions of votes per class; the likelihood may have other maxima.
    Votes may be missing. `warnings` lists reasons to doubt the estimates: fewer than three columns of votes,
    fewer items than parameters, raters that always give one label or are worse than guessing, raters that
    agree more than independent errors explain (copies), and classes without items.

    If there are no votes, all estimates are None (`no_ratings`). An item's label is None if its most probable
    classes tie or it has no votes.

    Args:
        ratings: Labels of shape `(n_items, n_columns)`; None and NaN are missing votes.
        scale: Declared categories; None uses the categories that occur.
        smoothing: Pseudo-votes added to each cell of each confusion matrix, and pseudo-items added to each
            class. The result is the posterior mode under Dirichlet priors of 1 + smoothing; 0 gives maximum
            likelihood.
        raters: Rater of each column, for raters that labelled the items several times. None treats each
            column as a separate rater, named by its position.
        labels: Number of categories K, if the labels are integer codes 0..K-1, -1 for missing.
        max_iterations: Maximum number of iterations.
        tolerance: Iteration stops when no posterior probability changes by more than this value.

    Raises:
        ArgumentError: If rows differ in length, a label is not on the scale, the number of raters differs
            from the number of columns, or an option is out of range.

    References:
        [1] A. P. Dawid, A. M. Skene (1979), Maximum likelihood estimation of observer error-rates using the
            EM algorithm, Applied Statistics 28(1), 20-28.
    """
    _check(smoothing, max_iterations, tolerance)
    votes = read_votes(ratings, scale, labels)
    rater, names = _raters(raters, votes.codes)
    rated = np.asarray((votes.codes >= 0).any(1))
    if not rated.any():
        return DawidSkeneResult(
            labels=[None] * len(rated),
            categories=votes.categories,
            raters=names,
            n_missing=len(rated),
            reason="no_ratings",
        )
    codes = votes.codes if rated.all() else votes.codes[rated]
    patterns = collapse(codes, rater, len(names), len(votes.categories))
    fitted = fit(patterns, smoothing, max_iterations, tolerance)
    warnings = fit_warnings(fitted, patterns, names, votes.categories)
    return _result(votes, patterns, fitted, rated, names, warnings)


def _check(smoothing: float, max_iterations: int, tolerance: float) -> None:
    if not (smoothing >= 0 and math.isfinite(smoothing)):
        raise ArgumentError(f"smoothing must be a finite, non-negative number; got {smoothing!r}")
    if max_iterations < 1:
        raise ArgumentError(f"max_iterations must be a positive integer; got {max_iterations!r}")
    if not 0 <= tolerance < 1:
        raise ArgumentError(f"tolerance must be at least 0 and below 1; got {tolerance!r}")


def _raters(raters: Iterable[Any] | None, codes: Codes) -> tuple[Codes, tuple[Any, ...]]:
    """Return the rater of each column, numbered in order of first appearance, and the rater names."""
    n_columns = codes.shape[1]
    if raters is None:
        return np.arange(n_columns), tuple(range(n_columns))
    names = list(as_sequence(raters, "raters"))
    if len(names) != n_columns and len(codes):
        raise ArgumentError(f"raters has {len(names)} ids for {n_columns} columns; pass one per column")
    numbers = cluster_codes(names, len(names))
    assert numbers is not None
    return numbers[:n_columns], tuple(dict.fromkeys(names))


def _result(
    votes: CodedVotes,
    patterns: Patterns,
    fitted: DawidSkeneFit,
    rated: Array,
    names: tuple[Any, ...],
    warnings: tuple[str, ...],
) -> DawidSkeneResult:
    """Expand the fit from patterns to items."""
    spoken = np.empty(len(votes.categories) + 1, dtype=object)
    spoken[:-1] = votes.categories
    best = np.where(_clear(fitted.posterior), fitted.posterior.argmax(1), -1)
    n_items = len(rated)
    posterior = fitted.posterior[patterns.of_item]
    winner = best[patterns.of_item]
    if len(posterior) < n_items:
        posterior, winner = np.empty((n_items, patterns.size)), np.full(n_items, -1)
        posterior[rated], winner[rated] = fitted.posterior[patterns.of_item], best[patterns.of_item]
        posterior[~rated] = fitted.prior
    for array in (posterior, fitted.confusion, fitted.prior, fitted.support):
        array.setflags(write=False)
    return DawidSkeneResult(
        labels=spoken[winner].tolist(),
        posterior=posterior,
        confusion=fitted.confusion,
        prior=fitted.prior,
        support=fitted.support,
        categories=votes.categories,
        raters=names,
        n=int(patterns.counts.sum()),
        n_missing=n_items - int(patterns.counts.sum()),
        iterations=fitted.iterations,
        converged=fitted.converged,
        log_likelihood=fitted.log_likelihood,
        warnings=warnings,
    )


def _clear(posterior: Array) -> Array:
    """Return whether one class is more probable than all others, shape `(n,)`."""
    if posterior.shape[1] < 2:
        return np.ones(len(posterior), dtype=bool)
    second, first = np.partition(posterior, -2, axis=1)[:, -2:].T
    return np.asarray(first - second > _EQUAL)
