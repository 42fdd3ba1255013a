"""Correlations, errors and bias against scipy, published data and hand-worked cases."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
import scipy.stats as st

from autorubric.errors import ArgumentError
from autorubric.metrics import bias, cohen_kappa, kendall_tau_b, lin_ccc, mae, mcc, pearson, rmse, spearman
from autorubric.metrics.core.contingency import number_pairs
from autorubric.metrics.figures.correlation import correlation_p_value, kendall_test
from autorubric.metrics.figures.ranks import kendall_of, rank_pairs, spearman_of
from tests.metrics.asserting import brackets, number
from tests.metrics.published import LARGE, MINI

CASES = [(5, 3), (60, 5), (300, 10_000), (1800, 10**6), (1800, 300)]


def _columns(n, levels):
    rng = np.random.default_rng(n + levels)
    x = rng.integers(0, levels, n)
    return x, np.where(rng.random(n) < 0.5, x, rng.integers(0, levels, n))


@pytest.mark.parametrize(("n", "levels"), CASES)
def test_correlations_as_scipy(n, levels):
    """Value and p equal scipy's, with many ties, few ties, and more pairs than a matrix would hold."""
    x, y = _columns(n, levels)
    pairs = number_pairs(x, y, None)
    for ours, theirs in ((pearson, st.pearsonr), (spearman, st.spearmanr)):
        expected = theirs(x, y)
        assert ours(x, y, ci=None) == pytest.approx(expected.statistic)
        assert correlation_p_value(float(ours(x, y, ci=None)), n) == pytest.approx(expected.pvalue)
    expected = st.kendalltau(x, y, method="asymptotic")
    assert kendall_tau_b(x, y, ci=None) == pytest.approx(expected.statistic)
    test = kendall_test(rank_pairs(pairs), expected.statistic)
    assert test is not None
    assert test.p_value == pytest.approx(expected.pvalue)


