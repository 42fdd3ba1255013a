"""Comparison of two raters' score distributions: distances, the Kolmogorov-Smirnov test and summaries.

These functions ignore which score belongs to which item, so two raters can have identical distributions and
still disagree on every item. Only `systematic_bias` compares the scores item by item.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics._bias import BiasResult, bias as systematic_bias
from autorubric.metrics._columns import numeric_column
from autorubric.metrics._distances import js_distance, on_grid, wasserstein_distance, work
from autorubric.metrics._estimate import Reason
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Interval

__all__ = [
    "BiasResult",
    "DistributionResult",
    "EMDResult",
    "KSTestResult",
    "earth_movers_distance",
    "js_distance",
    "ks_test",
    "score_distribution",
    "systematic_bias",
    "wasserstein_distance",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-compatible values. Undefined values are None, never NaN."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class EMDResult(_Result):
    """Earth mover's distance between two samples.

    Attributes:
        emd: Distance, in the units of the scores; None if either sample is empty.
        mean_difference: Mean of b - mean of a, at most `emd` in absolute value; None if a sample is empty.
        n_a: Number of non-missing scores in a.
        n_b: Number of non-missing scores in b.
        reason: Reason why the distance is undefined; None if it is defined.
    """

    emd: float | None
    mean_difference: float | None
    n_a: int
    n_b: int
    reason: Reason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KSTestResult(_Result):
    """Result of a two-sample Kolmogorov-Smirnov test.

    Attributes:
        statistic: Largest distance between the distribution functions; None if either sample is empty.
        p_value: Two-sided p-value for the null hypothesis of equal distributions, conservative with ties;
            None if either sample is empty.
        is_significant: Whether the p-value is below 0.05; False if it is None.
        n_a: Number of non-missing scores in a.
        n_b: Number of non-missing scores in b.
        reason: Reason why the statistic is undefined; None if it is defined.
    """

    statistic: float | None
    p_value: float | None
    is_significant: bool
    n_a: int
    n_b: int
    reason: Reason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributionResult(_Result):
    """Summary statistics and histogram of a sample of scores. All statistics are None if there are no scores.

    Attributes:
        n_samples: Number of non-missing scores.
        n_missing: Number of missing scores.
        mean: Arithmetic mean.
        std: Standard deviation with denominator n - 1; None if there are fewer than two scores.
        minimum: Smallest score.
        q25: First quartile, linearly interpolated between order statistics.
        median: Median, the second quartile.
        q75: Third quartile, interpolated in the same way.
        maximum: Largest score.
        bin_edges: Edges of the histogram bins, one more than the number of bins.
        bin_counts: Number of scores in each bin. The last bin includes its upper edge.
        reason: Reason why the statistics are undefined; None if they are defined.
    """

    n_samples: int
    n_missing: int
    mean: float | None = None
    std: float | None = None
    minimum: float | None = None
    q25: float | None = None
    median: float | None = None
    q75: float | None = None
    maximum: float | None = None
    bin_edges: tuple[float, ...] = ()
    bin_counts: tuple[int, ...] = ()
    reason: Reason | None = None


def _present(values: Iterable[Any], what: str) -> Array:
    numbers = numeric_column(values, what)
    return numbers[~np.isnan(numbers)]


def earth_movers_distance(a: Iterable[Any], b: Iterable[Any]) -> EMDResult:
    """Compute the earth mover's distance between two samples, W₁ = ∫ |F_a(x) - F_b(x)| dx [1].

    The distance has the units of the scores and is not scaled by the range of the samples. It is None if
    either sample is empty (reason `no_values`).

    Args:
        a: Scores of the first sample. None and NaN count as missing.
        b: Scores of the second sample, whose length may differ.

    References:
        [1] Y. Rubner, C. Tomasi, L. J. Guibas (2000), The earth mover's distance as a metric for image
            retrieval, International Journal of Computer Vision 40, 99-121.
    """
    left, right = _present(a, "a"), _present(b, "b")
    if not (len(left) and len(right)):
        return EMDResult(emd=None, mean_difference=None, n_a=len(left), n_b=len(right), reason="no_values")
    grid, at_a, at_b = on_grid(left, right)
    counts = [np.bincount(at, minlength=len(grid)).astype(float) for at in (at_a, at_b)]
    return EMDResult(
        emd=float(work(grid, *counts)),
        mean_difference=float(right.mean() - left.mean()),
        n_a=len(left),
        n_b=len(right),
    )


def ks_test(a: Iterable[Any], b: Iterable[Any]) -> KSTestResult:
    """Run the two-sample Kolmogorov-Smirnov test with the statistic D = max |F_a - F_b| [1].

    The p-value is exact for up to 10,000 scores per sample and conservative with ties. The test ignores any
    pairing. The statistic and the p-value are None if either sample is empty (reason `no_values`).

    Args:
        a: Scores of the first sample. None and NaN count as missing.
        b: Scores of the second sample, whose length may differ.

    References:
        [1] J. L. Hodges (1958), The significance probability of the Smirnov two-sample test, Arkiv för
            Matematik 3, 469-486.
    """
    left, right = _present(a, "a"), _present(b, "b")
    n_a, n_b = len(left), len(right)
    if not (n_a and n_b):
        return KSTestResult(
            statistic=None, p_value=None, is_significant=False, n_a=n_a, n_b=n_b, reason="no_values"
        )
    statistic, p_value = _ks(left, right)
    return KSTestResult(statistic=statistic, p_value=p_value, is_significant=p_value < 0.05, n_a=n_a, n_b=n_b)


def _ks(left: Array, right: Array) -> tuple[float, float]:
    from scipy.stats import ks_2samp  # imported here because importing scipy.stats is slow

    with warnings.catch_warnings():
        # scipy warns if it cannot compute the exact p-value and falls back to the asymptotic one.
        warnings.simplefilter("ignore", RuntimeWarning)
        found = ks_2samp(left, right)
    return float(found.statistic), float(min(max(found.pvalue, 0.0), 1.0))


def score_distribution(
    scores: Iterable[Any], *, bins: int = 10, scale: Interval | None = None
) -> DistributionResult:
    """Compute the mean, standard deviation, quartiles and histogram of scores.

    Args:
        scores: Numbers to summarize. None and NaN count as missing.
        bins: Number of histogram bins.
        scale: Scale whose bounds define the histogram range; None uses the range of the scores.
    """
    if bins < 1:
        raise ArgumentError(f"bins must be a positive integer; got {bins!r}")
    column = numeric_column(scores, "scores")
    there = column[~np.isnan(column)]
    n_missing = len(column) - len(there)
    if not len(there):
        return DistributionResult(n_samples=0, n_missing=n_missing, reason="no_values")
    span = (float(there.min()), float(there.max()))
    if scale is not None:
        scale.check(there)
        span = (span[0] if scale.low is None else scale.low, span[1] if scale.high is None else scale.high)
    counts, edges = np.histogram(there, bins=bins, range=span)
    minimum, q25, median, q75, maximum = (float(q) for q in np.quantile(there, (0, 0.25, 0.5, 0.75, 1)))
    return DistributionResult(
        n_samples=len(there),
        n_missing=n_missing,
        mean=float(there.mean()),
        std=float(there.std(ddof=1)) if len(there) > 1 else None,
        minimum=minimum,
        q25=q25,
        median=median,
        q75=q75,
        maximum=maximum,
        bin_edges=tuple(float(edge) for edge in edges),
        bin_counts=tuple(int(count) for count in counts),
    )
