"""Correlations of judges' errors, within criteria, and how many independent judges they amount to."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from autorubric.metrics._audit._decided import Decided
from autorubric.metrics._audit._panel_results import ErrorCorrelation
from autorubric.metrics._audit._resampled import (
    Resampling,
    by_item_and_criterion,
    mean_of_defined,
    ratio,
    resampled,
)
from autorubric.metrics._estimate import Estimate, Reason
from autorubric.metrics._resampling import Array

_RELATIVE_ZERO = 1e-12
_PARTS = 6


def error_correlations(
    decided: Decided, resampling: Resampling
) -> tuple[tuple[ErrorCorrelation, ...], Estimate, Estimate]:
    """Error correlations of all pairs of judges, their mean, and the effective number of judges."""
    errors, k = decided.errors, len(decided.judges)
    pairs = list(combinations(range(k), 2))
    reason: Reason = "one_judge" if k < 2 else "no_variance" if decided.labelled.any() else "no_truth"
    method = "correlation of errors within criteria"
    if not pairs or not len(errors):
        nothing = Estimate.undefined("one_judge" if k < 2 else "no_truth", method=method)
        return tuple(_nothing(decided, pair, nothing) for pair in pairs), nothing, nothing
    sums = np.concatenate([_sums(decided, errors[:, a], errors[:, b]) for a, b in pairs], axis=1)
    n_criteria = len(decided.names)

    def compute(totals: Array) -> Array:
        parts = totals.reshape(len(totals), len(pairs), _PARTS, n_criteria)
        pooled, each = _correlations(parts)
        mean = mean_of_defined(pooled)
        kish = ratio(np.full(len(totals), float(k)), np.where(np.isnan(mean), 0.0, 1 + (k - 1) * mean))
        flat = each.reshape(len(totals), -1)
        return np.column_stack([mean, kish, pooled, flat])

    counts = sums.sum(0).reshape(len(pairs), _PARTS, n_criteria)[:, 0, :].astype(int)
    used = int(counts.sum(1).max(initial=0))
    sizes = [used, used, *counts.sum(1).tolist(), *counts.reshape(-1).tolist()]
    found = resampled(sums, compute, resampling, method, n=sizes, reason=reason)
    mean, kish = found[:2]
    pooled, each = found[2 : 2 + len(pairs)], found[2 + len(pairs) :]
    named = tuple(
        ErrorCorrelation(
            first=decided.judges[a],
            second=decided.judges[b],
            pooled=pooled[at],
            per_criterion={
                name: each[at * n_criteria + place]
                for place, name in enumerate(decided.names)
                if name not in decided.left_out
            },
        )
        for at, (a, b) in enumerate(pairs)
    )
    return named, mean, kish


def _nothing(decided: Decided, pair: tuple[int, int], nothing: Estimate) -> ErrorCorrelation:
    first, second = (decided.judges[at] for at in pair)
    return ErrorCorrelation(first=first, second=second, pooled=nothing, per_criterion={})


def _sums(decided: Decided, a: Array, b: Array) -> Array:
    """Per item and criterion n, Σa, Σb, Σab, Σa², Σb² where both are there, shape `(n_items, 6 C)`."""
    both = ~(np.isnan(a) | np.isnan(b))
    shape = (len(decided.item_ids), len(decided.names))
    parts = (np.ones(len(a)), a, b, a * b, a * a, b * b)
    return np.concatenate(
        [
            by_item_and_criterion(np.where(both, part, np.nan), decided.item, decided.criterion, shape)
            for part in parts
        ],
        axis=1,
    )


def _correlations(parts: Array) -> tuple[Array, Array]:
    """Pooled and each criterion's correlation, shapes `(r, pairs)` and `(r, pairs, n_criteria)`."""
    n, a, b, ab, aa, bb = (parts[:, :, at, :] for at in range(_PARTS))
    safe = np.where(n > 0, n, 1.0)
    product, first, second = ab - a * b / safe, aa - a * a / safe, bb - b * b / safe
    first = np.where(first <= _RELATIVE_ZERO * np.maximum(aa, 1.0), 0.0, first)
    second = np.where(second <= _RELATIVE_ZERO * np.maximum(bb, 1.0), 0.0, second)
    each = ratio(product, np.sqrt(first * second))
    pooled = ratio(product.sum(-1), np.sqrt(first.sum(-1) * second.sum(-1)))
    return np.clip(pooled, -1.0, 1.0), np.clip(each, -1.0, 1.0)
