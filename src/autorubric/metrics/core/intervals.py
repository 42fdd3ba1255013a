"""Intervals of proportions and means: Wilson, Clopper-Pearson, logit-t and clustered standard errors."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, Unpack

import numpy as np
from scipy.special import betaincinv, ndtr, ndtri, stdtr, stdtrit

from autorubric.errors import ArgumentError
from autorubric.metrics.core.contingency import cluster_codes, numeric_column, renumber
from autorubric.metrics.core.estimate import Estimate, Reason, TestStatistic, is_rounding
from autorubric.metrics.core.resampling import (
    NO_ENDS,
    CiMethod,
    Ends,
    IntervalArguments,
    IntervalOptions,
    check_choice,
    interval_of,
    replicates,
    row_units,
    standard_error,
)

ShareMethod: TypeAlias = Literal["wilson", "clopper-pearson"]


def normal_quantile(confidence_level: float) -> float:
    """Return the two-sided standard normal quantile."""
    return float(ndtri(0.5 + confidence_level / 2))


def t_quantile(confidence_level: float, df: float) -> float:
    """Return the two-sided quantile of Student's t."""
    return float(stdtrit(df, 0.5 + confidence_level / 2))


def t_statistic(t: float, df: float) -> TestStatistic:
    """Return a two-sided t test."""
    return TestStatistic(name="t", value=t, df=df, p_value=float(2 * stdtr(df, -abs(t))))


def expanded_tail(confidence_level: float, df: float) -> float:
    """Return the tail that makes a percentile interval of a mean as wide as t's (Hesterberg 2015, 4.3)."""
    return float(ndtr(-math.sqrt((df + 1) / df) * t_quantile(confidence_level, df)))


def wilson_ends(proportion: float, n: float, quantile: float) -> tuple[float, float]:
    """Compute the limits of the score interval of a proportion; `n` may be an effective sample size."""
    spread = quantile * quantile / n
    centre = (proportion + spread / 2) / (1 + spread)
    half = quantile / (1 + spread) * math.sqrt(proportion * (1 - proportion) / n + spread / (4 * n))
    low = 0.0 if proportion <= 0.0 else max(0.0, centre - half)
    high = 1.0 if proportion >= 1.0 else min(1.0, centre + half)
    return low, high


def logit_t_ends(
    proportion: float, se: float, n_units: float, confidence_level: float
) -> tuple[float, float]:
    """Compute a t interval on the logit scale or, without spread, the score interval of the units."""
    quantile = t_quantile(confidence_level, n_units - 1)
    if proportion in (0.0, 1.0) or is_rounding(se):
        return wilson_ends(proportion, n_units, quantile)
    return logit_limits(proportion, se, quantile)


def logit_limits(proportion: float, se: float, quantile: float) -> tuple[float, float]:
    """Compute the limits of an interval on the logit scale for a proportion other than 0 and 1."""
    centre = math.log(proportion / (1 - proportion))
    half = quantile * se / (proportion * (1 - proportion))
    low, high = (1 / (1 + math.exp(-min(max(centre + side * half, -700.0), 700.0))) for side in (-1, 1))
    return low, high


def wilson(
    successes: int, n: int, *, method: ShareMethod = "wilson", **interval: Unpack[IntervalArguments]
) -> Estimate:
    """Compute a proportion with Wilson's score interval [1] or the exact Clopper-Pearson interval [3].

    - `"wilson"`: `(p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n)`. It stays within [0, 1] and has nonzero
      width at 0 and 1 [2]. Its coverage is close to the confidence level on average over p.
    - `"clopper-pearson"`: the α/2 quantile of Beta(k, n - k + 1) and the 1 - α/2 quantile of
      Beta(k + 1, n - k) for k successes. Its coverage is at least the confidence level for every p, so it is
      wider.

    Args:
        successes: Number of successes, from 0 to `n`.
        n: Number of trials; with 0 trials, the proportion is undefined (`no_values`).
        method: Interval method.
        **interval: See `IntervalArguments`. `cluster` and bootstrap methods need individual values and raise
            an error; `n_resamples` and `rng` have no effect.

    Raises:
        ArgumentError: If the counts or the method are invalid, or clusters or a bootstrap are requested.

    References:
        [1] E. B. Wilson (1927), Probable inference, the law of succession, and statistical inference, JASA
            22(158), 209-212.
        [2] R. G. Newcombe (1998), Two-sided confidence intervals for the single proportion, Statistics in
            Medicine 17, 857-872.
        [3] C. J. Clopper, E. S. Pearson (1934), The use of confidence or fiducial limits illustrated in the
            case of the binomial, Biometrika 26(4), 404-413.
    """
    check_choice("method", method, ShareMethod)
    if not 0 <= successes <= n:
        raise ArgumentError(f"successes must be between 0 and n; got successes={successes!r}, n={n!r}")
    options = IntervalOptions(**interval)
    if options.cluster is not None or options.ci not in ("auto", "analytic", None):
        raise ArgumentError(
            "wilson does not support cluster or bootstrap intervals; pass ci='auto', or use clustered_se "
            "with the individual values"
        )
    name = "Wilson" if method == "wilson" else "Clopper-Pearson"
    words = "proportion" if options.ci is None else f"proportion; {name}, {options.confidence_level:.0%}"
    if n == 0:
        return Estimate.undefined("no_values", method=words)
    share = successes / n
    if options.ci is None:
        return Estimate(share, n=int(n), method=words)
    if method == "wilson":
        low, high = wilson_ends(share, n, normal_quantile(options.confidence_level))
    else:
        tail = (1 - options.confidence_level) / 2
        low = float(betaincinv(successes, n - successes + 1, tail)) if successes > 0 else 0.0
        high = float(betaincinv(successes + 1, n - successes, 1 - tail)) if successes < n else 1.0
    return Estimate(share, low, high, math.sqrt(share * (1 - share) / n), int(n), words)


