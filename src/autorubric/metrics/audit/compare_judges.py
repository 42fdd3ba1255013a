"""Comparison of two judges: which is closer to the truth on the same items."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, Unpack, get_args

import numpy as np
from scipy.special import bdtr, chdtrc, gammaln

from autorubric.errors import ArgumentError
from autorubric.metrics.audit.paired_metrics import (
    AnyStat,
    ComparisonStat,
    PairedMetric,
    Statistic,
    Triples,
    paired_metric,
    read_triples,
    side_estimates,
)
from autorubric.metrics.core.contingency import numeric_column
from autorubric.metrics.core.estimate import RELATIVE_ZERO, Estimate, Reason, TestStatistic
from autorubric.metrics.core.estimation import Analytic, Figure, delta, estimate
from autorubric.metrics.core.intervals import normal_quantile, t_statistic
from autorubric.metrics.core.resampling import (
    MOST_UNDEFINED,
    CodedArguments,
    CodedOptions,
    Ends,
    IntervalOptions,
    Units,
    check_choice,
    check_number,
    chunks,
    replicates,
)
from autorubric.metrics.core.result import ResultBase, format_estimate
from autorubric.metrics.core.scales import Array, Scale, Weights
from autorubric.metrics.figures.bias import sign_flip
from autorubric.support.blocks import p_text

PERMUTATIONS = 10_000
"""Default number of random swaps if there are too many to enumerate."""

_OUTCOMES = 1 << 14
_TIE = 1e-9


class PValue(NamedTuple):
    """A p-value with a description of the test, and the reason if the p-value is missing."""

    p_value: float | None
    words: str
    reason: Reason | None = None
    statistic: TestStatistic | None = None
    discordant: tuple[int, int] | None = None


def bootstrap_test(metric: PairedMetric, n_resamples: int, rng: np.random.Generator) -> PValue:
    """Return the smallest level at which the percentile interval of the difference excludes 0."""
    if metric.units.size < 2:
        # Every resample equals the sample, which would look like certainty.
        return PValue(None, "bootstrap", "too_few_units")
    drawn = replicates(metric.units, metric.difference, n_resamples, rng)
    defined = drawn[~np.isnan(drawn)]
    words = f"bootstrap, {n_resamples} resamples"
    if len(defined) < (1 - MOST_UNDEFINED) * n_resamples:
        undefined = n_resamples - len(defined)
        return PValue(None, f"{words}; undefined resamples: {undefined}", "degenerate_resamples")
    slack = RELATIVE_ZERO * max(_scale(metric), float(np.abs(defined).max(initial=0.0)))
    tail = min(np.count_nonzero(defined <= slack), np.count_nonzero(defined >= -slack))
    return PValue(min(1.0, 2 * (1 + int(tail)) / (len(defined) + 1)), words)


def permutation_test(metric: PairedMetric, observed: float, n: int, rng: np.random.Generator) -> PValue:
    """Return the share of swaps of the judges, unit by unit, with a difference at least as large as observed.

    All swaps are enumerated if they have few outcomes; otherwise `n` are drawn, with p = (1 + #) / (n +
    1) (Phipson and Smyth 2010). A swap that leaves the metric undefined counts as a large difference. A swap
    flips the sign of a unit's part in the difference of two means, whose outcomes `sign_flip` can count.
    """
    if metric.gains is not None:
        found = sign_flip(np.repeat(metric.gains, metric.units.counts), n, rng)
        how = f"{n} random swaps" if found.method == "random flips" else found.method
        return PValue(found.p_value, f"permutation test, {how}")
    counts = np.where(metric.movable, metric.units.counts, 0)
    outcomes = math.prod(int(count) + 1 for count in counts[counts > 0][: _OUTCOMES.bit_length()])
    if np.count_nonzero(counts) < _OUTCOMES.bit_length() and outcomes <= _OUTCOMES:
        swaps, weight = _enumerate_swaps(counts, outcomes)
        far = _is_extreme(metric.swapped_difference(swaps), observed, _scale(metric))
        return PValue(min(1.0, float(weight[far].sum())), f"exact permutation test, {outcomes} outcomes")
    extreme, scale = 0, _scale(metric)
    for rows in chunks(n, len(counts)):
        swaps = _draw_swaps(counts, rows, rng)
        extreme += int(np.count_nonzero(_is_extreme(metric.swapped_difference(swaps), observed, scale)))
    return PValue((1 + extreme) / (n + 1), f"permutation test, {n} random swaps")


def _scale(metric: PairedMetric) -> float:
    """Return the magnitude of the two metrics, which bounds the rounding error of their difference."""
    sides = metric.sides(metric.units.total()[None, :])
    return max(float(np.nanmax(np.abs(side), initial=0.0)) for side in sides)


def _is_extreme(values: Array, observed: float, scale: float) -> Array:
    """Return whether each difference is at least as far from 0 as the observed one, up to rounding."""
    return np.asarray(np.isnan(values) | (np.abs(values) >= abs(observed) - _TIE * scale))


def _enumerate_swaps(counts: Array, outcomes: int) -> tuple[Array, Array]:
    """Return every number of swapped units of each kind, `(outcomes, u)`, and its probability."""
    swaps = np.zeros((outcomes, len(counts)))
    logarithm = np.zeros(outcomes)
    rest = np.arange(outcomes)
    for kind in np.flatnonzero(counts):
        count = int(counts[kind])
        rest, moved = np.divmod(rest, count + 1)
        swaps[:, kind] = moved
        ways = gammaln(count + 1) - gammaln(moved + 1) - gammaln(count - moved + 1)
        logarithm += ways - count * math.log(2)
    return swaps, np.exp(logarithm)


def _draw_swaps(counts: Array, rows: int, rng: np.random.Generator) -> Array:
    if counts.max(initial=0) <= 1:
        return (rng.integers(0, 2, size=(rows, len(counts)), dtype=np.int8) * counts).astype(float)
    return rng.binomial(counts, 0.5, size=(rows, len(counts))).astype(float)


def mcnemar_test(triples: Triples, *, exact: bool) -> PValue:
    """Run the two-sided McNemar test of whether a and b are equally often the only right judge.

    The exact p-value is twice the smaller binomial tail over the discordant items. The asymptotic test
    has χ² = (n_a - n_b)² / (n_a + n_b) without continuity correction, as its level stays closest to the
    nominal one (Fagerland, Lydersen and Laake 2013). p is 1 without discordant items.
    """
    right_a, right_b = triples.a == triples.truth, triples.b == triples.truth
    only_a, only_b = (int(np.count_nonzero(one)) for one in (right_a & ~right_b, right_b & ~right_a))
    n, items = only_a + only_b, f"{only_a} items that only a got right, {only_b} that only b got right"
    if exact:
        p = min(1.0, 2 * float(bdtr(min(only_a, only_b), n, 0.5)))
        return PValue(p, f"exact McNemar, {items}", discordant=(only_a, only_b))
    value = (only_a - only_b) ** 2 / n if n else 0.0
    p = float(chdtrc(1, value))
    words = f"asymptotic McNemar, chi-squared = {value:.4f}, 1 degree of freedom, {items}"
    statistic = TestStatistic(name="chi-squared", value=value, df=1, p_value=p)
    return PValue(p, words, statistic=statistic, discordant=(only_a, only_b))


def williams_test(r_a: float, r_b: float, r_ab: float, n: int) -> PValue:
    """Run Williams' t test of two correlations with a common variable (Steiger 1980, equation 7)."""
    words = f"Williams' t, {n - 3} degrees of freedom"
    if n < 4:
        return PValue(None, "Williams' t", "too_few_units")
    if r_a == r_b:
        zero = TestStatistic(name="t", value=0.0, df=n - 3, p_value=1.0)
        return PValue(1.0, f"{words}, t = 0", statistic=zero)
    determinant = max(0.0, 1 - (r_a**2 + r_b**2) - r_ab**2 + 2 * r_a * r_b * r_ab)
    room = 2 * determinant * (n - 1) / (n - 3) + (r_a + r_b) ** 2 * (1 - r_ab) ** 3 / 4
    if room <= 1e-12 or r_ab <= -1 + 1e-12:
        return PValue(None, words, "no_variance")
    t = (r_a - r_b) * math.sqrt((n - 1) * (1 + r_ab) / room)
    statistic = t_statistic(t, n - 3)
    return PValue(statistic.p_value, f"{words}, t = {t:.4f}", statistic=statistic)


