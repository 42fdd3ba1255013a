"""Intervals: Wilson, clusters, bootstrap, seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from autorubric.errors import ArgumentError
from autorubric.metrics import (
    accuracy,
    balanced_accuracy,
    clustered_se,
    cohen_kappa,
    f1,
    mcc,
    precision,
    recall,
    wilson,
)
from tests.metrics.asserting import brackets, number, width

RNG = np.random.default_rng(2)
TRUTH = RNG.integers(0, 2, 120)
PRED = np.where(RNG.random(120) < 0.85, TRUTH, 1 - TRUTH)
ITEMS = np.arange(120) // 4


def test_wilson_at_the_ends():
    """At none and all the interval has width and stays inside; no trial is undefined."""
    assert (wilson(0, 20).low, wilson(20, 20).high) == (0.0, 1.0)
    assert number(wilson(0, 20).high) > 0.1
    assert wilson(0, 0).reason == "no_values"
    for arguments in ((3, 2), (-1, 2)):
        with pytest.raises(ArgumentError):
            wilson(*arguments)
    with pytest.raises(ArgumentError):
        wilson(1, 2, confidence_level=1.0)


def test_clustered_se_is_millers_formula_with_the_factor_of_few_clusters():
    """√(C / (C - 1) · Σ_c (Σ (x - mean))²) / n by hand for two clusters of two."""
    found = clustered_se([1.0, 2.0, 4.0, 5.0], ["a", "a", "b", "b"])
    assert found == 3.0
    assert found.se == pytest.approx(math.sqrt(2 * ((-3.0) ** 2 + 3.0**2)) / 4)
    assert clustered_se([1.0, 2.0, None]).n_missing == 1
    assert clustered_se([1.0, 2.0], ["a", "a"]).reason == "too_few_units"
    assert clustered_se([]).reason == "no_values"


def test_wilson_takes_the_interval_arguments():
    """None leaves out the interval; two counts have neither clusters nor resamples."""
    assert wilson(3, 10, ci="analytic", n_resamples=5, rng=1).to_dict() == wilson(3, 10).to_dict()
    alone = wilson(3, 10, ci=None)
    assert (alone.value, alone.low, alone.se, alone.reason) == (0.3, None, None, None)
    for arguments in ({"ci": "percentile"}, {"cluster": [1]}, {"ci": "bca"}, {"ci": "never"}):
        with pytest.raises(ArgumentError):
            wilson(3, 10, **arguments)


def test_clustered_se_takes_the_interval_arguments():
    """The error is the same whatever the interval; the bootstrap of many clusters is near the t interval."""
    values = np.random.default_rng(5).normal(size=1200) + np.repeat(
        np.random.default_rng(6).normal(size=300), 4
    )
    cluster = np.repeat(np.arange(300), 4)
    closed = clustered_se(values, cluster)
    drawn = clustered_se(values, cluster, ci="percentile", n_resamples=2000, rng=1)
    assert (drawn.value, drawn.se) == (closed.value, closed.se)
    assert (drawn.low, drawn.high) == pytest.approx((closed.low, closed.high), abs=0.02)
    again = clustered_se(values, cluster, ci="percentile", n_resamples=2000, rng=1)
    assert again.to_dict() == drawn.to_dict()
    alone = clustered_se(values, cluster, ci=None)
    assert (alone.value, alone.se, alone.low, alone.reason) == (closed.value, closed.se, None, None)
    for arguments in ({"ci": "bca"}, {"ci": "smoothed"}, {"n_resamples": 0}, {"confidence_level": 1.0}):
        with pytest.raises(ArgumentError):
            clustered_se(values, cluster, **arguments)


@pytest.mark.parametrize("n_clusters", [2, 3, 10, 40])
def test_the_interval_of_a_clustered_mean_is_its_value_and_its_error(n_clusters):
    """low and high are value ± t · se with C - 1 degrees of freedom, to the last digit that matters."""
    rng = np.random.default_rng(n_clusters)
    cluster = np.repeat(np.arange(n_clusters), 5)
    found = clustered_se(rng.normal(size=5 * n_clusters) + rng.normal(size=n_clusters)[cluster], cluster)
    half = stats.t.ppf(0.975, n_clusters - 1) * number(found.se)
    assert (found.low, found.high) == pytest.approx((float(found) - half, float(found) + half))


def test_the_error_of_values_without_clusters_is_that_of_scipy():
    """Each value its own cluster: s / √n."""
    values = np.random.default_rng(1).normal(size=7)
    assert clustered_se(values).se == pytest.approx(stats.sem(values))


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize(("successes", "n"), [(0, 1), (0, 20), (3, 20), (20, 20), (7, 1000)])
def test_clopper_pearson_is_that_of_statsmodels(successes, n, level):
    """The exact interval is `proportion_confint(method="beta")`, 0 and 1 included."""
    found = wilson(successes, n, method="clopper-pearson", confidence_level=level)
    expected = proportion_confint(successes, n, alpha=1 - level, method="beta")
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-12)
    assert "Clopper-Pearson" in found.method


def test_clopper_pearson_of_a_published_example():
    """Newcombe 1998, table I, method 5: 81 of 263 gives .2527 to .3676, 0 of 20 gives 0 to .1684."""
    for successes, n, low, high in ((81, 263, 0.2527, 0.3676), (0, 20, 0.0, 0.1684)):
        found = wilson(successes, n, method="clopper-pearson")
        assert (round(number(found.low), 4), round(number(found.high), 4)) == (low, high)
    with pytest.raises(ArgumentError, match="clopper-pearson"):
        wilson(1, 2, method="wald")  # type: ignore[arg-type]


def test_accuracy_uses_wilson_and_precision_its_own_denominator():
    """Unclustered shares have Wilson's interval on their own trials."""
    hits = int((TRUTH == PRED).sum())
    assert (accuracy(TRUTH, PRED).low, accuracy(TRUTH, PRED).high) == pytest.approx(
        (wilson(hits, 120).low, wilson(hits, 120).high)
    )
    judged = int(PRED.sum())
    expected = wilson(int((TRUTH & PRED).sum()), judged)
    assert precision(TRUTH, PRED).low == pytest.approx(expected.low)


