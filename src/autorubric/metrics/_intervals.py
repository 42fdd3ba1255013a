"""Intervals of proportions and means: Wilson, logit-t over clusters, clustered standard errors."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from autorubric.errors import ArgumentError
from autorubric.metrics._columns import numeric_column
from autorubric.metrics._contingency import cluster_codes
from autorubric.metrics._estimate import Estimate


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


def wilson_ends(proportion: float, n: float, quantile: float) -> tuple[float, float]:
    """Ends of the score interval of a proportion; `n` may be an effective number."""
    spread = quantile * quantile / n
    centre = (proportion + spread / 2) / (1 + spread)
    half = quantile / (1 + spread) * math.sqrt(proportion * (1 - proportion) / n + spread / (4 * n))
    low = 0.0 if proportion <= 0.0 else max(0.0, centre - half)
    high = 1.0 if proportion >= 1.0 else min(1.0, centre + half)
    return low, high


def logit_t_ends(proportion: float, se: float, n_units: int, confidence_level: float) -> tuple[float, float]:
    """Ends of a t interval on the logit scale with `n_units - 1` degrees of freedom.

    At 0 and 1, or with no spread between units, where the logit breaks down, the score interval with one
    observation a unit stands in.
    """
    quantile = t_quantile(confidence_level, n_units - 1)
    if proportion in (0.0, 1.0) or se == 0.0:
        return wilson_ends(proportion, n_units, quantile)
    centre = math.log(proportion / (1 - proportion))
    half = quantile * se / (proportion * (1 - proportion))
    return tuple(1 / (1 + math.exp(-_bounded(centre + sign * half))) for sign in (-1, 1))  # type: ignore[return-value]


def _bounded(logit: float) -> float:
    return max(-700.0, min(700.0, logit))


def wilson(successes: int, n: int, *, confidence_level: float = 0.95) -> Estimate:
    """A proportion with the score interval of Wilson [1].

    `(p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n)`; it stays inside [0, 1] and has width at 0 and 1 [2].

    Args:
        successes: Successes, from 0 to `n`.
        n: Trials; with none the proportion is undefined (`no_values`).
        confidence_level: Level of the interval.

    References:
        [1] E. B. Wilson (1927), Probable inference, the law of succession, and statistical inference, JASA
            22(158), 209-212.
        [2] R. G. Newcombe (1998), Two-sided confidence intervals for the single proportion, Statistics in
            Medicine 17, 857-872.
    """
    if not 0 <= successes <= n:
        raise ArgumentError(f"successes={successes!r} of n={n!r}; give 0 <= successes <= n")
    if not 0.0 < confidence_level < 1.0:
        raise ArgumentError(f"confidence_level={confidence_level!r}; give a level between 0 and 1")
    method = f"proportion; Wilson, {confidence_level:.0%}"
    if n == 0:
        return Estimate.undefined("no_values", method=method)
    share = successes / n
    low, high = wilson_ends(share, n, normal_quantile(confidence_level))
    return Estimate(share, low, high, math.sqrt(share * (1 - share) / n), int(n), method)


def resampled_t_ends(
    value: float, se: float, n_units: int, confidence_level: float, *, most: float = 1.0
) -> tuple[float, float]:
    """Ends of a t interval from a bootstrap's standard error, n_units - 1 degrees of freedom, in ±`most`.

    For means of kappas over criteria: a kappa of few items is biased, its resamples twice so, and with many
    criteria the percentiles of their mean lie beside the mean itself.
    """
    half = t_quantile(confidence_level, n_units - 1) * se
    return max(-most, value - half), min(most, value + half)


def mean_ends(values: Any, members: Any, confidence_level: float) -> Ends:
    """Interval of a mean over clusters: t with C - 1 degrees of freedom; no ends with one cluster."""
    n = len(values)
    sums = np.bincount(members, weights=values - values.mean())
    n_clusters = int(np.count_nonzero(np.bincount(members)))
    if n_clusters < 2:
        return Ends(None, None, None)
    se = math.sqrt(float((sums**2).sum()) * n_clusters / (n_clusters - 1)) / n
    half = t_quantile(confidence_level, n_clusters - 1) * se
    return Ends(float(values.mean()) - half, float(values.mean()) + half, se)


def clustered_se(
    values: Iterable[Any], cluster: Iterable[Any] | None = None, *, confidence_level: float = 0.95
) -> Estimate:
    """The mean of the values with its standard error over clusters [1].

    `se = √(Σ_c (Σ_{i∈c} (x_i - x̄))²) / n`, Miller's formula, without a small-sample factor; the interval
    takes `C/(C-1)` into the variance and t with C - 1 degrees of freedom, for few clusters. Without
    `cluster` each value is its own. One cluster: the mean stands, the error does not (`too_few_units`).

    Args:
        values: Numbers; None and NaN are missing.
        cluster: An id per value.
        confidence_level: Level of the interval.

    References:
        [1] E. Miller (2024), Adding error bars to evals, arXiv:2411.00640.
    """
    numbers = numeric_column(values, "values")
    there = ~np.isnan(numbers)
    kept = numbers[there]
    ids = cluster_codes(cluster, len(numbers))
    members = np.arange(len(kept)) if ids is None else np.unique(ids[there], return_inverse=True)[1]
    method = f"mean; clustered standard error, t, {confidence_level:.0%}"
    n_missing = len(numbers) - len(kept)
    if not len(kept):
        return Estimate.undefined("no_values", method=method, n_missing=n_missing)
    ends = mean_ends(kept, members, confidence_level)
    mean = float(kept.mean())
    if ends.se is None:
        return Estimate(mean, n=len(kept), method=method, reason="too_few_units", n_missing=n_missing)
    se = math.sqrt(float((np.bincount(members, weights=kept - mean) ** 2).sum())) / len(kept)
    return Estimate(mean, ends.low, ends.high, se, len(kept), method, None, n_missing)
