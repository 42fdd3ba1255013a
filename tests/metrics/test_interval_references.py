"""Intervals against second implementations: Wilson, clustered means, percentile, BCa, clusters, smoothing."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.proportion import proportion_confint

from autorubric.metrics import clustered_se, cohen_kappa, mae, wilson
from tests.metrics.asserting import number

RNG = np.random.default_rng(4)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_wilson_is_that_of_statsmodels(level):
    """Any successes of any number of trials give the interval of `proportion_confint`."""
    for n in (1, 2, 7, 30, 1000):
        for successes in {0, 1, n // 3, n - 1, n}:
            found = wilson(successes, n, confidence_level=level)
            expected = proportion_confint(successes, n, alpha=1 - level, method="wilson")
            assert (found.low, found.high) == pytest.approx(expected, abs=1e-12)


def test_clustered_mean_is_that_of_a_regression_with_clustered_errors():
    """The interval is that of statsmodels' intercept: C / (C - 1) in the variance, t with C - 1."""
    cluster = np.repeat(np.arange(8), [1, 2, 3, 4, 5, 6, 7, 8])
    values = RNG.normal(size=36) + 0.7 * RNG.normal(size=8)[cluster]
    fitted = sm.OLS(values, np.ones(36)).fit(cov_type="cluster", cov_kwds={"groups": cluster}, use_t=True)
    found = clustered_se(values, cluster)
    assert (found.low, found.high) == pytest.approx(tuple(fitted.conf_int()[0]))
    assert found.se == pytest.approx(fitted.bse[0])
    half = stats.t.ppf(0.975, 7) * fitted.bse[0]
    assert number(found.high) - float(found) == pytest.approx(half)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_bootstrap_intervals_are_those_of_scipy(method):
    """On 40 skewed errors both ends agree with scipy's to a few hundredths of the width."""
    errors = RNG.exponential(size=40) ** 1.5
    found = mae(np.zeros(40), errors, ci=method, n_resamples=20_000)
    expected = stats.bootstrap(
        (errors,), np.mean, n_resamples=20_000, method=method, rng=np.random.default_rng(0)
    ).confidence_interval
    width = expected.high - expected.low
    assert abs(number(found.low) - expected.low) < 0.03 * width
    assert abs(number(found.high) - expected.high) < 0.03 * width


@pytest.mark.slow
def test_clusters_are_drawn_as_a_whole():
    """The clustered percentile interval of kappa is that of resampling lists of items, written out."""
    truth = np.repeat(RNG.integers(0, 2, 20), 3)
    pred = np.where(np.repeat(RNG.random(20) < 0.8, 3), truth, 1 - truth)
    cluster = np.repeat(np.arange(20), 3)
    members = [np.flatnonzero(cluster == one) for one in range(20)]
    drawn = []
    for _ in range(3000):
        rows = np.concatenate([members[one] for one in RNG.integers(0, 20, 20)])
        drawn.append(cohen_kappa_score(truth[rows], pred[rows]))
    found = cohen_kappa(truth, pred, cluster=cluster, ci="percentile", n_resamples=20_000)
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.05)
    assert number(found.se) == pytest.approx(np.std(drawn), rel=0.08)


def test_smoothing_adds_a_quarter_to_each_of_four_cells():
    """The smoothed interval is that of multinomial tables from the counts with 1/4 a cell, written out."""
    table = np.array([[12.0, 3.0], [1.0, 4.0]])
    p = (table + 0.25) / 21
    drawn = RNG.multinomial(20, p.ravel(), size=40_000).reshape(-1, 2, 2) / 20
    observed = drawn[:, 0, 0] + drawn[:, 1, 1]
    expected = (drawn.sum(2) * drawn.sum(1)).sum(1)
    kappas = (observed - expected)[expected < 1] / (1 - expected)[expected < 1]
    found = cohen_kappa(table=table, ci="smoothed", n_resamples=40_000)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(kappas, [0.025, 0.975])), abs=0.01)
