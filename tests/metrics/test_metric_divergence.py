"""Jensen-Shannon distance, and the bootstrap it shares with Wasserstein's."""

from __future__ import annotations

import json
import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.spatial.distance import jensenshannon

from autorubric.errors import ArgumentError
from autorubric.metrics import (
    Binary,
    Interval,
    Nominal,
    Ordinal,
    earth_movers_distance,
    js_distance,
    ks_test,
    score_distribution,
    wasserstein_distance,
)
from tests.metrics.asserting import number, width

RNG = np.random.default_rng(21)
A, B = RNG.choice(list("abcd"), 90, p=[0.1, 0.2, 0.3, 0.4]), RNG.choice(list("abce"), 70)


def _scipy(a, b):
    names = sorted({*a, *b})
    left, right = ([Counter(side)[name] for name in names] for side in (list(a), list(b)))
    return jensenshannon(left, right, base=2)


def test_distance_as_scipy():
    """Samples of different size equal scipy's distance of their shares."""
    assert js_distance(A, B) == pytest.approx(_scipy(A, B))
    assert js_distance(A.tolist(), B.tolist(), scale=Nominal("abcdef")) == pytest.approx(_scipy(A, B))


def test_distance_by_hand():
    """Shares (1, 0) and (1/2, 1/2): m = (3/4, 1/4); ½ log₂(4/3) + ½ (½ log₂(2/3) + ½ log₂ 2), its root."""
    divergence = 0.5 * np.log2(4 / 3) + 0.25 * np.log2(2 / 3) + 0.25
    assert js_distance(["x", "x"], ["x", "y"]) == pytest.approx(np.sqrt(divergence))
    assert js_distance([1, 1, 2], [3, 4]) == 1.0
    assert js_distance([1, 2, 2], [2, 1, 2, 2, 1, 2]) == 0.0


def test_method_says_over_what():
    """Declared categories, or the values seen; pairing ignored."""
    assert "4 declared categories" in js_distance(["a"], ["b"], scale=Nominal("abcd")).method
    seen = js_distance([0.1, 0.2], [0.2, 0.7]).method
    assert "3 distinct values" in seen
    assert "pairing ignored" in seen
    assert "distinct values" in js_distance([0.1], [0.7], scale=Interval(0, 1)).method
    assert js_distance(["MET", "CANNOT_ASSESS"], [True], scale=Binary()).n_missing == 1
    for scale in (Interval(0, 1), Nominal("ab")):
        with pytest.raises(ArgumentError, match="not on the scale"):
            js_distance([5], [7], scale=scale)


def test_unit_of_an_open_range_is_that_of_the_scores():
    """Only a closed range is divided by, and the method says which unit it is."""
    assert "declared range" in wasserstein_distance([0], [5], scale=Interval(0, 10)).method
    assert "units of the scores" in wasserstein_distance([0], [5], scale=Interval(0)).method
    assert "declared range" in wasserstein_distance(["a"], ["b"], scale=Ordinal("abc")).method


@pytest.mark.parametrize("distance", [js_distance, wasserstein_distance])
def test_too_little_to_resample_has_no_interval(distance):
    """One value on a side, one cluster, or resamples without a side: the value stands, the interval not."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert distance([1.0], [2.0, 3.0]).reason == "too_few_units"
        assert distance([1.0, 2.0], [2.0, 3.0], cluster=["x", "x"]).reason == "too_few_units"
        lone = distance([1.0, 2.0, None, None], [None, None, 1.0, 5.0], cluster=list("xxyy"), n_resamples=200)
    assert lone.is_defined
    assert (lone.low is None) == (lone.reason == "degenerate_resamples")
    assert distance([], [1.0]).reason == "no_values"
    assert distance([None], [None]).reason == "no_values"


def test_intervals():
    """Samples are drawn apart or together by cluster; the seed fixes them; other methods are refused."""
    plain = js_distance(A, B)
    assert width(plain) > 0
    assert plain == js_distance(A, B, rng=0)
    paired = js_distance(A[:70], B, cluster=np.arange(70) // 2)
    assert 0 <= number(paired.low) < number(paired.high) <= 1
    with pytest.raises(ArgumentError, match="samples of equal length"):
        js_distance(A, B, cluster=range(90))
    with pytest.raises(ArgumentError, match="percentile"):
        js_distance(A, B, ci="analytic")


def test_resampling_in_pieces_is_resampling():
    """A grid so large that resamples are drawn in several pieces gives the error of a shift, √(2/n)."""
    a, b = RNG.normal(0, 1, 3000), RNG.normal(0.5, 1, 3000)
    found = wasserstein_distance(a, b, n_resamples=1500)
    assert number(found.low) < number(found.value) < number(found.high)
    assert number(found.se) == pytest.approx(np.sqrt(2 / 3000), rel=0.1)


labels = st.lists(st.sampled_from("abcde"), min_size=1, max_size=30)


@settings(deadline=None)
@given(labels, labels, labels)
def test_laws_of_the_distance(a, b, c):
    """In [0, 1], symmetric, 0 for a sample with itself, and a metric."""
    ab, bc, ac = (float(js_distance(*two, ci=None)) for two in ((a, b), (b, c), (a, c)))
    assert 0.0 <= ab <= 1.0
    assert ab == pytest.approx(float(js_distance(b, a, ci=None)))
    assert js_distance(a, a * 3, ci=None) == pytest.approx(0.0, abs=1e-7)
    assert ac <= ab + bc + 1e-9
    assert ab == pytest.approx(_scipy(a, b), abs=1e-7)


def test_results_of_distributions_can_be_written():
    """Results of the distribution module, defined or not, serialise."""
    for a in ([0.1, 0.4], [None]):
        for found in (earth_movers_distance(a, [0.2]), ks_test(a, [0.2]), score_distribution(a)):
            assert json.loads(json.dumps(found.to_dict(), allow_nan=False))