def test_clusters_widen_what_items_share():
    """Pairs written five times, each its own cluster, have the interval of the pairs."""
    five = np.repeat(np.arange(120), 5)
    wide = accuracy(TRUTH[five], PRED[five], cluster=five)
    single = accuracy(TRUTH, PRED, cluster=range(120))
    assert (wide.low, wide.high) == pytest.approx((single.low, single.high))
    narrow = accuracy(TRUTH[five], PRED[five])
    assert width(narrow) < 0.6 * width(wide)


def test_perfect_and_lonely_clusters():
    """All right over clusters falls back on the score interval; one cluster has none."""
    perfect = accuracy(TRUTH, TRUTH, cluster=ITEMS)
    assert 0.8 < number(perfect.low) < number(perfect.high) == 1.0
    assert accuracy([1, 0], [1, 1], cluster=["a", "a"]).reason == "too_few_units"
    lonely = cohen_kappa([1, 0], [1, 1], cluster=["a", "a"], ci="percentile")
    assert (lonely.value, lonely.reason) == (0.0, "too_few_units")
    assert cohen_kappa([1, 0], [1, 1], cluster=["a", "a"], ci="analytic").reason == "too_few_units"


@pytest.mark.parametrize("ci", ["auto", "analytic", "percentile", "bca", "smoothed"])
@pytest.mark.parametrize("cluster", [None, ITEMS, np.arange(120) + 1000])
@pytest.mark.parametrize("function", [accuracy, balanced_accuracy, cohen_kappa, f1, mcc, recall])
def test_every_method_brackets_the_estimate(function, cluster, ci):
    """Each method gives an ordered interval of sensible width around the value, clustered or not."""
    found = function(TRUTH, PRED, cluster=cluster, ci=ci, n_resamples=400)
    assert brackets(found)
    assert width(found) < 0.5
    assert 0 < number(found.se) < 0.15
    assert function(TRUTH, PRED, ci=None).low is None


def test_many_clusters_are_drawn_by_index():
    """Above a few hundred clusters the draws are made otherwise, with the same distribution."""
    truth, pred = np.tile(TRUTH, 10), np.tile(PRED, 10)
    for ci in ("percentile", "smoothed"):
        clustered = cohen_kappa(truth, pred, cluster=range(1200), ci=ci)
        plain = cohen_kappa(truth, pred, ci=ci)
        assert clustered.low == pytest.approx(plain.low, abs=0.01)
        assert clustered.high == pytest.approx(plain.high, abs=0.01)


def test_the_same_seed_gives_the_same_interval():
    """Intervals depend on the seed alone; a generator goes on where it stands."""
    first, again = (cohen_kappa(TRUTH, PRED, rng=7) for _ in range(2))
    assert (first.low, first.high) == (again.low, again.high)
    assert cohen_kappa(TRUTH, PRED, rng=8).low != first.low
    generator = np.random.default_rng(7)
    assert cohen_kappa(TRUTH, PRED, rng=generator).low == first.low
    assert cohen_kappa(TRUTH, PRED, rng=generator).low != first.low