@pytest.mark.parametrize(("n", "levels"), CASES)
@pytest.mark.parametrize("function", [pearson, spearman, kendall_tau_b, lin_ccc])
def test_resamples_are_the_figure_of_the_resampled_pairs(n, levels, function):
    """Weights that count each pair once give the figure; a bootstrap over clusters brackets it."""
    x, y = _columns(n, levels)
    if n < 60:
        return
    found = function(x, y, cluster=np.arange(n) // 2, ci="percentile", n_resamples=60)
    assert brackets(found)


def test_weighted_ranks_equal_repeated_pairs():
    """Drawing a pair twice is the same as writing it twice, on the table and on weights."""
    rng = np.random.default_rng(3)
    for n, levels in ((40, 4), (200, 10**6), (1700, 10**6)):
        x, y = rng.integers(0, levels, n), rng.integers(0, levels, n)
        drawn = rng.integers(0, n, n)
        ranked = rank_pairs(number_pairs(x, y, np.arange(n)))
        weights = np.bincount(drawn, minlength=n)[None, :].astype(float)
        sums = ranked.units.aggregate(weights)
        assert spearman_of(ranked)(sums)[0] == pytest.approx(st.spearmanr(x[drawn], y[drawn]).statistic)
        assert kendall_of(ranked)(sums)[0] == pytest.approx(st.kendalltau(x[drawn], y[drawn]).statistic)


def test_fisher_interval_as_scipy():
    """Pearson's interval is scipy's."""
    x, y = _columns(60, 50)
    low, high = st.pearsonr(x, y).confidence_interval(0.9)
    found = pearson(x, y, confidence_level=0.9)
    assert (found.low, found.high) == pytest.approx((low, high))


def test_bias_of_two_meters():
    """Peak flow by two meters: limits of agreement, and the paired t test as scipy has it."""
    found = bias(MINI, LARGE)
    assert found.lower_limit == pytest.approx(-2.118 - 1.96 * 38.765, abs=0.01)
    assert found.upper_limit == pytest.approx(-2.118 + 1.96 * 38.765, abs=0.01)
    expected = st.ttest_rel(LARGE, MINI)
    assert found.p_value == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval()
    assert found.ci is not None
    assert (found.ci.lower, found.ci.upper) == pytest.approx((interval.low, interval.high))
    assert found.effect_size == pytest.approx(number(found.mean_bias) / number(found.std_bias))
    assert (found.direction, found.is_significant, found.n_samples) == ("negative", False, 17)


def test_bias_edges():
    """No pair, one pair, no spread: what cannot be said is None with a reason."""
    assert bias([], []).reason == "no_pairs"
    one = bias([1], [3])
    assert (one.mean_bias, one.std_bias, one.p_value, one.reason) == (2.0, None, None, "too_few_units")
    shifted = bias([0.1, 0.2, 0.3], [0.3, 0.4, 0.5])
    assert shifted.mean_bias == pytest.approx(0.2)
    assert (shifted.std_bias, shifted.effect_size, shifted.p_value) == (0.0, None, None)
    assert (shifted.reason, shifted.direction) == ("no_variance", "positive")
    assert bias([1, 2], [1, 2]).direction == "none"
    assert bias([1, 2, 3], [1, 3, 3], ci=None).ci is None
    json.dumps(bias(MINI, LARGE).to_dict() | bias([], []).to_dict(), allow_nan=False)


def test_bias_over_clusters():
    """Clusters are the units of the test: with one value twice each, n is not inflated."""
    truth, pred = [1.0, 2.0, 3.0, 4.0], [1.5, 2.0, 4.0, 4.2]
    single = bias(truth, pred)
    double = bias(truth * 2, pred * 2, cluster=[0, 1, 2, 3] * 2)
    assert double.p_value == pytest.approx(single.p_value)
    assert bias(truth, pred, cluster=[0] * 4).reason == "too_few_units"


def test_errors_by_hand():
    """Errors 1, -2, 0 and 3: RMSE √3.5, MAE 1.5, with t intervals on three degrees of freedom."""
    truth, pred = [10, 10, 10, 10], [11, 8, 10, 13]
    assert rmse(truth, pred) == pytest.approx(np.sqrt(3.5))
    found = mae(truth, pred)
    assert found == pytest.approx(1.5)
    low, high = st.t.interval(0.95, 3, 1.5, st.sem([1, 2, 0, 3]))
    assert found.high == pytest.approx(high)
    assert found.low == max(0.0, low)
    squares = st.t.interval(0.95, 3, 3.5, st.sem([1, 4, 0, 9]))
    assert rmse(truth, pred).high == pytest.approx(np.sqrt(squares[1]))
    assert rmse(truth, truth) == 0.0
    assert mae([1], [2]).reason == "too_few_units"
    assert rmse([], []).reason == "no_pairs"
    assert brackets(rmse(truth, pred, ci="percentile"))


def test_concordance_is_quadratic_kappa():
    """With 1/n moments, concordance of integer codes is quadratic kappa; on two classes Pearson is MCC."""
    x, y = _columns(60, 5)
    assert lin_ccc(x, y) == pytest.approx(cohen_kappa(x, y, weights="quadratic"))
    assert pearson(x > 2, y > 2) == pytest.approx(mcc(x > 2, y > 2))


@pytest.mark.parametrize("function", [pearson, spearman, kendall_tau_b])
def test_constant_sides_have_no_correlation(function):
    """A constant side is undefined, also where its mean is off by rounding; so are fewer than two pairs."""
    assert function([0.1] * 7, range(7)).reason == "no_variance"
    assert function(range(7), [1 / 3] * 7).reason == "no_variance"
    assert function([1], [1]).reason == "too_few_units"
    assert function([], []).reason == "no_pairs"
    assert function([1, 2], [1, 2]).reason == "too_few_units"
    assert function([1, 2], [1, 2]) == pytest.approx(1.0)


def test_concordance_edges():
    """Equal constants have none, constants apart none at all: None and 0.0."""
    assert lin_ccc([0.1] * 3, [0.1] * 3).reason == "no_variance"
    assert lin_ccc([1, 1], [2, 2]) == 0.0
    assert lin_ccc([1, 2, 3], [1, 2, 3]) == 1.0
    assert lin_ccc([1], [2]).reason == "too_few_units"
    clustered = lin_ccc(LARGE, MINI, cluster=np.arange(17) // 2)
    assert brackets(clustered)


def test_large_offsets_lose_nothing():
    """A shift of a billion changes neither correlation nor error."""
    x, y = np.array(LARGE) / 7, np.array(MINI) / 7
    for function in (pearson, lin_ccc, rmse, mae):
        assert function(x + 1e9, y + 1e9) == pytest.approx(float(function(x, y)), rel=1e-6)


def test_p_values_at_the_edges():
    """No p below three pairs or without variation; a perfect correlation has p 0."""
    assert correlation_p_value(0.5, 2) is None
    assert correlation_p_value(1.0, 5) == 0.0
    assert kendall_test(rank_pairs(number_pairs([1, 2], [1, 2], None)), 1.0) is None
    assert kendall_test(rank_pairs(number_pairs([1, 1, 1], [1, 2, 3], None)), None) is None


def test_numbers_are_checked():
    """Words, infinities and columns of different length raise."""
    for truth, pred in ((["a"], [1]), ([float("inf")], [1]), ([1, 2], [1]), ([{}], [1])):
        with pytest.raises(ArgumentError):
            pearson(truth, pred)
    with pytest.raises(ArgumentError, match="percentile"):
        pearson(LARGE, MINI, cluster=range(17), ci="analytic")
    with pytest.raises(ArgumentError, match="finite number of categories"):
        pearson(LARGE, MINI, ci="smoothed")


def test_missing_numbers_drop_the_pair():
    """None and NaN on either side leave the pair out of every figure."""
    found = mae([1, None, 3], [2, 2, float("nan")])
    assert (found.value, found.n, found.n_missing) == (1.0, 1, 2)
    assert pearson([True, False, True], [1, 0, 1], ci=None) == 1.0


def test_bca_of_numbers_and_ranks():
    """BCa works wherever the percentile bootstrap does."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for function in (pearson, spearman, kendall_tau_b, lin_ccc, mae):
            found = function(LARGE, MINI, ci="bca", n_resamples=400)
            assert brackets(found)