Adjustment: TypeAlias = Literal["holm", "bh", "by", "bonferroni"]


def adjust_pvalues(p: Iterable[float | None], method: Adjustment = "holm") -> list[float | None]:
    """Adjust p-values for multiple testing, keeping their order; None stays None and is not counted.

    The m p-values are sorted in increasing order, p_(1) ≤ … ≤ p_(m), and adjusted as follows:

    - `"holm"`: max over j ≤ i of (m - j + 1) p_(j) [1]; reporting adjusted values below α keeps the
      probability of any false positive at or below α;
    - `"bh"`: min over j ≥ i of m p_(j) / j [2]; reporting adjusted values below q keeps the expected fraction
      of false positives among them at or below q, if tests are independent or positively dependent;
    - `"by"`: the `"bh"` value times 1 + 1/2 + … + 1/m [3], with the same guarantee under any dependence;
    - `"bonferroni"`: m p [4], with the same guarantee as `"holm"`, which never gives larger values.

    Adjusted values are capped at 1 and are never below the original p-values.

    Args:
        p: P-values in [0, 1]; None and NaN mark tests that could not be run.
        method: Adjustment method.

    Raises:
        ArgumentError: If a p-value is outside [0, 1], or the method is unknown.

    References:
        [1] S. Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of
            Statistics 6(2), 65-70.
        [2] Y. Benjamini, Y. Hochberg (1995), Controlling the false discovery rate, Journal of the Royal
            Statistical Society B 57(1), 289-300.
        [3] Y. Benjamini, D. Yekutieli (2001), The control of the false discovery rate in multiple testing
            under dependency, Annals of Statistics 29(4), 1165-1188.
        [4] O. J. Dunn (1961), Multiple comparisons among means, JASA 56(293), 52-64.
    """
    check_choice("method", method, Adjustment)
    given = numeric_column(p, "p")
    there = ~np.isnan(given)
    values = given[there]
    if np.any((values < 0) | (values > 1)):
        raise ArgumentError(f"p must be in [0, 1]; got {float(values[(values < 0) | (values > 1)][0])!r}")
    adjusted = np.full(len(given), np.nan)
    order = np.argsort(values, kind="stable")
    adjusted[np.flatnonzero(there)[order]] = _adjust_ascending(values[order], method)
    return [None if np.isnan(one) else float(one) for one in adjusted]


