"""The distance between two distributions of scores, and the Kolmogorov-Smirnov test."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Unpack

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.core.contingency import cluster_codes, numeric_column
from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.metric import ORDERED, metric
from autorubric.metrics.core.resampling import (
    IntervalArguments,
    IntervalOptions,
    check_number,
    chunks,
    draw_weights,
    interval_of,
)
from autorubric.metrics.core.scales import MISSING, Array, Codes, Interval, Scale, as_sequence


@dataclass(frozen=True, slots=True)
class _Samples:
    """Two samples as positions on a common grid of values, with -1 for missing values."""

    left: Codes  # positions of sample a, shape `(n_a,)`
    right: Codes  # positions of sample b, shape `(n_b,)`
    grid: Array  # sorted distinct values
    unit: str

    @property
    def size(self) -> int:
        return len(self.grid)

    @property
    def n_missing(self) -> int:
        return int(np.count_nonzero(self.left < 0) + np.count_nonzero(self.right < 0))

    def counts(self) -> tuple[Array, Array]:
        """Count how often each position occurs in each sample."""
        left, right = (
            np.bincount(side[side >= 0], minlength=self.size).astype(float)
            for side in (self.left, self.right)
        )
        return left, right


def _cdf_distance(grid: Array, weights_a: Array, weights_b: Array) -> Array:
    """Compute ∫ |F_a - F_b| over the grid of distinct values, for weights of shape `(..., len(grid))`."""
    below_a = np.cumsum(weights_a, axis=-1)[..., :-1] / weights_a.sum(-1)[..., None]
    below_b = np.cumsum(weights_b, axis=-1)[..., :-1] / weights_b.sum(-1)[..., None]
    return np.asarray((np.abs(below_a - below_b) * np.diff(grid)).sum(-1))


def _place_on_grid(a: Iterable[Any], b: Iterable[Any], scale: Scale | None) -> _Samples:
    """Return both samples on the grid of their numbers."""
    sides, divisor, unit = [], 1.0, "units of the scores"
    for values, what in ((a, "a"), (b, "b")):
        if scale is None or isinstance(scale, Interval):
            numbers = numeric_column(values, what)
            sides.append(numbers if scale is None else scale.check(numbers))
            continue
        if scale.positions is None:
            raise ArgumentError(
                f"{scale} does not define distances between labels; pass Ordinal(labels, values) or "
                "Interval(low, high)"
            )
        codes = scale.encode(as_sequence(values, what))
        sides.append(np.where(codes >= 0, scale.positions[codes], np.nan))
    span: float | None = None
    if isinstance(scale, Interval):
        span = scale.span
    elif scale is not None and scale.positions is not None:
        span = float(np.ptp(scale.positions))
    if span:
        divisor, unit = span, "units of the declared range"
    both = np.concatenate(sides)
    present = ~np.isnan(both)
    grid, places = np.unique(both[present], return_inverse=True)
    codes = np.full(len(both), MISSING, dtype=np.int64)
    codes[present] = places.reshape(-1)
    return _Samples(codes[: len(sides[0])], codes[len(sides[0]) :], grid / divisor, unit)


@metric(
    inputs="samples",
    levels=ORDERED,
    bounds=(0.0, None),
    reference="Rubner, Tomasi and Guibas 2000",
    perfect=0.0,
)
def wasserstein_distance(
    a: Iterable[Any], b: Iterable[Any], *, scale: Scale | None = None, **interval: Unpack[IntervalArguments]
) -> Estimate:
    """Compute the Wasserstein distance W₁ = ∫ |F_a(x) - F_b(x)| dx between two unpaired samples.

    It is also called the earth mover's distance [1]; `earth_movers_distance` is the same function. It is
    never less than the absolute difference of the means.

    If no scale is passed, the distance is in the units of the numbers. Otherwise, labels take the scale's
    values and the distance is divided by the declared range, unless it is open. It is undefined if a sample
    is empty (`no_values`). The interval is a percentile bootstrap that resamples the two samples separately
    or, with clusters, together. Since distances cannot be negative, it is biased upwards near 0.

    Args:
        a: First sample: numbers, or labels on the scale; None and NaN count as missing.
        b: Second sample, whose length may differ.
        scale: `Interval(low, high)`, `Ordinal(labels, values)` or `Binary()`.
        **interval: See `IntervalArguments`; with `cluster`, both samples need one value per unit.

    References:
        [1] Y. Rubner, C. Tomasi, L. J. Guibas (2000), The earth mover's distance as a metric for image
            retrieval, International Journal of Computer Vision 40, 99-121.
    """
    options = IntervalOptions(**interval)
    samples = _place_on_grid(a, b, scale)
    name = f"Wasserstein distance in {samples.unit}, pairing ignored"
    if options.ci not in ("auto", "percentile", None):
        raise ArgumentError(f"ci must be 'auto', 'percentile' or None for a distance; got {options.ci!r}")
    counts = samples.counts()
    sizes = [int(side.sum()) for side in counts]
    n, n_missing = sum(sizes), samples.n_missing
    if not all(sizes):
        return Estimate.undefined("no_values", n=n, method=name, n_missing=n_missing)
    value = float(_cdf_distance(samples.grid, *counts))
    if options.ci is None:
        return Estimate(value, n=n, method=name, n_missing=n_missing)
    tables = None if options.cluster is None else _by_cluster(samples, options)
    text = f"{name}; {options.describe()}"
    if min(sizes) < 2 or (tables is not None and len(tables[0]) < 2):
        return Estimate(value, n=n, method=text, reason="too_few_units", n_missing=n_missing)
    drawn = _resample(samples.grid, counts, tables, options)
    ends = interval_of(drawn, options)[0]
    reason: Reason | None = "degenerate_resamples" if ends.low is None else None
    return Estimate(value, *ends, n, text, reason, n_missing)


earth_movers_distance = wasserstein_distance
"""The other name of `wasserstein_distance`."""


def _by_cluster(samples: _Samples, options: IntervalOptions) -> tuple[Array, Array]:
    """Count the values of each cluster in each sample, shape `(C, G)`; empty clusters are dropped."""
    if len(samples.left) != len(samples.right):
        raise ArgumentError(
            f"cluster needs samples of equal length; a has {len(samples.left)} values, b {len(samples.right)}"
        )
    members = cluster_codes(options.cluster, len(samples.left))
    assert members is not None
    n_clusters = int(members.max(initial=-1)) + 1
    tables = []
    for side in (samples.left, samples.right):
        flat = (members * samples.size + side)[side >= 0]
        table = np.bincount(flat, minlength=n_clusters * samples.size)
        tables.append(table.reshape(n_clusters, samples.size).astype(float))
    there = tables[0].any(axis=1) | tables[1].any(axis=1)
    return tables[0][there], tables[1][there]


def _resample(
    grid: Array, counts: tuple[Array, Array], tables: tuple[Array, Array] | None, options: IntervalOptions
) -> Array:
    rng = options.generator()
    found = []
    for rows in chunks(options.n_resamples, max(len(grid), 1 if tables is None else len(tables[0]))):
        if tables is None:
            left, right = (
                rng.multinomial(int(c.sum()), c / c.sum(), size=rows).astype(float) for c in counts
            )
        else:
            size = len(tables[0])
            weights = draw_weights(np.ones(size, dtype=np.int64), size, rows, rng)
            left, right = weights @ tables[0], weights @ tables[1]
        # Resamples in which one sample is empty have no distance.
        full = (left.sum(-1) > 0) & (right.sum(-1) > 0)
        found.append(np.full(rows, np.nan))
        found[-1][full] = _cdf_distance(grid, left[full], right[full])
    return np.concatenate(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-compatible values. Undefined values are None, never NaN."""
        return asdict(self)


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
    check_number("bins", bins, "[1, inf)", whole=True)
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
