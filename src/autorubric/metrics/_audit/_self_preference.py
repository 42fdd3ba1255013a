"""Self-preference: whether a judge favours texts of its own family more than other judges do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np

from autorubric.metrics._audit._bias_results import TestedBias
from autorubric.metrics._audit._resampled import clustered_error, influences
from autorubric.metrics._audit._valued import Valued
from autorubric.metrics._estimate import Estimate, Reason
from autorubric.metrics._intervals import t_quantile
from autorubric.metrics._resampling import Array
from autorubric.metrics._rounding import is_rounding
from autorubric.metrics._scales import Codes

_PREFERENCE = "judge - judges of other families, own family's texts - other texts"
_ERROR = "judge - truth, own family's texts - other texts"


def self_preference(
    valued: Valued, judge: int, others: Sequence[int], by_own: Array, confidence_level: float
) -> TestedBias:
    """Estimate self-preference as a difference in differences relative to judges of other families."""
    if not others:
        reason = "no_generator" if np.isnan(by_own).all() else "one_judge"
        return TestedBias(effect=Estimate.undefined(cast("Reason", reason), method=_PREFERENCE))
    rest = valued.value[:, list(others)]
    there = ~np.isnan(rest)
    mean = np.where(there, rest, 0.0).sum(1) / np.where(there.any(1), there.sum(1), np.nan)
    return _contrast(valued.value[:, judge] - mean, valued.item, by_own, confidence_level, _PREFERENCE)


def own_error_difference(valued: Valued, judge: int, by_own: Array, confidence_level: float) -> TestedBias:
    """Estimate the difference in errors between texts of the judge's own family and other texts."""
    errors = valued.value[:, judge] - valued.truth
    if np.isnan(valued.truth).all():
        return TestedBias(effect=Estimate.undefined("no_truth", method=_ERROR))
    return _contrast(errors, valued.item, by_own, confidence_level, _ERROR)


def _contrast(values: Array, item: Codes, by_own: Array, confidence_level: float, method: str) -> TestedBias:
    """Estimate the mean over own texts minus that over other texts, with Welch's t over items."""
    text = f"{method}; Welch's t over items, {confidence_level:.0%}"
    if np.isnan(by_own).all():
        return TestedBias(effect=Estimate.undefined("no_generator", method=text))
    kind = np.where(np.isnan(values), np.nan, by_own[item])
    n = int(np.count_nonzero(~np.isnan(kind)))
    groups = [np.flatnonzero(kind == which) for which in (1.0, 0.0)]
    if not all(len(group) for group in groups):
        return TestedBias(effect=Estimate.undefined("no_pairs", n=n, method=text))
    (own, own_effects), (other, other_effects) = (
        influences(values[group], np.unique(item[group], return_inverse=True)[1].reshape(-1))
        for group in groups
    )
    difference = own - other
    if min(len(own_effects), len(other_effects)) < 2:
        return TestedBias(effect=Estimate(difference, n=n, method=text, reason="too_few_units"))
    errors = [clustered_error(effects) for effects in (own_effects, other_effects)]
    se = math.hypot(*errors)
    if is_rounding(se, float(np.nanmax(np.abs(values)))):
        return TestedBias(effect=Estimate(difference, n=n, method=text, reason="no_variance"))
    sizes = (len(own_effects), len(other_effects))
    parts = sum(error**4 / (size - 1) for error, size in zip(errors, sizes, strict=True))
    df = se**4 / parts if parts > 0 else float(min(sizes) - 1)
    half = t_quantile(confidence_level, df) * se
    effect = Estimate(difference, difference - half, difference + half, se, n, text)
    return TestedBias.by_t(effect, df)