def mean_ends(values: Any, members: Any, confidence_level: float) -> Ends:
    """Compute the t interval of a mean over clusters; no limits if they are equal (`se` is then 0)."""
    n = len(values)
    sums = np.bincount(members, weights=values - values.mean())
    n_clusters = int(np.count_nonzero(np.bincount(members)))
    if n_clusters < 2:
        return NO_ENDS
    se = standard_error(sums, n_clusters) / n
    if is_rounding(se, float(np.abs(values).max())):
        return Ends(None, None, 0.0)
    half = t_quantile(confidence_level, n_clusters - 1) * se
    return Ends(float(values.mean()) - half, float(values.mean()) + half, se)


def clustered_se(
    values: Iterable[Any],
    cluster: Iterable[Any] | None = None,
    *,
    ci: CiMethod | None = "auto",
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    rng: int | np.random.Generator = 0,
) -> Estimate:
    """Compute the mean of the values with its clustered standard error [1].

    `se = √(C/(C-1) · Σ_c (Σ_{i∈c} (x_i - x̄))²) / n`, where C is the number of clusters; the interval is
    `mean ± t · se` with C - 1 degrees of freedom. This is Miller's formula [1, eq. 4] times √(C/(C-1)), the
    small-sample factor of cluster-robust regression; without it, the interval is too narrow with few
    clusters, by 5% with ten. If `cluster` is None, each value is a cluster and `se` is s/√n. The standard
    error is None if there is only one cluster (`too_few_units`) or clusters do not differ (`no_variance`).

    Args:
        values: Numbers; None and NaN count as missing.
        cluster: One id per value.
        ci: `"auto"` and `"analytic"` compute the interval above, `"percentile"` computes a bootstrap interval
            over clusters, and None computes no interval. The standard error is the same in each case.
        confidence_level: Confidence level of the interval.
        n_resamples: Number of bootstrap resamples.
        rng: Seed or NumPy generator for the resampling.

    Raises:
        ArgumentError: If a value is not a number, the number of ids differs from the number of values, or an
            option is invalid.

    References:
        [1] E. Miller (2024), Adding error bars to evals, arXiv:2411.00640.
    """
    options = IntervalOptions(
        cluster=cluster, ci=ci, confidence_level=confidence_level, n_resamples=n_resamples, rng=rng
    )
    if ci in ("bca", "smoothed"):
        raise ArgumentError(f"ci={ci!r} is not supported for a mean; use 'auto' or 'percentile'")
    numbers = numeric_column(values, "values")
    there = ~np.isnan(numbers)
    kept = numbers[there]
    ids = cluster_codes(cluster, len(numbers))
    members = np.arange(len(kept)) if ids is None else renumber(ids[there])
    method = "mean; clustered standard error"
    if ci is not None:
        method += f"; {options.describe()}" if ci == "percentile" else f", t, {confidence_level:.0%}"
    n_missing = len(numbers) - len(kept)
    if not len(kept):
        return Estimate.undefined("no_values", method=method, n_missing=n_missing)
    ends = mean_ends(kept, members, confidence_level)
    mean = float(kept.mean())
    if not ends.se:
        reason: Reason = "too_few_units" if ends.se is None else "no_variance"
        return Estimate(mean, n=len(kept), method=method, reason=reason, n_missing=n_missing)
    if ci is None:
        return Estimate(mean, None, None, ends.se, len(kept), method, None, n_missing)
    low, high = ends.low, ends.high
    if ci == "percentile":
        units = row_units(np.column_stack([kept, np.ones(len(kept))]), members)
        drawn = replicates(units, lambda s: s[..., 0] / s[..., 1], n_resamples, options.generator())
        low, high, _ = interval_of(drawn, options)[0]
    return Estimate(mean, low, high, ends.se, len(kept), method, None, n_missing)
