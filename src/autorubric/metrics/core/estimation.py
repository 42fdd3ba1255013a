"""Computation of estimates and their intervals from a metric and its sampling units."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import ndtr, ndtri

from autorubric.errors import ArgumentError
from autorubric.metrics.core.contingency import divide
from autorubric.metrics.core.estimate import Estimate, Reason, is_rounding
from autorubric.metrics.core.intervals import (
    expanded_tail,
    logit_t_ends,
    normal_quantile,
    t_quantile,
    wilson_ends,
)
from autorubric.metrics.core.resampling import (
    NO_ENDS,
    CiMethod,
    Compute,
    Ends,
    IntervalOptions,
    Units,
    influence,
    interval_of,
    intervals_of,
    is_point,
    jackknife,
    replicates_of_each,
    standard_error,
)
from autorubric.metrics.core.scales import Array

FEWEST_CLUSTERS = 12
"""Smallest number of clusters with which the smoothed bootstrap has a coverage of at least .93 at a
confidence level of .95, as measured by `benchmarks.clustered_kappa`."""

Analytic: TypeAlias = Callable[["Figure", Units, float, float], Ends]
"""A function from (metric, units, value, confidence level) to the limits of an interval in closed form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A metric as a function of sums over units, with the settings of its intervals."""

    name: str
    # Function from sums of shape `(..., d)` to values of shape `(...)`. It returns NaN for undefined values
    # and emits no warnings.
    compute: Compute
    reason: Callable[[Array], Reason]
    bounds: tuple[float, float] = (-1.0, 1.0)
    auto: CiMethod = "smoothed"  # method used for `ci="auto"`
    auto_clustered: CiMethod | None = None  # the same if the units are clusters; None means `auto`
    # function that computes the interval in closed form; None for metrics without such an interval
    analytic: Analytic | None = None
    # function from sums to the denominator of a proportion; None for other metrics
    trials: Compute | None = None
    # whether units can be smoothed: their sums are cells of a table, or `Units.prior` is set
    on_table: bool = True


def estimate(
    figure: Figure, units: Units, options: IntervalOptions, *, n_missing: int = 0, note: str = ""
) -> Estimate:
    """Compute the metric over the units, with the interval requested in the options."""
    return estimates_of_each([figure], [units], options, n_missing=[n_missing], notes=[[note]])[0][0]


def estimates_of_each(
    figures: Sequence[Figure],
    batch: Sequence[Units],
    options: IntervalOptions,
    *,
    n_missing: Sequence[int],
    notes: Sequence[Sequence[str]] = (),
) -> list[list[Estimate]]:
    """Compute metrics over each of several sets of units, all clustered or not, with sums of the same shape.

    The metrics of a set use the same resamples.
    """
    methods = [_method(figure, batch[0], options) for figure in figures] if batch else []
    given = np.array([units.n > 0 for units in batch], dtype=bool)
    values = np.full((len(figures), len(batch)), np.nan)
    if given.any():
        totals = np.stack([units.total() for units in batch])
        for at, figure in enumerate(figures):
            values[at] = np.where(given, figure.compute(totals), np.nan)
    drawn = _draw_values(figures, batch, options, methods, values)
    intervals = intervals_of(list(drawn.values()), options)
    resampled = {at: (row, found) for (at, row), found in zip(drawn.items(), intervals, strict=True)}
    notes = notes or [[""] * len(figures)] * len(batch)
    return [
        [
            _estimate(
                figure,
                f"{figure.name} ({note})" if note else figure.name,
                units,
                options,
                float(values[at, place]),
                resampled.get((at, place)),
                n_missing[place],
            )
            for at, (figure, note) in enumerate(zip(figures, notes[place], strict=True))
        ]
        for place, units in enumerate(batch)
    ]


def _draw_values(
    figures: Sequence[Figure],
    batch: Sequence[Units],
    options: IntervalOptions,
    methods: Sequence[CiMethod],
    values: Array,
) -> dict[tuple[int, int], Array]:
    """Return each metric's values in the resamples, by the positions of the metric and the units."""
    drawn: dict[tuple[int, int], Array] = {}
    wanted = ~np.isnan(values) & [units.size > 1 for units in batch]
    for smooth in (True, False) if options.ci is not None else ():
        group = [at for at, method in enumerate(methods) if (method == "smoothed") == smooth]
        group = [at for at in group if methods[at] != "analytic" and wanted[at].any()]
        if not group:
            continue
        computes = [figures[at].compute for at in group]

        def compute(sums: Array, computes: Sequence[Compute] = computes) -> Array:
            return np.stack([one(sums) for one in computes])

        places = np.flatnonzero(wanted[group].any(0)).tolist()
        on_tables = all(figures[at].on_table for at in group)
        rows = replicates_of_each([batch[at] for at in places], compute, options, smooth, on_tables)
        drawn |= {
            (at, place): rows[i, j]
            for i, at in enumerate(group)
            for j, place in enumerate(places)
            if wanted[at, place]
        }
    return drawn


