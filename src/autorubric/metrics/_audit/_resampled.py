"""Many figures from one set of resampled items, so that they are paired and the draws are paid for once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypedDict

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics._estimate import Estimate, Reason
from autorubric.metrics._estimation import DEGENERATE_SHARE
from autorubric.metrics._intervals import t_quantile, wilson_ends
from autorubric.metrics._rater_tables import row_units
from autorubric.metrics._resampling import Array, Units, replicates
from autorubric.metrics._scales import Codes

ComputeMany: TypeAlias = Callable[[Array], Array]
"""Sums of shape `(r, d)` to figures of shape `(r, m)`, NaN where undefined."""


class ResamplingArguments(TypedDict, total=False):
    """Keyword arguments of `Resampling`."""

    confidence_level: float
    n_resamples: int
    rng: int | np.random.Generator


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampling:
    """How intervals are made.

    Attributes:
        confidence_level: Level, in (0, 1).
        n_resamples: Resamples of items.
        rng: Seed or generator.
    """

    confidence_level: float = 0.95
    n_resamples: int = 1000
    rng: int | np.random.Generator = 0

    def __post_init__(self) -> None:
        if not 0.0 < self.confidence_level < 1.0:
            raise ArgumentError(f"confidence_level={self.confidence_level!r}; give a level between 0 and 1")
        if self.n_resamples < 1:
            raise ArgumentError(f"n_resamples={self.n_resamples!r}; give at least 1")

    def generator(self) -> np.random.Generator:
        """The generator to draw from: the same seed, the same draws."""
        return np.random.default_rng(self.rng)

    def fixed(self) -> Resampling:
        """The same with a seed: a generator would give later figures other draws than earlier ones."""
        if isinstance(self.rng, np.random.Generator):
            seed = int(self.rng.integers(2**31))
            return Resampling(confidence_level=self.confidence_level, n_resamples=self.n_resamples, rng=seed)
        return self


def resampled(
    sums: Array,
    compute: ComputeMany,
    resampling: Resampling,
    method: str,
    *,
    n: int | Sequence[int],
    reason: Reason,
) -> list[Estimate]:
    """Each figure with the percentile interval over resampled items.

    Args:
        sums: What each item contributes, shape `(n_items, d)`.
        compute: The figures as functions of the sums.
        resampling: How intervals are made.
        method: What was computed, in words.
        n: Observations, of all figures or of each.
        reason: Why a figure is undefined where it is.
    """
    m = compute(np.zeros((1, sums.shape[1]))).shape[1]
    sizes = [n] * m if isinstance(n, int) else list(n)
    units = units_of(sums) if len(sums) else None
    return resampled_units(units, compute, resampling, [method] * m, n=sizes, reasons=[reason] * m)


_MERGED_UP_TO = 128
"""Items of more sums than these are hardly ever alike, and sorting them costs more than it saves."""


def units_of(sums: Array) -> Units:
    """Items as units, those that contribute alike as one with a count where that saves draws."""
    if sums.shape[1] > _MERGED_UP_TO:
        return row_units(sums, None)
    alike, counts = np.unique(sums, axis=0, return_counts=True)
    if 2 * len(alike) > len(sums):
        return row_units(sums, None)
    return Units(counts=counts.astype(np.int64), n=len(sums), sums=alike)


def resampled_units(
    units: Units | None,
    compute: ComputeMany,
    resampling: Resampling,
    methods: Sequence[str],
    *,
    n: Sequence[int],
    reasons: Sequence[Reason],
) -> list[Estimate]:
    """Each figure with the percentile interval over resampled units; all undefined without units."""
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
    text = (
        f"percentile bootstrap, {resampling.confidence_level:.0%}, {units.size} items, "
        f"{resampling.n_resamples} resamples"
    )
    return [
        estimate_of(float(value), drawn[:, at], resampling, f"{method}; {text}", n=size, reason=reason)
        for at, (value, (method, size, reason)) in enumerate(zip(values, about, strict=True))
    ]


def estimate_of(
    value: float, drawn: Array, resampling: Resampling, method: str, *, n: int, reason: Reason
) -> Estimate:
    """A figure with the percentile interval of its values in resamples."""
    if math.isnan(value):
        return Estimate.undefined(reason, n=n, method=method)
    defined = drawn[~np.isnan(drawn)]
    undefined = len(drawn) - len(defined)
    if undefined > DEGENERATE_SHARE * len(drawn):
        return Estimate(value, n=n, method=method, reason="degenerate_resamples")
    tail = (1 - resampling.confidence_level) / 2
    low, high = np.quantile(defined, (tail, 1 - tail))
    se = float(defined.std(ddof=1)) if len(defined) > 1 else None
    text = f"{method}, {undefined} of them undefined" if undefined else method
    return Estimate(value, float(low), float(high), se, n, text)


def ratio(numerator: Array, denominator: Array) -> Array:
    """The quotient, NaN where the denominator is not above 0."""
    there = denominator > 0
    return np.where(there, numerator / np.where(there, denominator, 1.0), np.nan)


def mean_of_defined(values: Array, axis: int = -1) -> Array:
    """Mean over what is defined, NaN where nothing is."""
    there = ~np.isnan(values)
    return ratio(np.where(there, values, 0.0).sum(axis), there.sum(axis).astype(float))


def by_item_and_criterion(values: Array, item: Codes, criterion: Codes, shape: tuple[int, int]) -> Array:
    """Sums of cells' values by item and criterion, shape `(n_items, n_criteria)`; NaN counts as nothing."""
    flat = np.bincount(
        item * shape[1] + criterion,
        weights=np.where(np.isnan(values), 0.0, values),
        minlength=shape[0] * shape[1],
    )
    return flat.reshape(shape)


def mean_estimate(values: Array, item: Codes, confidence_level: float, method: str) -> Estimate:
    """The mean of cells with a t interval over items, C - 1 degrees of freedom."""
    there = ~np.isnan(values)
    kept, members = values[there], np.unique(item[there], return_inverse=True)[1].reshape(-1)
    text = f"{method}; t over items, {confidence_level:.0%}"
    if not len(kept):
        return Estimate.undefined("no_pairs", method=text)
    mean, effects = influences(kept, members)
    if len(effects) < 2:
        return Estimate(mean, n=len(kept), method=text, reason="too_few_units")
    se = clustered_error(effects)
    half = t_quantile(confidence_level, len(effects) - 1) * se
    return Estimate(mean, mean - half, mean + half, se, len(kept), text)


def influences(values: Array, members: Codes) -> tuple[float, Array]:
    """The mean, and what each cluster's deviations add to it, shape `(n_clusters,)`."""
    mean = float(values.mean())
    return mean, np.bincount(members, weights=values - mean) / len(values)


def clustered_error(effects: Array) -> float:
    """Standard error of a mean from the effects of its clusters, with the factor C / (C - 1)."""
    size = len(effects)
    return math.sqrt(float((effects**2).sum()) * size / (size - 1))


def not_a_point(share: Estimate, n_units: int, confidence_level: float) -> Estimate:
    """A share that no resample moves from 0 or 1, with the score interval of one observation a unit."""
    if share.value not in (0.0, 1.0) or n_units < 2 or share.low != share.high:
        return share
    ends = wilson_ends(share.value, n_units, t_quantile(confidence_level, n_units - 1))
    return replace(share, low=ends[0], high=ends[1], method=f"{share.method}; score interval at the edge")
