"""Intervals of proportions and means: Wilson, logit-t over clusters, clustered standard errors."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, TypeAlias, Unpack, get_args

import numpy as np
from scipy.special import betaincinv, ndtr, ndtri, stdtrit

from autorubric.errors import ArgumentError
from autorubric.metrics._columns import numeric_column
from autorubric.metrics._contingency import cluster_codes
from autorubric.metrics._estimate import Estimate, Reason
from autorubric.metrics._options import CiMethod, IntervalArguments, IntervalOptions
from autorubric.metrics._resampling import Units, replicates
from autorubric.metrics._rounding import is_rounding

ShareMethod: TypeAlias = Literal["wilson", "clopper-pearson"]


class Ends(NamedTuple):
    """Ends of an interval and the standard error it rests on; None where there is none."""

    low: float | None
    high: float | None
    se: float | None


def normal_quantile(confidence_level: float) -> float:
    """Two-sided standard normal quantile."""
    return float(ndtri(0.5 + confidence_level / 2))


def t_quantile(confidence_level: float, df: float) -> float:
    """Two-sided quantile of Student's t."""
    return float(stdtrit(df, 0.5 + confidence_level / 2))


def expanded_tail(confidence_level: float, df: float) -> float:
    """Share to cut off at each end of a bootstrap distribution of few units [1].

    Φ(-√((df + 1)/df) t), so that for a mean of df + 1 units the percentile interval is as wide as that of t.

    References:
        [1] T. C. Hesterberg (2015), What teachers should know about the bootstrap, The American Statistician
            69(4), 371-386, section 4.3.
    """
    return float(ndtr(-math.sqrt((df + 1) / df) * t_quantile(confidence_level, df)))


def wilson_ends(proportion: float, n: float, quantile: float) -> tuple[float, float]:
    """Ends of the score interval of a proportion; `n` may be an effective number."""
    spread = quantile * quantile / n
    centre = (proportion + spread / 2) / (1 + spread)
    half = quantile / (1 + spread) * math.sqrt(proportion * (1 - proportion) / n + spread / (4 * n))
    low = 0.0 if proportion <= 0.0 else max(0.0, centre - half)
    high = 1.0 if proportion >= 1.0 else min(1.0, centre + half)
    return low, high


def clopper_pearson_ends(successes: int, n: int, confidence_level: float) -> tuple[float, float]:
    """Ends of the exact interval of a proportion: quantiles of beta distributions."""
    tail = (1 - confidence_level) / 2
    low = float(betaincinv(successes, n - successes + 1, tail)) if successes > 0 else 0.0
    high = float(betaincinv(successes + 1, n - successes, 1 - tail)) if successes < n else 1.0
    return low, high


def logit_t_ends(
    proportion: float, se: float, n_units: float, confidence_level: float
) -> tuple[float, float]:
    """Ends of a t interval on the logit scale with `n_units - 1` degrees of freedom.

    At 0 and 1, or with no spread between units but rounding, where the logit breaks down, the score interval
    with one observation a unit stands in.
    """
    quantile = t_quantile(confidence_level, n_units - 1)
    if proportion in (0.0, 1.0) or is_rounding(se):
        return wilson_ends(proportion, n_units, quantile)
    centre = math.log(proportion / (1 - proportion))
    half = quantile * se / (proportion * (1 - proportion))
    return tuple(1 / (1 + math.exp(-_bounded(centre + sign * half))) for sign in (-1, 1))  # type: ignore[return-value]


def _bounded(logit: float) -> float:
    return max(-700.0, min(700.0, logit))