def _method(figure: Figure, units: Units, options: IntervalOptions) -> CiMethod:
    auto = (figure.auto_clustered if units.clustered else None) or figure.auto
    method: CiMethod = auto if options.ci in ("auto", None) else options.ci
    if method == "smoothed" and not figure.on_table:
        raise ArgumentError(
            f"ci='smoothed' needs a finite number of categories, unlike {figure.name}; use ci='percentile'"
        )
    return method


def _estimate(
    figure: Figure,
    name: str,
    units: Units,
    options: IntervalOptions,
    value: float,
    resampled: tuple[Array, tuple[Ends, int]] | None,
    n_missing: int,
) -> Estimate:
    """Return the estimate from the value, its resamples and their `interval_of` (None if it has none)."""
    if math.isnan(value):
        reason: Reason | None = figure.reason(units.total()) if units.n else "no_pairs"
        return Estimate(None, n=units.n, method=name, reason=reason, n_missing=n_missing)
    if options.ci is None:
        return Estimate(value, n=units.n, method=name, n_missing=n_missing)
    method, size = _method(figure, units, options), units.size
    what = f"{size} clusters" if units.clustered else f"{size} units"
    undefined = 0
    if method == "analytic":
        if figure.analytic is None:
            raise ArgumentError(f"{figure.name} has no analytic interval; use ci='percentile'")
        ends = figure.analytic(figure, units, value, options.confidence_level)
        text = f"{name}; analytic, {options.confidence_level:.0%}, {what}"
    else:
        drawn, (ends, undefined) = resampled or (None, (NO_ENDS, 0))
        if drawn is not None and method == "smoothed" and units.clustered:
            ends, undefined = _smoothed_over_clusters(figure, units, options, value, drawn)
        elif drawn is not None and method == "bca":
            quantiles = bca_quantiles(drawn, value, units, figure.compute, options.confidence_level)
            ends = interval_of(drawn, options, quantiles=quantiles)[0] if quantiles else NO_ENDS
        text = f"{name}; {options.describe(what, method)}"
    if undefined:
        text += f"; undefined resamples: {undefined}"
    if method == "smoothed" and units.clustered and size < FEWEST_CLUSTERS:
        text += f"; warning: with fewer than {FEWEST_CLUSTERS} clusters, coverage may be below nominal"
    reason = None
    if ends.low is None:
        reason = "degenerate_resamples" if undefined else "too_few_units"
    elif ends.high is not None and is_point(ends.low, ends.high, value):
        # Identical units carry no information about unobserved units.
        ends, reason = NO_ENDS, "no_variance"
    return Estimate(value, *ends, units.n, text, reason, n_missing)


def _smoothed_over_clusters(
    figure: Figure, units: Units, options: IntervalOptions, value: float, drawn: Array
) -> tuple[Ends, int]:
    """Return the interval and the number of undefined resamples, as `interval_of` does."""
    tail = expanded_tail(options.confidence_level, _degrees_of_freedom(figure, units))
    (low, high, se), undefined = interval_of(drawn, options, quantiles=(tail, 1 - tail))
    if low is not None and high is not None:
        # The added cluster shifts the draws: neither limit is closer to the value than to their median.
        shift = value - float(np.nanmedian(drawn))
        low = max(figure.bounds[0], low + min(shift, 0.0))
        high = min(figure.bounds[1], high + max(shift, 0.0))
    return Ends(low, high, se), undefined


def _degrees_of_freedom(figure: Figure, units: Units) -> float:
    """Return 2C / (k - (C - 3)/(C - 1)) for kurtosis k of the effects of C clusters, between 1 and C - 1.

    See B. O'Neill (2014), The American Statistician 68(4). Effects without closed form have C - 1.
    """
    n = units.size
    if figure.analytic is not delta:
        return n - 1
    effects = influence(units, figure.compute)
    spread = float((units.counts * effects**2).sum())
    if is_rounding(math.sqrt(spread)):
        return n - 1
    kurtosis = n * float((units.counts * effects**4).sum()) / spread**2
    return min(n - 1.0, max(1.0, 2 * n / (kurtosis - (n - 3) / (n - 1))))


