"""Correlation of, and errors between, two columns of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias, Unpack

import numpy as np
from scipy.special import betainc, ndtr

from autorubric.criteria.values import Level
from autorubric.metrics.core.contingency import NumberPairs, divide, number_pairs
from autorubric.metrics.core.estimate import RELATIVE_ZERO, Estimate, TestStatistic
from autorubric.metrics.core.estimation import Figure, estimate, fisher_z, lin_z
from autorubric.metrics.core.intervals import t_quantile
from autorubric.metrics.core.metric import ORDERED, SIGNED, MetricDisplay, metric
from autorubric.metrics.core.resampling import (
    NO_ENDS,
    Compute,
    Ends,
    IntervalArguments,
    IntervalOptions,
    Units,
    influence,
    row_units,
    standard_error,
)
from autorubric.metrics.core.scales import Array
from autorubric.metrics.figures.ranks import RankedPairs, kendall_of, margins, rank_pairs, spearman_of


@dataclass(frozen=True, slots=True)
class Moments:
    """Sums over pairs, ready for resampling."""

    units: Units  # their sums are those of 1, x, y, x², y², xy, (y - x)² and |y - x|
    shift: float  # mean of x minus mean of y before centring, divided by `unit`
    unit: float  # number by which x and y are divided


def moments_of(pairs: NumberPairs) -> Moments:
    """Compute the sums of each pair, or of each cluster of pairs."""
    x, y = pairs.truth, pairs.pred
    if not pairs.n:
        return Moments(Units(counts=np.zeros(0, dtype=np.int64), n=0, sums=np.zeros((0, 8))), 0.0, 1.0)
    # If all values are equal, use the first one, because their mean may differ from it by rounding.
    mean_x, mean_y = (float(v[0] if np.ptp(v) == 0 else v.mean()) for v in (x, y))
    centred_x, centred_y = x - mean_x, y - mean_y
    unit = float(max(np.abs(centred_x).max(), np.abs(centred_y).max(), abs(mean_x - mean_y))) or 1.0
    u, v, gap = centred_x / unit, centred_y / unit, (y - x) / unit
    # Each column is contiguous in memory, because columns are created and summed one at a time.
    sums = np.stack([np.ones(pairs.n), u, v, u * u, v * v, u * v, gap * gap, np.abs(gap)]).T
    return Moments(row_units(sums, pairs.cluster), (mean_x - mean_y) / unit, unit)


def _spread(n: Array, total: Array, squares: Array) -> Array:
    """Compute n² times the variance, or exactly 0 if it is only rounding error."""
    spread = n * squares - total * total
    return np.where(spread.real <= RELATIVE_ZERO * (n * squares).real, 0, spread)


def pearson_of(sums: Array) -> Array:
    """Compute s_xy / (s_x s_y); NaN if x or y is constant."""
    n, x, y, xx, yy, xy = (sums[..., j] for j in range(6))
    product = _spread(n, x, xx) * _spread(n, y, yy)
    ratio = divide(n * xy - x * y, np.sqrt(product))
    # Rounding may exceed the bounds, but complex-step derivatives must not be clipped.
    return ratio if np.iscomplexobj(ratio) else np.clip(ratio, -1.0, 1.0)


def ccc_of(shift: float) -> Callable[[Array], Array]:
    """Return the function that computes Lin's concordance from sums, given the `shift` between the means."""

    def compute(sums: Array) -> Array:
        n, x, y, xx, yy, xy = (sums[..., j] for j in range(6))
        apart = x - y + n * shift
        room = _spread(n, x, xx) + _spread(n, y, yy) + apart * apart
        return divide(2 * (n * xy - x * y), room)

    return compute


Variance: TypeAlias = Callable[[float, int], float]
"""A function from (value, n) to the variance on Fisher's z scale."""


def _fisher_figure(name: str, n: int, compute: Compute, variance: Variance, fewest: int = 4) -> Figure:
    """Return a correlation whose interval is on Fisher's z scale, with at least `fewest` pairs."""
    return Figure(
        name=name,
        compute=compute,
        reason=lambda sums: "too_few_units" if n < 2 else "no_variance",
        auto="analytic",
        auto_clustered="percentile",
        analytic=fisher_z(lambda value, n: variance(value, n) if n >= fewest else None),
        on_table=False,
    )


