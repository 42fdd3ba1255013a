"""Sensitivity of the order of the items to the rubric's weights."""

from __future__ import annotations

import numpy as np

from autorubric.metrics._audit._item_results import WeightSensitivity
from autorubric.metrics._audit._rubric_weights import item_scores_under
from autorubric.metrics._correlation import kendall_tau_b
from autorubric.metrics._estimate import Estimate
from autorubric.metrics._intervals import wilson
from autorubric.metrics._options import Resampling
from autorubric.metrics._resampling import Array

_TAU = "Kendall's tau-b with the scores under"
_TIED = 1e-12


def weight_sensitivity(
    values: Array, weights: Array, spread: float, n_draws: int, resampling: Resampling
) -> WeightSensitivity:
    """Compare item scores with those under weights multiplied by e^(spread z), with z standard normal."""
    size = values.shape[1]
    scores = item_scores_under(values, weights, np.ones((size, 1)))[:, 0]
    drawn = np.exp(spread * resampling.generator().standard_normal((size, n_draws)))
    perturbed = item_scores_under(values, weights, drawn)
    taus = np.array([_tau(scores, column).value for column in perturbed.T], dtype=float)
    return WeightSensitivity(
        spread=spread,
        tau=_summary(taus, scores, resampling),
        top_kept=_top_kept(scores, perturbed),
        n_draws=n_draws,
    )


def _summary(taus: Array, scores: Array, resampling: Resampling) -> Estimate:
    tail = (1 - resampling.confidence_level) / 2
    method = f"{_TAU} perturbed weights; quantiles of draws, {resampling.confidence_level:.0%}"
    n, defined = int(np.count_nonzero(~np.isnan(scores))), taus[~np.isnan(taus)]
    if not len(defined):
        return Estimate.undefined("too_few_units" if n < 2 else "no_variance", n=n, method=method)
    low, high = np.quantile(defined, (tail, 1 - tail))
    return Estimate(float(defined.mean()), float(low), float(high), None, n, method)


def _top_kept(scores: Array, perturbed: Array) -> Estimate:
    there = ~np.isnan(scores)
    if np.count_nonzero(there) < 2 or not perturbed.shape[1]:
        return Estimate.undefined(
            "too_few_units", n=int(np.count_nonzero(there)), method="first item stays first"
        )
    first = scores[there] >= scores[there].max() - _TIED
    still = perturbed[there] >= perturbed[there].max(0) - _TIED
    return wilson(int((still & first[:, None]).any(0).sum()), perturbed.shape[1])


def tau_without(values: Array, weights: Array, criterion: int) -> Estimate:
    """Compute Kendall's tau-b between the item scores with and without one criterion."""
    size = values.shape[1]
    keep = np.ones((size, 2))
    keep[criterion, 1] = 0.0
    scores = item_scores_under(values, weights, keep)
    return _tau(scores[:, 0], scores[:, 1])


def _tau(scores: Array, others: Array) -> Estimate:
    # Rounding makes scores equal that differ only by the order of summation.
    return kendall_tau_b(np.round(scores, 12), np.round(others, 12), ci=None)