def bca_quantiles(
    drawn: Array, value: float, units: Units, compute: Compute, confidence_level: float
) -> tuple[float, float] | None:
    """Return quantile levels corrected for bias and acceleration (Efron 1987); None if they are undefined."""
    drawn = drawn[~np.isnan(drawn)]
    left_out = jackknife(units, compute)
    counts = np.where(np.isnan(left_out), 0, units.counts)
    if counts.sum() < 2 or not len(drawn):
        return None
    kept, left_out = counts[counts > 0], left_out[counts > 0]
    deviation = np.average(left_out, weights=kept) - left_out
    spread = float((kept * deviation**2).sum())
    acceleration = float((kept * deviation**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0
    # Half of the ties count as below; otherwise an unbiased discrete metric would look biased.
    below = float(np.mean((drawn < value) + 0.5 * (drawn == value)))
    bias = float(ndtri(min(max(below, 0.5 / len(drawn)), 1 - 0.5 / len(drawn))))
    quantile = normal_quantile(confidence_level)
    shifted = [bias + (bias + z) / (1 - acceleration * (bias + z)) for z in (-quantile, quantile)]
    low, high = (float(ndtr(z)) for z in shifted)
    return low, high


def _delta_se(figure: Figure, units: Units) -> float | None:
    n_units = units.size
    if n_units < 2:
        return None
    effects = influence(units, figure.compute)
    variance = float((units.counts * effects**2).sum())
    return math.sqrt(variance * (n_units / (n_units - 1) if units.clustered else 1.0))


def _delta_quantile(units: Units, confidence_level: float) -> float:
    return (
        t_quantile(confidence_level, units.size - 1) if units.clustered else normal_quantile(confidence_level)
    )


def delta(figure: Figure, units: Units, value: float, confidence_level: float) -> Ends:
    """Compute the large-sample interval by the delta method, truncated at the bounds; clusters use t."""
    se = _delta_se(figure, units)
    if se is None:
        return NO_ENDS
    quantile = _delta_quantile(units, confidence_level)
    low, high = figure.bounds
    return Ends(max(low, value - quantile * se), min(high, value + quantile * se), se)


def proportion(figure: Figure, units: Units, value: float, confidence_level: float) -> Ends:
    """Compute Wilson's interval with the proportion's denominator or, with clusters, `logit_t`."""
    if units.clustered:
        return logit_t(figure, units, value, confidence_level)
    trials = float(figure.trials(units.total()[None, :])[0]) if figure.trials else float(units.n)
    low, high = wilson_ends(value, trials, normal_quantile(confidence_level))
    return Ends(low, high, math.sqrt(value * (1 - value) / trials))


def ratio_figure(
    name: str, analytic: Analytic, *, reason: Reason = "no_pairs", trials: Compute | None = None
) -> Figure:
    """Return the ratio of the first sum to the second, which is in [0, 1]."""
    return Figure(
        name=name,
        compute=lambda sums: divide(sums[..., 0], sums[..., 1]),
        reason=lambda sums: reason,
        bounds=(0.0, 1.0),
        auto="analytic",
        analytic=analytic,
        trials=trials,
        on_table=False,
    )


def logit_t(figure: Figure, units: Units, value: float, confidence_level: float) -> Ends:
    """Compute the logit-t interval of a proportion over the two or more units in its denominator."""
    held = units.counts
    if figure.trials is not None and units.sums is not None:
        held = np.where(figure.trials(units.sums) > 0, units.counts, 0)
    size = int(held.sum())
    if size < 2:
        return NO_ENDS
    se = standard_error(influence(units, figure.compute), size, units.counts)
    return Ends(*logit_t_ends(value, se, size, confidence_level), se)


def effective_score(figure: Figure, units: Units, value: float, confidence_level: float) -> Ends:
    """Compute the score interval with the effective number of units; half a unit of 0 and of 1 are added."""
    size = units.size
    if units.sums is None or size < 2:
        return NO_ENDS
    # Units that happen to be equal do not show how units vary.
    added = np.array([[0.0, 1.0], [1.0, 1.0]]) * units.n / size
    sums, weights = np.vstack([units.sums, added]), np.append(units.counts, (0.5, 0.5))
    total, n = weights @ sums
    variance = weights @ (sums @ (1, -total / n)) ** 2 / units.n**2
    ends = wilson_ends(value, total / n * (1 - total / n) / variance, t_quantile(confidence_level, size - 1))
    return Ends(*ends, standard_error(influence(units, figure.compute), size, units.counts))


def fisher_z(variance: Callable[[float, int], float | None]) -> Analytic:
    """Return a function that computes intervals on Fisher's z scale from the variance of z at (value, n)."""

    def ends(figure: Figure, units: Units, value: float, confidence_level: float) -> Ends:
        if units.clustered:
            raise ArgumentError(f"{figure.name} has no analytic interval for clusters; use ci='percentile'")
        of_z = variance(value, units.n)
        if of_z is None:
            return NO_ENDS
        return z_ends(value, math.sqrt(of_z), normal_quantile(confidence_level))

    return ends


def z_ends(value: float, se_z: float, quantile: float) -> Ends:
    """Compute a correlation's interval from its standard error on Fisher's z scale; at ±1 it is a point."""
    if is_rounding(1 - abs(value)):
        return Ends(value, value, 0.0)
    centre = math.atanh(value)
    se = se_z * (1 - value * value)
    return Ends(math.tanh(centre - quantile * se_z), math.tanh(centre + quantile * se_z), se)


def lin_z(figure: Figure, units: Units, value: float, confidence_level: float) -> Ends:
    """Compute the interval on Fisher's z scale from the delta-method error, which accounts for clusters."""
    se = _delta_se(figure, units)
    if se is None:
        return NO_ENDS
    if is_rounding(1 - abs(value)):
        return Ends(value, value, 0.0)
    return z_ends(value, se / (1 - value * value), _delta_quantile(units, confidence_level))


def square(sums: Array, size: int) -> Array:
    """Reshape sums of cells, stored row by row, to tables."""
    return sums.reshape(*sums.shape[:-1], size, size)