def pearson_estimate(pairs: NumberPairs, options: IntervalOptions) -> Estimate:
    """Compute `pearson` from pairs that have already been read."""
    figure = _fisher_figure("Pearson's r", pairs.n, pearson_of, lambda value, n: 1 / (n - 3))
    # Each column is scaled separately, or squares of the smaller one could vanish next to the other's.
    sides = replace(pairs, truth=_standard(pairs.truth), pred=_standard(pairs.pred))
    return estimate(figure, moments_of(sides).units, options, n_missing=pairs.n_missing)


def _standard(values: Array) -> Array:
    """Return the values centred and scaled to a maximum absolute deviation of 1."""
    if not values.size or np.ptp(values) == 0:
        return np.zeros_like(values)
    centred = values - values.mean()
    scaled = centred / np.abs(centred).max()
    # A spread this small relative to the values is rounding error, as it is in the sums of squares.
    return scaled if np.ptp(values) > RELATIVE_ZERO * np.abs(values).max() else np.zeros_like(values)


def spearman_estimate(ranked: RankedPairs, options: IntervalOptions, *, n_missing: int = 0) -> Estimate:
    """Compute `spearman` from pairs that have already been ranked."""
    n, compute = ranked.units.n, spearman_of(ranked)
    figure = _fisher_figure("Spearman's rho", n, compute, lambda rho, n: (1 + rho * rho / 2) / (n - 3))
    return estimate(figure, ranked.units, options, n_missing=n_missing)


def kendall_estimate(ranked: RankedPairs, options: IntervalOptions, *, n_missing: int = 0) -> Estimate:
    """Compute `kendall_tau_b` from pairs that have already been ranked."""
    n, compute = ranked.units.n, kendall_of(ranked)
    figure = _fisher_figure("Kendall's tau-b", n, compute, lambda tau, n: 0.437 / (n - 4), fewest=5)
    return estimate(figure, ranked.units, options, n_missing=n_missing)


def ccc_estimate(pairs: NumberPairs, options: IntervalOptions) -> Estimate:
    """Compute `lin_ccc` from pairs that have already been read."""
    moments = moments_of(pairs)
    figure = Figure(
        name="Lin's concordance",
        compute=ccc_of(moments.shift),
        reason=lambda sums: "no_variance",
        auto="analytic",
        analytic=lin_z,
        on_table=False,
    )
    return estimate(figure, moments.units, options, n_missing=pairs.n_missing)


def _mean_t(figure: Figure, units: Units, value: float, confidence_level: float) -> Ends:
    """Compute the t interval of a mean of squared or absolute errors, truncated at 0."""
    if units.size < 2:
        return NO_ENDS
    se = standard_error(influence(units, figure.compute), units.size, units.counts)
    half = t_quantile(confidence_level, units.size - 1) * se
    return Ends(max(0.0, value - half), value + half, se)


def _mean_figure(name: str, column: int) -> Figure:
    """Return the figure of the mean of one of the sums in `Moments`."""
    return Figure(
        name=name,
        compute=lambda sums: np.asarray(sums[..., column] / sums[..., 0]),
        reason=lambda sums: "no_pairs",
        bounds=(0.0, math.inf),
        auto="analytic",
        analytic=_mean_t,
        on_table=False,
    )


def rmse_estimate(pairs: NumberPairs, options: IntervalOptions) -> Estimate:
    """Compute `rmse` from pairs that have already been read."""
    moments = moments_of(pairs)
    squared = estimate(_mean_figure("RMSE", 6), moments.units, options, n_missing=pairs.n_missing)
    root = squared.map(lambda square: moments.unit * math.sqrt(square))
    if squared.se is None or not squared.value:
        return root
    # Delta method for the square root.
    se = squared.se * moments.unit / (2 * math.sqrt(squared.value))
    return replace(root, se=se)


