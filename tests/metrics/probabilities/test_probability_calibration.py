"""Expected calibration error and the reliability curve: scikit-learn, hand-worked cases, edge rules."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.calibration import calibration_curve

from autorubric.errors import ArgumentError
from autorubric.metrics import clustered_se, ece, reliability_curve, wilson
from tests.metrics.asserting import number

RNG = np.random.default_rng(12)
PROB = RNG.random(300).round(2)
TRUTH = (RNG.random(300) < PROB**1.5).astype(int)
MANY = RNG.dirichlet([2.0, 1.0, 1.0], 200)
CLASS = np.array([RNG.choice(3, p=row) for row in MANY])

SKLEARN = {"width": "uniform", "mass": "quantile"}


def test_ece_by_hand():
    """Two bins: forecasts .2 .4 with rate 1/2 and .7 .9 .8 with rate 1: 2/5 · .2 + 3/5 · .2 = .2."""
    assert ece([1, 0, 1, 1, 1], [0.2, 0.4, 0.7, 0.9, 0.8], bins=2) == pytest.approx(0.2)


@pytest.mark.parametrize("strategy", ["width", "mass"])
@pytest.mark.parametrize("bins", [1, 4, 10])
def test_curve_as_scikit_learn(strategy, bins):
    """Rates and mean forecasts are scikit-learn's, empty bins left out; ECE is their weighted distance."""
    rates, forecasts = calibration_curve(TRUTH, PROB, n_bins=bins, strategy=SKLEARN[strategy])
    found = reliability_curve(TRUTH, PROB, bins=bins, strategy=strategy)
    assert [float(one.rate) for one in found.bins] == pytest.approx(rates)
    assert [one.forecast for one in found.bins] == pytest.approx(forecasts)
    shares = np.array([one.n for one in found.bins]) / 300
    distance = float((shares * np.abs(rates - forecasts)).sum())
    assert ece(TRUTH, PROB, bins=bins, strategy=strategy) == pytest.approx(distance)


