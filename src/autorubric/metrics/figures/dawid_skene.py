"""Dawid and Skene's model: true labels from raters with different error rates, and warnings about a fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from autorubric.errors import ArgumentError
from autorubric.metrics.core.contingency import cluster_codes
from autorubric.metrics.core.estimate import Reason
from autorubric.metrics.core.intervals import normal_quantile, wilson_ends
from autorubric.metrics.core.resampling import check_number
from autorubric.metrics.core.result import to_plain
from autorubric.metrics.core.scales import Array, Codes, Scale, as_sequence
from autorubric.metrics.figures.majority import Patterns, collapse, vote_matrix


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
    check_number("smoothing", smoothing, "[0, inf)")
    check_number("max_iterations", max_iterations, "[1, inf)", whole=True)
    check_number("tolerance", tolerance, "[0, 1)")
    votes = vote_matrix(ratings, scale, labels)
    rater, names = _raters(raters, votes.codes)
    rated = np.asarray((votes.codes >= 0).any(1))
    if not rated.any():
        nothing = DawidSkeneResult(labels=[None] * len(rated), n_missing=len(rated), reason="no_ratings")
        return replace(nothing, categories=votes.categories, raters=names)
    codes = votes.codes if rated.all() else votes.codes[rated]
    patterns = collapse(codes, rater, len(names), len(votes.categories))
    fitted = fit(patterns, smoothing, max_iterations, tolerance)
    warnings = fit_warnings(fitted, patterns, names, votes.categories)
    labels_or_none = np.empty(len(votes.categories) + 1, dtype=object)
    labels_or_none[:-1] = votes.categories
    best = np.where(_has_winner(fitted.posterior), fitted.posterior.argmax(1), -1)
    posterior, winner = fitted.posterior[patterns.of_item], best[patterns.of_item]
    if not rated.all():
        # Items without votes get the prior.
        of_rated = posterior, winner
        posterior, winner = np.tile(fitted.prior, (len(rated), 1)), np.full(len(rated), -1)
        posterior[rated], winner[rated] = of_rated
    for array in (posterior, fitted.confusion, fitted.prior, fitted.support):
        array.setflags(write=False)
    return DawidSkeneResult(
        labels=labels_or_none[winner].tolist(),
        posterior=posterior,
        confusion=fitted.confusion,
        prior=fitted.prior,
        support=fitted.support,
        categories=votes.categories,
        raters=names,
        n=len(codes),
        n_missing=len(rated) - len(codes),
        iterations=fitted.iterations,
        converged=fitted.converged,
        log_likelihood=fitted.log_likelihood,
        warnings=warnings,
    )


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


def _has_winner(posterior: Array) -> Array:
    """Return whether one class is more probable than all others, shape `(n,)`."""
    if posterior.shape[1] < 2:
        return np.ones(len(posterior), dtype=bool)
    second, first = np.partition(posterior, -2, axis=1)[:, -2:].T
    return np.asarray(first - second > _EQUAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class DawidSkeneFit:
    """Final estimates of the EM algorithm."""

    posterior: Array  # probability of each class, shape `(n_patterns, K)`
    prior: Array  # proportion of each class, shape `(K,)`
    confusion: Array  # confusion matrix of each rater with truth in the rows, shape `(R, K, K)`
    support: Array  # expected number of votes in each row of `confusion`, shape `(R, K)`
    log_likelihood: float
    iterations: int  # number of M steps
    converged: bool  # whether the last step changed no probability by more than the tolerance


def fit(patterns: Patterns, smoothing: float, max_iterations: int, tolerance: float) -> DawidSkeneFit:
    size, n_raters = patterns.size, patterns.n_raters
    backward = patterns.votes.T.tocsr()
    votes = patterns.votes @ np.tile(np.eye(size), (n_raters, 1))
    posterior = np.asarray(votes / votes.sum(1, keepdims=True))
    iterations, moved = 0, np.inf
    while moved > tolerance and iterations < max_iterations:
        weighted = posterior * patterns.counts[:, None]
        votes = (backward @ weighted).reshape(n_raters, size, size)
        prior = (weighted.sum(0) + smoothing) / (patterns.counts.sum() + smoothing * size)
        support = votes.sum(1)
        confusion = _rows(votes, support, smoothing)
        before = posterior
        posterior, evidence = _expect(patterns, prior, confusion)
        moved = float(np.abs(posterior - before).max())
        iterations += 1
    return DawidSkeneFit(
        posterior=posterior,
        prior=prior,
        confusion=confusion.transpose(0, 2, 1),
        support=support,
        log_likelihood=float(patterns.counts @ evidence),
        iterations=iterations,
        converged=moved <= tolerance,
    )


def _rows(votes: Array, support: Array, smoothing: float) -> Array:
    """Return the probability of each label given the class, `(R, label, class)`.

    Without votes, all labels are equally probable, the limit as smoothing goes to 0; no item is in the
    class.
    """
    size = votes.shape[1]
    room = support[:, None, :] + smoothing * size
    empty = room == 0
    return np.where(empty, 1.0 / size, (votes + smoothing) / np.where(empty, 1.0, room))


def _expect(patterns: Patterns, prior: Array, confusion: Array) -> tuple[Array, Array]:
    """Return the posterior of each pattern and the logarithm of its probability."""
    with np.errstate(divide="ignore"):
        table, shares = np.log(confusion.reshape(-1, patterns.size)), np.log(prior)
    # The sparse product skips labels that were not given, for which 0 · log 0 would be NaN.
    joint = patterns.votes @ table + shares
    # The maximum over rows of a transposed copy is faster than over short rows.
    top = np.ascontiguousarray(joint.T).max(0)[:, None]
    joint = np.exp(joint - top)
    total = joint.sum(1, keepdims=True)
    return joint / total, (top + np.log(total))[:, 0]


FEWEST_COMMON = 20
"""Minimum number of items rated by both raters of a pair."""

_NEAREST = 3
_LEAST_EXCESS = 0.1
_STANDARD_ERRORS = 4.0


class CopyingPair(NamedTuple):
    """Two raters that may copy each other; `agreement` is the proportion of equal labels on `n_items`."""

    first: int
    second: int
    agreement: float
    n_items: int


def copying_pairs(patterns: Patterns) -> list[CopyingPair]:
    """Find pairs that agree more than their agreement with the other raters explains, clearest pair first.

    If raters err independently given the truth, κ_rs κ_uv = κ_ru κ_sv for any four raters (Spearman's
    tetrads; exact for symmetric errors). A pair is listed if κ_rs exceeds κ_ru κ_sv / κ_uv by 0.1 and by
    four standard errors for every u and v; if every κ_uv exceeds κ_rs, the pair with the largest κ_uv is
    listed instead. Pairs whose labels are all equal come first, if every other rater clearly differs from
    them. The second rater of a listed pair is excluded from the search for the next pair.
    """
    kappa, agreement, n_items = _pair_tables(patterns)
    active = list(range(patterns.n_raters))
    found: list[CopyingPair] = []
    while len(active) >= 3:
        pair = _identical(kappa, n_items, active) or _clearest(kappa, n_items, active)
        if pair is None:
            break
        first, second = sorted(pair)
        found.append(CopyingPair(first, second, float(agreement[first, second]), int(n_items[first, second])))
        active.remove(second)
    return found


def _pair_tables(patterns: Patterns) -> tuple[Array, Array, Array]:
    """Return kappa, agreement and the number of common items of each pair, shapes `(R, R)`."""
    n_raters, size, votes = patterns.n_raters, patterns.size, patterns.votes
    counts = patterns.counts[:, None]
    joint = np.asarray((votes.multiply(counts).tocsr().T @ votes).todense(), dtype=float)
    tables = joint.reshape(n_raters, size, n_raters, size).transpose(0, 2, 1, 3)
    rated: Any = (np.ones(votes.nnz), votes.indices // size, votes.indptr.copy())
    there = csr_array(rated, shape=(len(counts), n_raters))
    there.sum_duplicates()
    there.data[:] = 1.0
    n_items = np.asarray((there.multiply(counts).tocsr().T @ there).todense())
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = tables / tables.sum((2, 3), keepdims=True)
        agreement = np.trace(shares, axis1=2, axis2=3)
        chance = (shares.sum(3) * shares.sum(2)).sum(2)
        kappa = np.where(chance < 1 - _EQUAL, (agreement - chance) / (1 - chance), np.nan)
    kappa[n_items < FEWEST_COMMON] = np.nan
    return kappa, agreement, n_items


def _identical(kappa: Array, n_items: Array, active: list[int]) -> tuple[int, int] | None:
    """Return two active raters with identical labels that differ from every other rater's, if any."""
    within = np.array(active)
    equal = kappa[np.ix_(within, within)] >= 1 - _EQUAL
    np.fill_diagonal(equal, False)
    for at in np.flatnonzero(equal.any(1)).tolist():
        rest = within[~equal[at]]
        rest = rest[rest != within[at]]
        known = rest[~np.isnan(kappa[within[at], rest])]
        theirs = kappa[within[at], known]
        spread = np.sqrt(_variance(theirs, n_items[within[at], known]))
        if len(known) and np.all(theirs + _STANDARD_ERRORS * spread < 1):
            return active[at], active[int(np.argmax(equal[at]))]
    return None


