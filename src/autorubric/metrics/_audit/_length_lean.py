"""Length bias: whether a judge's errors increase with text length, given the truth."""

from __future__ import annotations

from typing import cast

import numpy as np

from autorubric.metrics._audit._bias_results import TestedBias
from autorubric.metrics._audit._item_order import order_by_id
from autorubric.metrics._audit._resampled import resampled_units
from autorubric.metrics._audit._valued import Valued
from autorubric.metrics._correlation import correlation_p_value, correlation_test
from autorubric.metrics._estimate import Estimate, Reason
from autorubric.metrics._options import Resampling
from autorubric.metrics._ranks import Ranked, spearman_of
from autorubric.metrics._rater_tables import weighted_units
from autorubric.metrics._resampling import Array, Compute

_METHOD = "partial Spearman of error and length, given truth"


def length_lean(valued: Valued, judge: int, lengths: Array, resampling: Resampling) -> TestedBias:
    """Estimate the partial rank correlation of mean error and length over items, given the mean truth."""
    errors = valued.value[:, judge] - valued.truth
    there = ~np.isnan(errors)
    counts = np.bincount(valued.item[there], minlength=valued.n_items)
    rated = (counts > 0) & ~np.isnan(lengths)
    if not rated.any():
        reason = "no_text" if there.any() and np.isnan(lengths).all() else valued.reason
        return TestedBias(effect=Estimate.undefined(cast("Reason", reason), method=_METHOD))
    drawn = order_by_id(valued.item_ids)
    drawn = drawn[rated[drawn]]
    error, truth = (
        np.bincount(valued.item[there], weights=column[there], minlength=valued.n_items)[drawn]
        / counts[drawn]
        for column in (errors, valued.truth)
    )
    effect = _partial(error, lengths[drawn], truth, resampling)
    if effect.value is None:
        return TestedBias(effect=effect)
    # Controlling for the truth costs one degree of freedom, so t has n - 3.
    p_value = correlation_p_value(effect.value, effect.n - 1)
    return TestedBias(effect=effect, p_value=p_value, test=correlation_test(effect.value, effect.n - 1))


def _spearman(a: Array, b: Array) -> Compute:
    """Return Spearman's rho of two columns as a function of row weights."""
    (seen_a, x), (seen_b, y) = (np.unique(column, return_inverse=True) for column in (a, b))
    shape = (len(seen_a), len(seen_b))
    units = weighted_units(len(a), None)
    return spearman_of(Ranked(x.reshape(-1), y.reshape(-1), shape, False, units))


def _partial(error: Array, length: Array, truth: Array, resampling: Resampling) -> Estimate:
    n = len(error)
    # Rounding makes equal means ties.
    error, truth = np.round(error, 12), np.round(truth, 12)

    rhos = [_spearman(a, b) for a, b in ((error, length), (error, truth), (length, truth))]

    def compute(weights: Array) -> Array:
        with_length, with_truth, between = (rho(weights) for rho in rhos)
        # A truth that does not vary explains nothing.
        constant = np.isnan(with_truth) | np.isnan(between)
        with_truth, between = (np.where(constant, 0.0, one) for one in (with_truth, between))
        left = (1 - with_truth**2) * (1 - between**2)
        room = left > 1e-12
        partial = (with_length - with_truth * between) / np.sqrt(np.where(room, left, 1.0))
        return np.clip(np.where(room, partial, np.nan), -1.0, 1.0)[:, None]

    reason: Reason = "too_few_units" if n < 4 else "no_variance"
    if n < 4:
        return Estimate.undefined(reason, n=n, method=_METHOD)
    return resampled_units(weighted_units(n, None), compute, resampling, [_METHOD], n=[n], reasons=[reason])[
        0
    ]