def mae_estimate(pairs: NumberPairs, options: IntervalOptions) -> Estimate:
    """Compute `mae` from pairs that have already been read."""
    moments = moments_of(pairs)
    scaled = estimate(_mean_figure("MAE", 7), moments.units, options, n_missing=pairs.n_missing)
    se = None if scaled.se is None else scaled.se * moments.unit
    return replace(scaled.map(lambda distance: moments.unit * distance), se=se)


_ON_NUMBERS: tuple[Level, ...] = ("ordinal", "interval")
_metric = partial(metric, inputs="numbers", levels=ORDERED)
_shown = partial(MetricDisplay, at=_ON_NUMBERS, pages=())


@_metric(
    bounds=SIGNED,
    reference="Fisher 1921",
    shown=_shown(
        key="pearson",
        title="Pearson's r",
        moments=pearson_of,
        mean_interval="percentile",
        order=190,
        numbers=pearson_estimate,
    ),
)
def pearson(truth: Iterable[Any], pred: Iterable[Any], **interval: Unpack[IntervalArguments]) -> Estimate:
    """Compute Pearson's r, s_xy / (s_x s_y).

    It is undefined if truth or pred is constant (`no_variance`) or there are fewer than two pairs
    (`too_few_units`). The interval uses Fisher's z [1] or, with clusters, the percentile bootstrap.

    Args:
        truth: Numbers; pairs with None or NaN are dropped.
        pred: Numbers to compare with `truth`, in the same order.
        **interval: See `IntervalArguments`.

    References:
        [1] R. A. Fisher (1921), On the probable error of a coefficient of correlation deduced from a small
            sample, Metron 1, 3-32.
    """
    options = IntervalOptions(**interval)
    return pearson_estimate(number_pairs(truth, pred, options.cluster), options)


@_metric(
    bounds=SIGNED,
    reference="Bonett and Wright 2000",
    shown=_shown(key="spearman", title="Spearman's rho", order=170, ranks=spearman_estimate),
)
def spearman(truth: Iterable[Any], pred: Iterable[Any], **interval: Unpack[IntervalArguments]) -> Estimate:
    """Compute Spearman's rho, which is Pearson's r of the midranks.

    It is undefined in the same cases as `pearson`, which also documents the arguments. The interval uses
    Fisher's z with variance (1 + r²/2) / (n - 3) [1] or, with clusters, the percentile bootstrap.

    References:
        [1] D. G. Bonett, T. A. Wright (2000), Sample size requirements for estimating Pearson, Kendall and
            Spearman correlations, Psychometrika 65(1), 23-28.
    """
    options = IntervalOptions(**interval)
    pairs = number_pairs(truth, pred, options.cluster)
    return spearman_estimate(rank_pairs(pairs), options, n_missing=pairs.n_missing)


@_metric(
    bounds=SIGNED,
    reference="Kendall 1945",
    shown=_shown(key="kendall", title="Kendall's tau-b", order=180, ranks=kendall_estimate),
)
def kendall_tau_b(
    truth: Iterable[Any], pred: Iterable[Any], **interval: Unpack[IntervalArguments]
) -> Estimate:
    """Compute Kendall's tau-b, (C - D) / √((n₀ - t_x)(n₀ - t_y)) [1].

    C and D are the numbers of concordant and discordant pairs of items, t_x and t_y the numbers of pairs tied
    in truth and in pred, and n₀ = n (n - 1) / 2. See `pearson` for the arguments and the undefined cases. The
    interval uses Fisher's z with variance 0.437 / (n - 4) [2] or, with clusters, the percentile bootstrap.

    References:
        [1] M. G. Kendall (1945), The treatment of ties in ranking problems, Biometrika 33, 239-251.
        [2] E. C. Fieller, H. O. Hartley, E. S. Pearson (1957), Tests for rank correlation coefficients,
            Biometrika 44, 470-481.
    """
    options = IntervalOptions(**interval)
    pairs = number_pairs(truth, pred, options.cluster)
    return kendall_estimate(rank_pairs(pairs), options, n_missing=pairs.n_missing)


