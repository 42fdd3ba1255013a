"""Reliability of a total over criteria: Cronbach's alpha and alpha stratified by the rubric's groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autorubric.metrics._audit._resampled import ratio, resampled
from autorubric.metrics._estimate import Estimate
from autorubric.metrics._icc import cronbach_alpha
from autorubric.metrics._options import Resampling
from autorubric.metrics._resampling import Array

_METHOD = "stratified alpha, groups of the rubric as strata"


def alpha_of(values: Array, *, confidence_level: float = 0.95, interval: bool = True) -> Estimate:
    """Estimate Cronbach's alpha over columns with any value; items that lack a value are excluded."""
    answered = ~np.isnan(values).all(axis=0)
    if interval:
        return cronbach_alpha(values[:, answered], confidence_level=confidence_level)
    return cronbach_alpha(values[:, answered], ci=None)


def stratified_alpha(values: Array, strata: Sequence[str], resampling: Resampling) -> Estimate:
    """Estimate 1 - Σ_g σ²_g (1 - α_g) / σ²_T over groups of criteria, where σ² are variances of sums.

    The alpha of a group with one criterion is taken as 0.
    """
    answered = np.asarray(~np.isnan(values).all(axis=0))
    kept = values[:, answered]
    rows = kept[~np.isnan(kept).any(axis=1)]
    named = [name for name, there in zip(strata, answered, strict=True) if there]
    groups = list(dict.fromkeys(named))
    if len(groups) < 2 or len(groups) == len(named):
        return Estimate.undefined("not_comparable", n=len(rows), method=_METHOD)
    size = rows.shape[1]
    centred = rows - rows.mean(0) if len(rows) else rows
    products = (centred[:, :, None] * centred[:, None, :]).reshape(len(rows), size * size)
    sums = np.column_stack([np.ones(len(rows)), centred, products])
    members = [np.array([name == group for name in named]) for group in groups]

    def compute(totals: Array) -> Array:
        n, first = totals[:, 0], totals[:, 1 : 1 + size]
        safe = np.maximum(n, 1.0)[:, None, None]
        covariance = (
            totals[:, 1 + size :].reshape(-1, size, size) - first[:, :, None] * first[:, None, :] / safe
        )
        unexplained = np.zeros(len(totals))
        for member in members:
            part = covariance[:, member][:, :, member]
            whole, own = part.sum((1, 2)), np.trace(part, axis1=1, axis2=2)
            m = int(member.sum())
            # σ² (1 - α) with α = m / (m - 1) (1 - own / whole).
            unexplained += whole if m < 2 else whole - m / (m - 1) * (whole - own)
        return (1 - ratio(unexplained, covariance.sum((1, 2))))[:, None]

    return resampled(sums, compute, resampling, _METHOD, n=len(rows), reason="no_variance")[0]
