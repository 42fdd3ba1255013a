"""Estimates paired by one set of resampled items."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.intervals import t_quantile, wilson_ends
from autorubric.metrics.core.resampling import Resampling, Units, interval_of, is_point, replicates, row_units
from autorubric.metrics.core.scales import Array

ComputeMany: TypeAlias = Callable[[Array], Array]
"""A function from sums of shape `(r, d)` to statistics of shape `(r, m)`; NaN if undefined."""


def estimate_over_items(
    sums: Array,
    compute: ComputeMany,
    resampling: Resampling,
    method: str,
    *,
    n: Sequence[int],
    reason: Reason,
) -> list[Estimate]:
    """Estimate each statistic with its percentile interval over resampled items; `sums` is `(n_items, d)`."""
    units, m = item_units(sums) if len(sums) else None, len(n)
    return estimate_over_units(units, compute, resampling, [method] * m, n=n, reasons=[reason] * m)


_MERGED_UP_TO = 128
"""Maximum number of sums per item for which identical items are merged; with more, sorting is too slow."""


def item_units(sums: Array) -> Units:
    """Return items as units; identical items become one unit with a count if that saves draws."""
    if sums.shape[1] > _MERGED_UP_TO:
        return row_units(sums, None)
    alike, first, counts = np.unique(sums, axis=0, return_index=True, return_counts=True)
    if 2 * len(alike) > len(sums):
        return row_units(sums, None)
    # First occurrence does not depend on the order of columns (judges, criteria).
    order = np.argsort(first)
    return Units(counts=counts[order].astype(np.int64), n=len(sums), sums=alike[order])


def estimate_over_units(
    units: Units | None,
    compute: ComputeMany,
    resampling: Resampling,
    methods: Sequence[str],
    *,
    n: Sequence[int],
    reasons: Sequence[Reason],
) -> list[Estimate]:
    """Estimate each statistic with its percentile interval over resampled units; undefined without units."""
    about = list(zip(methods, n, reasons, strict=True))
    if units is None:
        return [Estimate.undefined(reason, n=size, method=method) for method, size, reason in about]
    values = compute(units.total()[None, :])[0]
    if units.size < 2:
        return [
            Estimate.undefined(reason, n=size, method=method)
            if math.isnan(value)
            else Estimate(float(value), n=size, method=method, reason="too_few_units")
            for value, (method, size, reason) in zip(values, about, strict=True)
        ]
    drawn = replicates(units, compute, resampling.n_resamples, resampling.generator())
    text = resampling.describe(f"{units.size} items")
    return [
        estimate_of(float(value), drawn[:, at], resampling, f"{method}; {text}", n=size, reason=reason)
        for at, (value, (method, size, reason)) in enumerate(zip(values, about, strict=True))
    ]


def estimate_of(
    value: float, drawn: Array, resampling: Resampling, method: str, *, n: int, reason: Reason
) -> Estimate:
    """Return an estimate with the percentile interval of its resamples, unless they are all equal."""
    if math.isnan(value):
        return Estimate.undefined(reason, n=n, method=method)
    ends, undefined = interval_of(drawn, resampling)
    if ends.low is None or ends.high is None:
        return Estimate(value, n=n, method=method, reason="degenerate_resamples")
    text = f"{method}; undefined resamples: {undefined}" if undefined else method
    if is_point(ends.low, ends.high, value):
        return Estimate(value, n=n, method=text, reason="no_variance")
    return Estimate(value, *ends, n, text)


def with_t_interval(found: Estimate, n_units: int, confidence_level: float, bound: float) -> Estimate:
    """Return an estimate in [-bound, bound] with a t interval from its bootstrap standard error.

    Resamples of n units have the spread of n - 1 units, and percentiles also lack the width of t.
    """
    if found.value is None or found.low is None or not found.se or n_units < 2:
        return found
    se = found.se * math.sqrt(n_units / (n_units - 1))
    half = t_quantile(confidence_level, n_units - 1) * se
    method = found.method.replace("percentile bootstrap", "t with bootstrap standard error")
    low, high = max(found.value - half, -bound), min(found.value + half, bound)
    return replace(found, low=low, high=high, se=se, method=method)


def widen_at_bound(share: Estimate, n_units: int, confidence_level: float) -> Estimate:
    """Return a share that is 0 or 1 in every resample with the score interval of one observation per unit."""
    if share.value not in (0.0, 1.0) or n_units < 2 or share.reason != "no_variance":
        return share
    low, high = wilson_ends(share.value, n_units, t_quantile(confidence_level, n_units - 1))
    return replace(
        share, low=low, high=high, method=f"{share.method}; score interval (value 0 or 1)", reason=None
    )