def _adjust_ascending(ascending: Array, method: Adjustment) -> Array:
    m = len(ascending)
    if method == "bonferroni":
        return np.asarray(np.minimum(m * ascending, 1.0))
    rank = np.arange(1, m + 1)
    if method == "holm":
        return np.minimum(np.maximum.accumulate((m - rank + 1) * ascending), 1.0)
    factor = float((1.0 / rank).sum()) if method == "by" else 1.0
    # In this order of operations, rounding never makes the last value less than p.
    scaled = ascending * (factor * (m / rank))
    return np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)


ComparisonMethod: TypeAlias = Literal["bootstrap", "permutation", "mcnemar", "mcnemar-asymptotic", "williams"]

_STATS_OF: dict[str, ComparisonStat] = {
    "mcnemar": "accuracy",
    "mcnemar-asymptotic": "accuracy",
    "williams": "pearson",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeComparison(ResultBase):
    """The result of comparing two judges.

    Attributes:
        difference: Metric of judge a minus metric of judge b.
        p_value: Two-sided p-value for the null hypothesis of no difference; None if there is no test.
        a: Metric of judge a with its own interval.
        b: Metric of judge b with its own interval.
        stat: Name of the metric, or of the function that was used.
        method: Name of the test.
        test: Description of the test with its statistic.
        statistic: Test statistic: t of Williams' test or chi-squared of the asymptotic McNemar test; None for
            the other tests, which count outcomes.
        n_only_a: Number of items that only judge a got right, for McNemar's tests; None for other tests.
        n_only_b: Number of items that only judge b got right, for McNemar's tests; None for other tests.
        n: Number of items that have a true label and both judges' labels.
        n_missing: Number of items excluded because one of these labels is missing.
        reason: Reason why there is no p-value; None if there is one.
    """

    difference: Estimate = field(metadata={"title": "difference, judge a - judge b"})
    p_value: float | None
    a: Estimate = field(metadata={"title": "judge a"})
    b: Estimate = field(metadata={"title": "judge b"})
    stat: str
    method: ComparisonMethod
    test: str
    n: int
    n_missing: int
    reason: Reason | None = None
    statistic: TestStatistic | None = None
    n_only_a: int | None = None
    n_only_b: int | None = None

    _omits_empty_tests: ClassVar[bool] = True

    def _sentence(self) -> str:
        p = f"no p-value ({self.reason})" if self.p_value is None else f"p {p_text(self.p_value)}"
        found = f"Difference in {self.stat}, judge a - judge b: {format_estimate(self.difference)}"
        return f"{found}; {p} ({self.test})."


def compare_judges(  # noqa: PLR0913 - a public entry point with many options
    truth: Iterable[Any],
    a: Iterable[Any],
    b: Iterable[Any],
    *,
    stat: ComparisonStat | Statistic | None = None,
    method: ComparisonMethod = "bootstrap",
    scale: Scale | None = None,
    weights: Weights = None,
    n_permutations: int = PERMUTATIONS,
    **interval: Unpack[CodedArguments],
) -> JudgeComparison:
    """Compare two judges by a metric on the same items, with an interval and a test [1].

    The difference is a minus b. Only items that have all three labels are used. The tests are:

    - `"bootstrap"`: resamples items, or clusters, with replacement. p is the smallest significance level at
      which the percentile interval excludes 0, and at least 2 / (n_resamples + 1). With fewer than about 50
      items, p is too small; use `"permutation"` instead;
    - `"permutation"`: swaps a and b item by item, or cluster by cluster. It is exact if there are few
      possible outcomes, as there are for accuracy; otherwise it uses `n_permutations` random swaps (or
      `n_resamples`, if larger), with p at least 1 / (n_permutations + 1). The null hypothesis is that the
      judges are interchangeable;
    - `"mcnemar"`: exact test for accuracy; p = 1 if there are no items that only one judge got right;
    - `"mcnemar-asymptotic"`: chi-squared test of the same hypothesis, without continuity correction. It is
      less conservative, but needs at least about ten items that only one judge got right;
    - `"williams"`: t test for two correlations that share the truth, for Pearson's r on roughly normal
      numbers; requires at least four items (`too_few_units`).

    If either metric is undefined, so are the difference and p, with the same reason. The interval is a
    percentile bootstrap, except for McNemar's tests, which use Bonett and Price's interval [2].
    `ci="analytic"` uses that interval for the accuracy of unclustered items, and the delta method otherwise.
    Judges that do not differ on any unit have no bootstrap interval (`no_variance`).

    Args:
        truth: True labels; items with None or NaN are dropped.
        a: Labels of judge a; items with None or NaN are dropped.
        b: Labels of judge b; items with None or NaN are dropped.
        stat: Metric, or a function of two arrays (truth, pred) without missing values that returns a number,
            or None if undefined; the function is called for each resample. None uses accuracy for McNemar's
            tests, Pearson's r for Williams' test, and kappa otherwise. Lower is better for `"mae"`.
        method: Test to run.
        scale: Declared categories; None uses the observed ones. For `"mae"` and `"pearson"`, labels are
            converted to their positions on the scale.
        weights: Weights for kappa; see `cohen_kappa`.
        n_permutations: Number of random swaps of a permutation test that is not exact.
        **interval: See `CodedArguments`; McNemar's and Williams' tests do not allow `cluster`.

    Raises:
        ArgumentError: If lengths differ, a label is outside the scale, or stat and method cannot be combined.

    References:
        [1] T. G. Dietterich (1998), Approximate statistical tests for comparing supervised classification
            learning algorithms, Neural Computation 10(7), 1895-1923.
        [2] D. G. Bonett, R. M. Price (2012), Adjusted Wald confidence interval for a difference of binomial
            proportions based on paired data, Journal of Educational and Behavioral Statistics 37(4), 479-488.
    """
    options = CodedOptions(**interval)
    chosen = _check_stat(stat, method, weights, options)
    check_number("n_permutations", n_permutations, "[1, inf)", whole=True)
    triples = read_triples((truth, a, b), chosen, scale, options)
    # All draws use one seed, which a generator supplies, so that they see the same resamples.
    rng = options.rng
    seed = int(rng.integers(2**63 - 1)) if isinstance(rng, np.random.Generator) else rng
    fixed: IntervalOptions = replace(options, rng=seed, cluster=triples.cluster)
    plain = paired_metric(triples, chosen, weights)
    # The better judge comes first, so that exchanging the judges only changes signs.
    swap = triples.n > 0 and bool(plain.difference(plain.units.total()[None, :])[0] < 0)
    ordered = replace(triples, a=triples.b, b=triples.a) if swap else triples
    metric = paired_metric(ordered, chosen, weights) if swap else plain
    difference = estimate_difference(metric, ordered, fixed, adjusted_wald=method.startswith("mcnemar"))
    # Closed-form tests keep the order of the judges, because their statistic has a sign.
    tested = triples if method in _STATS_OF else ordered
    n_swaps = max(options.n_resamples, n_permutations)
    test = _run_test(metric, difference, tested, method, n_swaps, fixed)
    negated = replace(difference.map(lambda value: 0.0 - value), se=difference.se)
    only_a, only_b = test.discordant or (None, None)
    of_a, of_b = side_estimates(triples, plain, chosen, weights, fixed)
    return JudgeComparison(
        difference=negated if swap else difference,
        p_value=test.p_value,
        a=of_a,
        b=of_b,
        stat=plain.name if callable(chosen) else chosen,
        method=method,
        test=test.words,
        n=triples.n,
        n_missing=triples.n_missing,
        reason=test.reason,
        statistic=test.statistic,
        n_only_a=only_a,
        n_only_b=only_b,
    )


def _check_stat(
    stat: ComparisonStat | Statistic | None,
    method: ComparisonMethod,
    weights: Weights,
    options: IntervalOptions,
) -> AnyStat:
    """Return the requested metric, or the one that the method tests."""
    check_choice("method", method, ComparisonMethod)
    only = _STATS_OF.get(method)
    chosen: AnyStat = stat if stat is not None else only or "kappa"
    if not callable(chosen) and chosen not in get_args(ComparisonStat):
        raise ArgumentError(
            f"stat must be one of {list(get_args(ComparisonStat))} or a function; got {stat!r}"
        )
    if only is not None and chosen != only:
        raise ArgumentError(f"method={method!r} tests {only}, not {stat!r}; use method='permutation'")
    if only is not None and options.cluster is not None:
        raise ArgumentError(f"method={method!r} requires independent items; with cluster use 'permutation'")
    if weights is not None and chosen != "kappa":
        raise ArgumentError(f"weights apply only to stat='kappa'; got stat={stat!r}")
    return chosen


def _run_test(
    metric: PairedMetric,
    difference: Estimate,
    triples: Triples,
    method: ComparisonMethod,
    n_permutations: int,
    options: IntervalOptions,
) -> PValue:
    if difference.value is None:
        return PValue(None, method, difference.reason)
    if method == "mcnemar" or method == "mcnemar-asymptotic":
        return mcnemar_test(triples, exact=method == "mcnemar")
    if method == "williams":
        r = np.corrcoef(np.stack((triples.truth, triples.a, triples.b)))
        return williams_test(float(r[0, 1]), float(r[0, 2]), float(r[1, 2]), triples.n)
    if method == "permutation":
        return permutation_test(metric, difference.value, n_permutations, options.generator())
    return bootstrap_test(metric, options.n_resamples, options.generator())


def estimate_difference(
    metric: PairedMetric, triples: Triples, options: IntervalOptions, *, adjusted_wald: bool = False
) -> Estimate:
    """Estimate the metric of a minus that of b; `adjusted_wald` selects that interval for `ci="auto"`."""
    shares = metric.name == "accuracy" and triples.cluster is None
    analytic: Analytic | None = adjusted_wald_ends if shares else delta if metric.smooth else None
    bound = math.inf if metric.name == "MAE" or not metric.smooth else 1.0 if shares else 2.0
    figure = Figure(
        name=f"difference in {metric.name}, judge a - judge b",
        compute=metric.difference,
        reason=metric.reason,
        bounds=(-bound, bound),
        auto="analytic" if adjusted_wald else "percentile",
        auto_clustered="percentile",
        analytic=analytic,
        on_table=False,
    )
    found = estimate(figure, metric.units, options, n_missing=triples.n_missing)
    if found.low is not None and not metric.movable.any() and "bootstrap" in found.method:
        return replace(found, low=None, high=None, se=None, reason="no_variance")
    return found


def adjusted_wald_ends(figure: Figure, units: Units, value: float, confidence_level: float) -> Ends:
    """Return Wald's interval with one discordant item of each kind added (Bonett and Price 2012)."""
    assert units.sums is not None
    apart = units.sums[:, 1] - units.sums[:, 3]
    n = float(units.counts.sum())
    only_a = (float(units.counts[apart > 0].sum()) + 1) / (n + 2)
    only_b = (float(units.counts[apart < 0].sum()) + 1) / (n + 2)
    half = normal_quantile(confidence_level) * math.sqrt((only_a + only_b - (only_a - only_b) ** 2) / (n + 2))
    se = math.sqrt(max(0.0, float((units.counts * (apart - value) ** 2).sum()))) / n
    centre = only_a - only_b
    return Ends(max(-1.0, centre - half), min(1.0, centre + half), se)