def wilson(
    successes: int, n: int, *, method: ShareMethod = "wilson", **interval: Unpack[IntervalArguments]
) -> Estimate:
    """A proportion with the score interval of Wilson [1], or the exact interval of Clopper and Pearson [3].

    - `"wilson"`: `(p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n)`; it stays inside [0, 1] and has width at
      0 and 1 [2]. Its coverage is near the level on average over p.
    - `"clopper-pearson"`: the α/2 quantile of Beta(k, n - k + 1) and the 1 - α/2 quantile of
      Beta(k + 1, n - k) for k successes. Its coverage is at least the level for every p, so it is wider.

    Args:
        successes: Successes, from 0 to `n`.
        n: Trials; with none the proportion is undefined (`no_values`).
        method: The interval.
        **interval: See `IntervalArguments`. Two counts know no clusters and are not resampled: `cluster` and
            the bootstraps are refused, `n_resamples` and `rng` are without effect.

    Raises:
        ArgumentError: The counts or the method are not allowed, or clusters or a bootstrap are asked for.

    References:
        [1] E. B. Wilson (1927), Probable inference, the law of succession, and statistical inference, JASA
            22(158), 209-212.
        [2] R. G. Newcombe (1998), Two-sided confidence intervals for the single proportion, Statistics in
            Medicine 17, 857-872.
        [3] C. J. Clopper, E. S. Pearson (1934), The use of confidence or fiducial limits illustrated in the
            case of the binomial, Biometrika 26(4), 404-413.
    """
    if method not in get_args(ShareMethod):
        raise ArgumentError(f"method={method!r}; give one of {list(get_args(ShareMethod))}")
    if not 0 <= successes <= n:
        raise ArgumentError(f"successes={successes!r} of n={n!r}; give 0 <= successes <= n")
    options = IntervalOptions(**interval)
    if options.cluster is not None or options.ci not in ("auto", "analytic", None):
        raise ArgumentError(
            "wilson is the interval of two counts, without clusters or a bootstrap; give ci='auto', or the "
            "values themselves to clustered_se"
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
        low, high = clopper_pearson_ends(int(successes), int(n), options.confidence_level)
    return Estimate(share, low, high, math.sqrt(share * (1 - share) / n), int(n), words)


def mean_ends(values: Any, members: Any, confidence_level: float) -> Ends:
    """Interval of a mean over clusters: t with C - 1 degrees of freedom.

    No ends with one cluster; none where clusters do not differ but by rounding, whose `se` is 0.
    """
    n = len(values)
    sums = np.bincount(members, weights=values - values.mean())
    n_clusters = int(np.count_nonzero(np.bincount(members)))
    if n_clusters < 2:
        return Ends(None, None, None)
    se = math.sqrt(float((sums**2).sum()) * n_clusters / (n_clusters - 1)) / n
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
    """The mean of the values with its standard error over clusters [1].

    `se = √(C/(C-1) · Σ_c (Σ_{i∈c} (x_i - x̄))²) / n`, with C the number of clusters; the interval is
    `mean ± t · se` with C - 1 degrees of freedom. This is Miller's formula [1, eq. 4] times √(C/(C-1)), the
    small-sample factor of cluster-robust regression: without it the interval of few clusters is too narrow,
    by 5 % at ten. Without `cluster` each value is a cluster, and `se` is the usual s/√n. One cluster: the
    mean has no error (`too_few_units`); nor has it where the clusters do not differ (`no_variance`).

    Args:
        values: Numbers; None and NaN are missing.
        cluster: An id per value.
        ci: `"auto"` and `"analytic"` give the interval above, `"percentile"` a bootstrap of clusters, None no
            ends; the standard error is the same in each case.
        confidence_level: Level of the interval.
        n_resamples: Bootstrap resamples.
        rng: Seed or generator of the resampling.

    Raises:
        ArgumentError: A value is no number, there is not one id per value, or an option is not allowed.

    References:
        [1] E. Miller (2024), Adding error bars to evals, arXiv:2411.00640.
    """
    options = IntervalOptions(
        cluster=cluster, ci=ci, confidence_level=confidence_level, n_resamples=n_resamples, rng=rng
    )
    if ci in ("bca", "smoothed"):
        raise ArgumentError(f"ci={ci!r} is not made for a mean; give 'auto' or 'percentile'")
    numbers = numeric_column(values, "values")
    there = ~np.isnan(numbers)
    kept = numbers[there]
    ids = cluster_codes(cluster, len(numbers))
    members = np.arange(len(kept)) if ids is None else np.unique(ids[there], return_inverse=True)[1]
    method = "mean; clustered standard error" + _how(options)
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
    low, high = (ends.low, ends.high) if ci != "percentile" else _resampled_ends(kept, members, options)
    return Estimate(mean, low, high, ends.se, len(kept), method, None, n_missing)


def _how(options: IntervalOptions) -> str:
    if options.ci is None:
        return ""
    if options.ci == "percentile":
        return f"; percentile bootstrap, {options.confidence_level:.0%}, {options.n_resamples} resamples"
    return f", t, {options.confidence_level:.0%}"


def _resampled_ends(values: Any, members: Any, options: IntervalOptions) -> tuple[float, float]:
    """Percentiles of the mean over clusters drawn with replacement."""
    sums = np.column_stack([np.bincount(members, weights=values), np.bincount(members)])
    units = Units(counts=np.ones(len(sums), dtype=np.int64), n=len(values), sums=sums)
    drawn = replicates(units, lambda s: s[..., 0] / s[..., 1], options.n_resamples, options.generator())
    tail = (1 - options.confidence_level) / 2
    low, high = np.quantile(drawn, (tail, 1 - tail))
    return float(low), float(high)
