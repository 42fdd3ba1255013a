"""Correlation of two columns of numbers: Pearson, Spearman, Kendall's tau-b and Lin's concordance."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeAlias, Unpack

import numpy as np
from scipy.special import betainc, ndtr

from autorubric.metrics._columns import NumberPairs, number_pairs
from autorubric.metrics._contingency import cluster_codes
from autorubric.metrics._estimate import Estimate, TestStatistic
from autorubric.metrics._estimation import Figure, estimate, fisher_z, lin_z
from autorubric.metrics._moments import ccc_of, moments_of, pearson_of
from autorubric.metrics._options import IntervalArguments, IntervalOptions
from autorubric.metrics._ranks import Ranked, kendall_of, margins, rank_pairs, spearman_of
from autorubric.metrics._resampling import Array, Compute
from autorubric.metrics._rounding import RELATIVE_ZERO
from autorubric.metrics._scales import as_sequence

Variance: TypeAlias = Callable[[float, int], float | None]
"""A function from (value, n) to the variance on Fisher's z scale, or to None if there are too few pairs."""


def _pairs(truth: Iterable[Any], pred: Iterable[Any], options: IntervalOptions) -> NumberPairs:
    left = as_sequence(truth, "truth")
    return number_pairs(left, pred, cluster_codes(options.cluster, len(left)))


def _pearson_variance(value: float, n: int) -> float | None:
    return 1 / (n - 3) if n > 3 else None


def _spearman_variance(value: float, n: int) -> float | None:
    return (1 + value * value / 2) / (n - 3) if n > 3 else None


def _kendall_variance(value: float, n: int) -> float | None:
    return 0.437 / (n - 4) if n > 4 else None


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
    return pearson_estimate(_pairs(truth, pred, options), options)


def pearson_estimate(pairs: NumberPairs, options: IntervalOptions) -> Estimate:
    """Compute `pearson` from pairs that have already been read."""
    figure = Figure(
        name="Pearson's r",
        compute=pearson_of,
        reason=lambda sums: "too_few_units" if pairs.n < 2 else "no_variance",
        auto="analytic",
        auto_clustered="percentile",
        analytic=fisher_z(_pearson_variance),
        on_table=False,
    )
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


def spearman(truth: Iterable[Any], pred: Iterable[Any], **interval: Unpack[IntervalArguments]) -> Estimate:
    """Compute Spearman's rho, which is Pearson's r of the midranks.

    It is undefined in the same cases as `pearson`, which also documents the arguments. The interval uses
    Fisher's z with variance (1 + r²/2) / (n - 3) [1] or, with clusters, the percentile bootstrap.

    References:
        [1] D. G. Bonett, T. A. Wright (2000), Sample size requirements for estimating Pearson, Kendall and
            Spearman correlations, Psychometrika 65(1), 23-28.
    """
    options = IntervalOptions(**interval)
    pairs = _pairs(truth, pred, options)
    return spearman_estimate(rank_pairs(pairs), options, n_missing=pairs.n_missing)


def spearman_estimate(ranked: Ranked, options: IntervalOptions, *, n_missing: int = 0) -> Estimate:
    """Compute `spearman` from pairs that have already been ranked."""
    figure = _rank_figure("Spearman's rho", ranked, spearman_of(ranked), _spearman_variance)
    return estimate(figure, ranked.units, options, n_missing=n_missing)


def _rank_figure(name: str, ranked: Ranked, compute: Compute, variance: Variance) -> Figure:
    return Figure(
        name=name,
        compute=compute,
        reason=lambda sums: "too_few_units" if ranked.units.n < 2 else "no_variance",
        auto="analytic",
        auto_clustered="percentile",
        analytic=fisher_z(variance),
        on_table=False,
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
    pairs = _pairs(truth, pred, options)
    return kendall_estimate(rank_pairs(pairs), options, n_missing=pairs.n_missing)


def kendall_estimate(ranked: Ranked, options: IntervalOptions, *, n_missing: int = 0) -> Estimate:
    """Compute `kendall_tau_b` from pairs that have already been ranked."""
    figure = _rank_figure("Kendall's tau-b", ranked, kendall_of(ranked), _kendall_variance)
    return estimate(figure, ranked.units, options, n_missing=n_missing)


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
    return ccc_estimate(_pairs(truth, pred, options), options)


def ccc_estimate(pairs: NumberPairs, options: IntervalOptions) -> Estimate:
    """Compute `lin_ccc` from pairs that have already been read."""
    moments = moments_of(pairs)
    figure = Figure(
        name="Lin's concordance",
        compute=ccc_of(moments.shift),
        reason=lambda sums: "no_variance",
        auto="analytic",
        auto_clustered="analytic",
        analytic=lin_z,
        on_table=False,
    )
    return estimate(figure, moments.units, options, n_missing=pairs.n_missing)


def correlation_p_value(value: float, n: int) -> float | None:
    """Compute the two-sided p-value of the null hypothesis of no correlation; None if n < 3.

    It is exact for Pearson's r of independent normal items and approximate for Spearman's rho. The statistic
    r √((n - 2) / (1 - r²)) follows t with n - 2 degrees of freedom.
    """
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


def kendall_test(ranked: Ranked, tau: float | None) -> TestStatistic | None:
    """Return the two-sided z test of the null hypothesis of no association, with ties corrected for [1].

    `tau` is tau-b of the pairs. Returns None if it is undefined or there are fewer than three pairs.

    References:
        [1] M. G. Kendall (1970), Rank correlation methods, 4th ed., ch. 4.
    """
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
