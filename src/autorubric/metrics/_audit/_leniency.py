"""How far a judge lies above the truth."""

from __future__ import annotations

from typing import cast

import numpy as np
from scipy.special import stdtr

from autorubric.metrics._audit._bias_results import TestedBias
from autorubric.metrics._audit._resampled import mean_estimate
from autorubric.metrics._audit._valued import Valued
from autorubric.metrics._estimate import Estimate, Reason
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Codes

PASS_FROM = 0.5


def leniency(valued: Valued, judge: int, confidence_level: float) -> TestedBias:
    """Mean of judge minus truth."""
    apart = valued.value[:, judge] - valued.truth
    return tested_mean(apart, valued.item, confidence_level, "judge - truth", valued.reason)


def pass_rate_difference(valued: Valued, judge: int, confidence_level: float) -> TestedBias:
    """Share of passes of the judge minus that of the truth."""
    both = ~np.isnan(valued.value[:, judge] - valued.truth)
    passes = (valued.value[:, judge] >= PASS_FROM).astype(float) - (valued.truth >= PASS_FROM)
    apart = np.where(both, passes, np.nan)
    return tested_mean(apart, valued.item, confidence_level, "pass rates, judge - truth", valued.reason)


def tested_mean(values: Array, item: Codes, confidence_level: float, method: str, reason: str) -> TestedBias:
    """A mean over cells with its t test over items; none where all items say the same (`no_variance`)."""
    there = ~np.isnan(values)
    if not there.any():
        return TestedBias(effect=Estimate.undefined(cast("Reason", reason), method=method))
    effect = mean_estimate(values, item, confidence_level, method)
    n_items = len(np.unique(item[there]))
    return TestedBias(effect=effect, p_value=t_p_value(effect, n_items - 1))


def t_p_value(effect: Estimate, df: float) -> float | None:
    """Two-sided p of an effect from its standard error; None without one."""
    if effect.value is None or not effect.se:
        return None
    return float(2 * stdtr(df, -abs(effect.value / effect.se)))
