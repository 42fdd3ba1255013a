"""Comparison of two judges: which is closer to the truth on the same items."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeAlias, Unpack, get_args

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.audit.comparison_tests import (
    PERMUTATIONS,
    PValue,
    asymptotic_mcnemar_test,
    bootstrap_test,
    mcnemar_test,
    permutation_test,
    williams_test,
)
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
from autorubric.metrics.core.estimate import Estimate, Reason, TestStatistic
from autorubric.metrics.core.estimation import Analytic, Figure, delta, estimate
from autorubric.metrics.core.intervals import Ends, normal_quantile
from autorubric.metrics.core.rater_tables import no_analytic
from autorubric.metrics.core.resampling import CodedArguments, CodedOptions, IntervalOptions, Units
from autorubric.metrics.core.result import AuditFindings, format_estimate
from autorubric.metrics.core.scales import Scale, Weights
from autorubric.support.blocks import p_text

ComparisonMethod: TypeAlias = Literal["bootstrap", "permutation", "mcnemar", "mcnemar-asymptotic", "williams"]

_STATS_OF: dict[str, ComparisonStat] = {
    "mcnemar": "accuracy",
    "mcnemar-asymptotic": "accuracy",
    "williams": "pearson",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeComparison(AuditFindings):
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


def compare_judges(
    truth: Iterable[Any],
    a: Iterable[Any],
    b: Iterable[Any],
    *,
    stat: ComparisonStat | Statistic | None = None,
    method: ComparisonMethod = "bootstrap",
    scale: Scale | None = None,
    weights: Weights = None,
    **interval: Unpack[CodedArguments],
) -> JudgeComparison:
    """Compare two judges by a metric on the same items, with an interval and a test [1].

    The difference is a minus b. Only items that have all three labels are used. The tests are:

    - `"bootstrap"`: resamples items, or clusters, with replacement. p is the smallest significance level at
      which the percentile interval excludes 0, and at least 2 / (n_resamples + 1). With fewer than about 50
      items, p is too small; use `"permutation"` instead;
    - `"permutation"`: swaps a and b item by item, or cluster by cluster. It is exact if there are few
      possible outcomes; otherwise it uses 10,000 random swaps (or `n_resamples`, if larger), with p at least
      1 / 10,001. The null hypothesis is that the judges are interchangeable;
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
    triples = read_triples((truth, a, b), chosen, scale, options)
    # All draws use one seed, which a generator supplies, so that they see the same resamples.
    rng = options.rng
    seed = int(rng.integers(2**63 - 1)) if isinstance(rng, np.random.Generator) else rng
    options = replace(options, rng=seed, cluster=triples.cluster, labels=None)
    plain = paired_metric(triples, chosen, weights)
    # The better judge comes first, so that exchanging the judges only changes signs.
    swap = triples.n > 0 and bool(plain.difference(plain.units.total()[None, :])[0] < 0)
    ordered = triples.swap_judges() if swap else triples
    metric = paired_metric(ordered, chosen, weights) if swap else plain
    difference = estimate_difference(metric, ordered, options, adjusted_wald=method.startswith("mcnemar"))
    # Closed-form tests keep the order of the judges, because their statistic has a sign.
    test = _run_test(metric, difference, triples if method in _STATS_OF else ordered, method, options)
    only_a, only_b = test.discordant or (None, None)
    of_a, of_b = side_estimates(triples, plain, chosen, weights, options)
    return JudgeComparison(
        difference=negate(difference) if swap else difference,
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
    if method not in get_args(ComparisonMethod):
        raise ArgumentError(f"method must be one of {list(get_args(ComparisonMethod))}; got {method!r}")
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
    options: IntervalOptions,
) -> PValue:
    if difference.value is None:
        return PValue(None, method, difference.reason)
    if method == "mcnemar" or method == "mcnemar-asymptotic":
        right_a, right_b = triples.a == triples.truth, triples.b == triples.truth
        only_a, only_b = np.count_nonzero(right_a & ~right_b), np.count_nonzero(right_b & ~right_a)
        test = mcnemar_test if method == "mcnemar" else asymptotic_mcnemar_test
        return test(int(only_a), int(only_b))
    if method == "williams":
        columns = (triples.truth, triples.a, triples.b)
        r = np.corrcoef(np.stack(columns))
        return williams_test(float(r[0, 1]), float(r[0, 2]), float(r[1, 2]), triples.n)
    if method == "permutation":
        n = max(options.n_resamples, PERMUTATIONS)
        return permutation_test(metric, difference.value, n, options.generator())
    return bootstrap_test(metric, options.n_resamples, options.generator())


def estimate_difference(
    metric: PairedMetric, triples: Triples, options: IntervalOptions, *, adjusted_wald: bool = False
) -> Estimate:
    """Estimate the metric of a minus that of b; `adjusted_wald` selects that interval for `ci="auto"`."""
    shares = metric.name == "accuracy" and triples.cluster is None
    analytic: Analytic = adjusted_wald_ends if shares else delta if metric.smooth else no_analytic
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
    """Return Bonett and Price's interval: Wald's after adding one discordant item of each kind [1].

    References:
        [1] D. G. Bonett, R. M. Price (2012), Journal of Educational and Behavioral Statistics 37(4), 479-488.
    """
    assert units.sums is not None
    apart = units.sums[:, 1] - units.sums[:, 3]
    n = float(units.counts.sum())
    only_a = (float(units.counts[apart > 0].sum()) + 1) / (n + 2)
    only_b = (float(units.counts[apart < 0].sum()) + 1) / (n + 2)
    half = normal_quantile(confidence_level) * math.sqrt((only_a + only_b - (only_a - only_b) ** 2) / (n + 2))
    se = math.sqrt(max(0.0, float((units.counts * (apart - value) ** 2).sum()))) / n
    centre = only_a - only_b
    return Ends(max(-1.0, centre - half), min(1.0, centre + half), se)


def negate(found: Estimate) -> Estimate:
    """Return the estimate with its sign reversed and its bounds swapped."""
    value, low, high = (
        None if number is None else 0.0 - number for number in (found.value, found.high, found.low)
    )
    return replace(found, value=value, low=low, high=high)