def test_degenerate_resamples_are_counted_and_many_refuse():
    """Where resamples are often undefined there is no interval, and the reason says so."""
    found = mcc([1, 0] + [0] * 18, [0, 1] + [0] * 18, ci="percentile")
    assert found.is_defined
    assert (found.low, found.reason) == (None, "degenerate_resamples")
    assert "undefined" in found.method
    some = mcc([1] * 10 + [0] * 4, [1] * 11 + [0] * 3, ci="percentile")
    assert some.low is not None
    assert "undefined resamples: " in some.method


def test_bca_without_a_jackknife():
    """Where leaving out a unit leaves nothing defined, BCa gives no interval."""
    found = accuracy([1, 1], [1, 0], ci="bca")
    assert found.value == 0.5
    undefined = balanced_accuracy([1, 0, 0], [1, 1, 0], ci="bca", rng=1)
    assert (undefined.low, undefined.value) == (None, 0.75) or number(undefined.low) < 0.75


@pytest.mark.parametrize("prevalence", [0.5, 0.9])
def test_smoothed_interval_covers_kappa(prevalence):
    """At n = 50 the nominal 95 % interval covers the true kappa in at least 92 % of 400 draws."""
    rng = np.random.default_rng(0)
    p = np.array([[(1 - prevalence) * 0.85, (1 - prevalence) * 0.15], [prevalence * 0.1, prevalence * 0.9]])
    true = float(cohen_kappa(table=np.round(p * 10**6), ci=None))
    covered = 0
    for _ in range(400):
        found = cohen_kappa(table=rng.multinomial(50, p.ravel()).reshape(2, 2), n_resamples=300, rng=rng)
        covered += number(found.low) <= true <= number(found.high)
    assert covered >= 0.92 * 400


def test_options_are_checked():
    """Levels, counts, methods and names outside the allowed raise."""
    for arguments in ({"ci": "basic"}, {"confidence_level": 1.5}, {"n_resamples": 0}, {"labels": 0}):
        with pytest.raises(ArgumentError):
            cohen_kappa(TRUTH, PRED, **arguments)
    with pytest.raises(TypeError):
        cohen_kappa(TRUTH, PRED, confidence=0.9)  # type: ignore[call-arg]


def test_few_clusters_widen_the_interval_of_kappa_and_are_named():
    """Below 12 clusters there is a warning; the smoothed interval is wider than that of plain resamples."""
    few = cohen_kappa(TRUTH[:44], PRED[:44], cluster=ITEMS[:44], labels=2)
    assert "warning: with fewer than 12 clusters" in few.method
    plain = cohen_kappa(TRUTH[:44], PRED[:44], cluster=ITEMS[:44], labels=2, ci="percentile")
    assert width(few) > width(plain)
    assert "warning" not in cohen_kappa(TRUTH[:48], PRED[:48], cluster=ITEMS[:48], labels=2).method


@pytest.mark.parametrize(("base_rate", "right"), [(0.5, 0.97), (0.9, 0.75)])
def test_clustered_interval_covers_kappa(base_rate, right):
    """Over 20 items of 10 pairs, labels and errors alike within an item, at least .93 of 200 intervals do."""
    rng = np.random.default_rng(5)
    shares = np.array([1 - base_rate, base_rate])[:, None] * np.array(
        [[right, 1 - right], [1 - right, right]]
    )
    true = float(cohen_kappa(table=np.round(shares * 10**6), ci=None))
    covered, clusters = [], np.repeat(np.arange(20), 10)
    for _ in range(200):
        met, sure = (rng.beta(mean * 2 / 3, (1 - mean) * 2 / 3, 20)[clusters] for mean in (base_rate, right))
        truth = rng.random(200) < met
        said = truth == (rng.random(200) < sure)
        found = cohen_kappa(truth, said, cluster=clusters, n_resamples=300, rng=rng)
        covered.append(number(found.low) <= true <= number(found.high))
    assert np.mean(covered) >= 0.93


def test_one_pair_a_cluster_is_as_no_cluster():
    """Clusters of one pair each have nearly the interval of pairs without clusters."""
    alone = cohen_kappa(TRUTH, PRED, n_resamples=4000)
    each = cohen_kappa(TRUTH, PRED, cluster=np.arange(120), n_resamples=4000)
    assert (each.low, each.high) == pytest.approx((alone.low, alone.high), abs=0.03)