def test_rates_have_wilson_intervals():
    """Each bin's rate is a Wilson proportion; clusters give another interval."""
    for one in reliability_curve(TRUTH, PROB).bins:
        expected = wilson(round(float(one.rate) * one.n), one.n)
        assert (one.rate.low, one.rate.high) == pytest.approx((expected.low, expected.high))
    alone = reliability_curve(TRUTH, PROB, cluster=np.arange(300)).bins[4]
    assert "clusters" in alone.rate.method
    assert f"{alone.n} clusters" in alone.rate.method
    inside = (PROB > 0.4) & (PROB <= 0.5)
    pairs = reliability_curve(TRUTH, PROB, cluster=np.arange(300) // 2).bins[4]
    as_mean = clustered_se(TRUTH[inside], (np.arange(300) // 2)[inside])
    assert pairs.rate.se == pytest.approx(number(as_mean.se))


def test_edges_belong_to_the_bin_below():
    """0.3 lies in (0.2, 0.3], 0 in the first bin; the method says so."""
    found = reliability_curve([1, 0, 1, 1], [0.0, 0.1, 0.3, 1.0])
    assert [(one.low, one.high, one.n) for one in found.bins] == [(0.0, 0.1, 2), (0.2, 0.3, 1), (0.9, 1.0, 1)]
    assert "including upper edges" in found.method
    for k in range(1, 15):
        assert reliability_curve([1], [k / 14], bins=14).bins[0].high == k / 14


def test_equal_forecasts_stay_in_one_bin_of_mass():
    """Bins of equal mass hold as many forecasts, but never part equal ones, whatever the order of rows."""
    found = reliability_curve([1, 0] * 10, np.arange(20) / 20, bins=5, strategy="mass")
    assert [one.n for one in found.bins] == [4] * 5
    tied = reliability_curve([1, 0, 1, 0, 1], [0.5, 0.5, 0.5, 0.5, 0.9], bins=3, strategy="mass")
    assert [one.n for one in tied.bins] == [4, 1]


def test_classes_are_judged_by_the_top_label():
    """(n, K): confidence of the top label against how often it is right, the first of equals."""
    found = ece(CLASS, MANY)
    right = (MANY.argmax(1) == CLASS).astype(int)
    assert found == pytest.approx(float(ece(right, MANY.max(1))))
    assert "top-label" in found.method
    assert "P(positive)" in ece(TRUTH, PROB).method
    assert ece([0, 0], [[0.5, 0.5], [0.5, 0.5]]) == 0.5


def test_debiased_is_less_and_unbiased_with_much_data():
    """Of calibrated forecasts the debiased figure lies lower, never below 0; both agree on plenty of data."""
    rng = np.random.default_rng(4)
    prob = rng.random(100)
    truth = (rng.random(100) < prob).astype(int)
    assert 0.0 <= ece(truth, prob, debiased=True) < float(ece(truth, prob))
    prob = rng.random(200_000)
    truth = (rng.random(200_000) < 0.5 + 0.6 * (prob - 0.5)).astype(int)
    # |p - q| = 0.4 |p - 1/2| is 0.1 on average.
    assert ece(truth, prob, debiased=True) == pytest.approx(0.1, abs=0.004)
    assert ece(truth, prob) == pytest.approx(0.1, abs=0.004)


def test_debiased_by_hand():
    """One bin, forecast .5, rate .6 of 100: gap .1, s = √.0024; E|N(.1, s²)| from a million draws."""
    truth = [1] * 60 + [0] * 40
    drawn = np.abs(np.random.default_rng(0).normal(0.1, np.sqrt(0.0024), 1_000_000)).mean()
    assert ece(truth, [0.5] * 100, bins=1, debiased=True) == pytest.approx(0.2 - drawn, abs=2e-4)


def test_interval_allows_for_the_bias():
    """The interval of calibrated forecasts reaches 0 and holds the figure itself."""
    rng = np.random.default_rng(5)
    reached = 0
    for _ in range(60):
        prob = rng.random(100)
        truth = (rng.random(100) < prob).astype(int)
        found = ece(truth, prob)
        reached += found.low == 0.0
        assert number(found.low) <= number(found.value) <= number(found.high)
    assert reached >= 57
    far_off = ece([0] * 200, np.linspace(0.6, 1.0, 200))
    assert number(far_off.low) > 0.5
    assert number(ece(TRUTH, PROB, cluster=np.arange(300) // 3).se) > 0
    assert ece(TRUTH, PROB, ci="percentile", n_resamples=50).low is not None
    assert ece([1], [0.4]).reason == "too_few_units"


def test_empty_and_wrong_arguments():
    """Nothing to calibrate has a reason; bins and strategies are checked."""
    nothing = reliability_curve([None], [0.4])
    assert (nothing.bins, nothing.reason, nothing.n_missing) == ((), "no_pairs", 1)
    assert ece([], []).reason == "no_pairs"
    assert ece([], [], strategy="mass").reason == "no_pairs"
    json.dumps([nothing.to_dict(), reliability_curve(TRUTH, PROB).to_dict()], allow_nan=False)
    refused: list[tuple[dict[str, Any], str]] = [
        ({"bins": 0}, "bins"),
        ({"bins": 2.5}, "bins"),
        ({"bins": True}, "bins"),
        ({"strategy": "equal"}, "width"),
    ]
    for wrong, words in refused:
        with pytest.raises(ArgumentError, match=words):
            ece(TRUTH, PROB, **wrong)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 1), st.floats(0, 1)), min_size=1, max_size=50),
    st.integers(1, 12),
    st.sampled_from(["width", "mass"]),
    st.randoms(),
)
def test_laws_of_calibration(pairs, bins, strategy, random):
    """ECE lies in [0, 1], no less than the gap of the means, and knows no order of rows."""
    truth, prob = zip(*pairs, strict=True)
    value = float(ece(truth, prob, bins=bins, strategy=strategy, ci=None))
    assert abs(np.mean(truth) - np.mean(prob)) - 1e-9 <= value <= 1 + 1e-9
    random.shuffle(pairs)
    truth, prob = zip(*pairs, strict=True)
    assert ece(truth, prob, bins=bins, strategy=strategy, ci=None) == pytest.approx(value)
    curve = reliability_curve(truth, prob, bins=bins, strategy=strategy)
    assert sum(one.n for one in curve.bins) == len(truth)