def _clearest(kappa: Array, n_items: Array, active: list[int]) -> tuple[int, int] | None:
    """Return the pair of active raters with the largest excess agreement, or None if no pair has excess."""
    best: tuple[float, tuple[int, int]] | None = None
    within = np.array(active)
    for r in active:
        others = within[within != r]
        others = others[~np.isnan(kappa[r, others])]
        for s in others[np.argsort(-kappa[r, others])][:_NEAREST].tolist():
            excess = _excess(kappa, n_items, r, s, within)
            if excess is not None and (best is None or excess > best[0]):
                best = (excess, (r, s))
    if best is None:
        return None
    r, s = best[1]
    others = within[(within != r) & (within != s)]
    between = kappa[np.ix_(others, others)].copy()
    between[np.tril_indices(len(others))] = np.nan
    if np.any(~np.isnan(between)) and np.nanmin(between) > kappa[r, s]:
        u, v = np.unravel_index(int(np.nanargmax(between)), between.shape)
        return int(others[u]), int(others[v])
    return r, s


def _excess(kappa: Array, n_items: Array, r: int, s: int, within: Array) -> float | None:
    """Return the agreement of the pair in excess of what the other raters explain; None without excess."""
    others = within[(within != r) & (within != s)]
    # Rows are u (compared with r), columns v (with s), so each reference pair occurs in both orders.
    with_r, with_s, between = (
        kappa[r, others][:, None],
        kappa[s, others][None, :],
        kappa[np.ix_(others, others)].copy(),
    )
    np.fill_diagonal(between, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        implied = np.clip(with_r * with_s / np.where(between > 0, between, np.nan), 0.0, 1.0)
        variance = _variance(kappa[r, s], n_items[r, s])
        variance = variance + (with_s / between) ** 2 * _variance(with_r, n_items[r, others][:, None])
        variance = variance + (with_r / between) ** 2 * _variance(with_s, n_items[s, others][None, :])
        variance = variance + (implied / between) ** 2 * _variance(between, n_items[np.ix_(others, others)])
    excess = kappa[r, s] - implied
    known = ~np.isnan(excess)
    if not known.any() or np.any(
        (excess <= np.maximum(_LEAST_EXCESS, _STANDARD_ERRORS * np.sqrt(variance)))[known]
    ):
        return None
    return float(excess[known].min())


def _variance(kappa: Array, n: Array) -> Array:
    """Return the large-sample variance of a correlation; kappa with equal margins is a correlation."""
    return np.asarray((1 - kappa**2) ** 2 / np.maximum(n, 1))


_READINGS = 3
_NAMES_SHOWN = 5


def fit_warnings(
    fit: DawidSkeneFit, patterns: Patterns, raters: Sequence[Any], categories: Sequence[Any]
) -> tuple[str, ...]:
    n_items, size = int(patterns.counts.sum()), len(categories)
    voted = (patterns.votes.T @ patterns.counts).reshape(len(raters), size)
    found = []
    if patterns.n_columns < _READINGS:
        found.append(
            f"{patterns.n_columns} columns of votes do not identify the model: with fewer than {_READINGS}, "
            "several solutions fit equally well and the starting point decides between them"
        )
    active = int(np.count_nonzero(voted.sum(1)))
    free = (size - 1) + active * size * (size - 1)
    if n_items < free:
        found.append(
            f"{n_items} items are too few to estimate {free} parameters; smoothing stabilises the estimates"
        )
    found += _on_raters(fit, voted, raters)
    found += [
        f"raters {raters[pair.first]!r} and {raters[pair.second]!r} give the same label on "
        f"{pair.agreement:.1%} of {pair.n_items} items, more than independent errors explain: if one copies "
        "the other, or both are the same model, the fit mistakes agreement for accuracy; exclude one of them"
        for pair in copying_pairs(patterns)
    ]
    empty = [categories[k] for k in np.flatnonzero(fit.support.sum(0) == 0).tolist()]
    if empty:
        found.append(
            f"no item belongs to {_join_names(empty)}; error rates of such classes are not estimated"
        )
    if not fit.converged:
        found.append(f"the fit did not converge in {fit.iterations} iterations; increase max_iterations")
    return tuple(found)


def _on_raters(fit: DawidSkeneFit, voted: Array, raters: Sequence[Any]) -> list[str]:
    """Warn about raters without votes, with one label, or whose interval of accuracy is below guessing."""
    size = voted.shape[1]
    silent = voted.sum(1) == 0
    constant = (np.count_nonzero(voted, axis=1) == 1) & (size > 1)
    seen = fit.support > 0
    right = np.diagonal(fit.confusion, axis1=1, axis2=2)
    expected = np.where(seen, fit.prior, 0.0)
    share = (right * expected).sum(1) / np.where(expected.sum(1) > 0, expected.sum(1), 1.0)
    n, z = voted.sum(1), normal_quantile(0.95)
    highest = [wilson_ends(one, max(k, 1), z)[1] for one, k in zip(share, n, strict=True)]
    worse = ~silent & ~constant & (np.array(highest) < 1 / size)
    named = (
        (silent, "have no votes: their confusion matrices are not estimated"),
        (constant, "always give the same label: their votes carry no information about the truth"),
        (worse, "are correct less often than a random guess: their labels, or the classes, may be swapped"),
    )
    found = []
    for which, what in named:
        names = [raters[place] for place in np.flatnonzero(which).tolist()]
        if names:
            found.append(f"raters {_join_names(names)} {what}")
    return found


def _join_names(names: Sequence[Any]) -> str:
    shown = ", ".join(repr(name) for name in names[:_NAMES_SHOWN])
    return shown if len(names) <= _NAMES_SHOWN else f"{shown} and {len(names) - _NAMES_SHOWN} more"