@_metric(
    bounds=SIGNED,
    reference="Lin 1989",
    shown=_shown(key="ccc", title="Lin's concordance", order=200, numbers=ccc_estimate),
)
def lin_ccc(truth: Iterable[Any], pred: Iterable[Any], **interval: Unpack[IntervalArguments]) -> Estimate:
    """Compute Lin's concordance correlation, 2 s_xy / (s_x² + s_y² + (m_x - m_y)²) with 1/n moments [1].

    It is undefined if all values are equal (`no_variance`). It is 0.0 if truth and pred are different
    constants. The interval uses Fisher's z with the delta-method standard error, which accounts for clusters.
    See `pearson` for the arguments.

    References:
        [1] L. I.-K. Lin (1989), A concordance correlation coefficient to evaluate reproducibility,
            Biometrics 45(1), 255-268.
    """
    options = IntervalOptions(**interval)
    return ccc_estimate(number_pairs(truth, pred, options.cluster), options)


def correlation_p_value(value: float, n: int) -> float | None:
    """Return the two-sided p-value of no correlation from t with n - 2 df; None if n < 3."""
    if n < 3:
        return None
    return float(betainc((n - 2) / 2, 0.5, 1 - value * value))


def correlation_test(value: float, n: int) -> TestStatistic | None:
    """Return the t test of `correlation_p_value`; None if n < 3 or the value is ±1, where t is infinite."""
    p_value = correlation_p_value(value, n)
    if p_value is None or abs(value) >= 1:
        return None
    t = value * math.sqrt((n - 2) / (1 - value * value))
    return TestStatistic(name="t", value=t, df=n - 2, p_value=p_value)


def kendall_test(ranked: RankedPairs, tau: float | None) -> TestStatistic | None:
    """Return the two-sided z test of tau-b with ties (Kendall 1970, ch. 4); None if undefined or n < 3."""
    n = ranked.units.n
    if n < 3 or tau is None:
        return None
    ties = margins(ranked, ranked.units.total())
    pair = [float((t * (t - 1)).sum()) for t in ties]
    triple = [float((t * (t - 1) * (t - 2)).sum()) for t in ties]
    fives = [float((t * (t - 1) * (2 * t + 5)).sum()) for t in ties]
    base = n * (n - 1.0)
    variance = (
        (base * (2 * n + 5) - fives[0] - fives[1]) / 18
        + pair[0] * pair[1] / (2 * base)
        + triple[0] * triple[1] / (9 * base * (n - 2))
    )
    difference = tau * math.sqrt((base - pair[0]) * (base - pair[1])) / 2
    z = difference / math.sqrt(variance)
    return TestStatistic(name="z", value=z, df=None, p_value=float(2 * ndtr(-abs(z))))


@_metric(
    bounds=(0.0, None),
    reference="root mean square error",
    perfect=0.0,
    shown=_shown(key="rmse", title="root mean square error", order=210, numbers=rmse_estimate),
)
def rmse(truth: Iterable[Any], pred: Iterable[Any], **interval: Unpack[IntervalArguments]) -> Estimate:
    """Compute the root mean square error, √(Σ (pred - truth)² / n), in the units of the numbers.

    It is undefined if there are no pairs (`no_pairs`). The interval limits are the square roots of the limits
    of a t interval for the mean squared error; with C clusters, t has C - 1 degrees of freedom.

    Args:
        truth: Numbers; pairs with None or NaN are dropped.
        pred: Numbers to compare with `truth`, in the same order.
        **interval: See `IntervalArguments`.
    """
    options = IntervalOptions(**interval)
    return rmse_estimate(number_pairs(truth, pred, options.cluster), options)


@_metric(
    bounds=(0.0, None),
    reference="mean absolute error",
    perfect=0.0,
    shown=_shown(key="mae", title="mean absolute error", order=220, numbers=mae_estimate),
)
def mae(truth: Iterable[Any], pred: Iterable[Any], **interval: Unpack[IntervalArguments]) -> Estimate:
    """Compute the mean absolute error, Σ |pred - truth| / n, in the units of the numbers.

    It is undefined if there are no pairs (`no_pairs`). The interval is a t interval; with C clusters, it has
    C - 1 degrees of freedom. See `rmse` for the arguments.
    """
    options = IntervalOptions(**interval)
    return mae_estimate(number_pairs(truth, pred, options.cluster), options)
