"""The distance between distributions, and their test, against scipy."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
import scipy.stats as st

from autorubric.errors import ArgumentError
from autorubric.metrics import (
    Binary,
    Interval,
    Nominal,
    Ordinal,
    bias,
    earth_movers_distance,
    ks_test,
    score_distribution,
    systematic_bias,
    wasserstein_distance,
)
from tests.metrics.asserting import number, width

RNG = np.random.default_rng(5)
A, B = RNG.normal(0.5, 0.2, 80).round(2), RNG.normal(0.6, 0.1, 55).round(2)


def test_distance_as_scipy():
    """W1 in the units of the scores equals scipy's, whatever the sizes."""
    expected = st.wasserstein_distance(A, B)
    found = wasserstein_distance(A, B)
    assert found == pytest.approx(expected)
    assert width(found) > 0


def test_a_declared_scale_makes_the_distance_free_of_units():
    """With a scale the distance is in shares of its range; labels stand at their values."""
    assert wasserstein_distance([0, 10], [5, 10], scale=Interval(0, 10)) == 0.25
    assert wasserstein_distance([0, 10], [5, 10], scale=Interval(0)) == 2.5
    scale = Ordinal(["lo", "mid", "hi"], [0, 1, 4])
    assert wasserstein_distance(["lo", "lo"], ["mid", None], scale=scale) == 0.25
    assert wasserstein_distance(["MET"], ["UNMET"], scale=Binary()) == 1.0
    assert wasserstein_distance(["MET", "CANNOT_ASSESS"], [True], scale=Binary()).n_missing == 1
    for scale_ in (Nominal("ab"), Interval(0, 1)):
        with pytest.raises(ArgumentError):
            wasserstein_distance([5], [7], scale=scale_)


def test_unit_of_an_open_range_is_that_of_the_scores():
    """Only a closed range is divided by, and the method says which unit it is."""
    assert "declared range" in wasserstein_distance([0], [5], scale=Interval(0, 10)).method
    assert "units of the scores" in wasserstein_distance([0], [5], scale=Interval(0)).method
    assert "declared range" in wasserstein_distance(["a"], ["b"], scale=Ordinal("abc")).method


def test_the_standard_error_is_the_spread_of_the_resamples():
    """With two resamples, the denominator n - 1 gives |d1 - d2| / √2, of which the interval is a share."""
    found = wasserstein_distance(A, B.round(), n_resamples=2, confidence_level=0.9)
    assert found.se == pytest.approx(width(found) / 0.9 / np.sqrt(2))


def test_resampling_of_two_samples():
    """Samples are drawn apart, or together by cluster; other methods are refused."""
    paired = wasserstein_distance(A[:50], B[:50], cluster=np.arange(50) // 2)
    assert width(paired) > 0
    assert wasserstein_distance(A, B, ci=None).se is None
    assert wasserstein_distance(A, B) == wasserstein_distance(A, B, rng=0)
    assert wasserstein_distance([0.0, None], [None, 1.0], cluster=["x", "y"]) == 1.0
    with pytest.raises(ArgumentError, match="samples of equal length"):
        wasserstein_distance(A, B, cluster=range(80))
    with pytest.raises(ArgumentError, match="percentile"):
        wasserstein_distance(A, B, ci="bca")


def test_too_little_to_resample_has_no_interval():
    """One value on a side, one cluster, or resamples without a side: the value stands, the interval not."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert wasserstein_distance([1.0], [2.0, 3.0]).reason == "too_few_units"
        assert wasserstein_distance([1.0, 2.0], [2.0, 3.0], cluster=["x", "x"]).reason == "too_few_units"
        lone = wasserstein_distance(
            [1.0, 2.0, None, None], [None, None, 1.0, 5.0], cluster=list("xxyy"), n_resamples=200
        )
    assert lone.is_defined
    assert (lone.low is None) == (lone.reason == "degenerate_resamples")


def test_resampling_in_pieces_is_resampling():
    """A grid so large that resamples are drawn in several pieces gives the error of a shift, √(2/n)."""
    a, b = RNG.normal(0, 1, 3000), RNG.normal(0.5, 1, 3000)
    found = wasserstein_distance(a, b, n_resamples=1500)
    assert number(found.low) < number(found.value) < number(found.high)
    assert number(found.se) == pytest.approx(np.sqrt(2 / 3000), rel=0.1)


@pytest.mark.parametrize("size", [20, 55])
def test_ks_as_scipy(size):
    """Statistic and p equal scipy's, exact and asymptotic."""
    a = A if size == 20 else np.repeat(A, 5)
    expected = st.ks_2samp(a, B)
    found = ks_test(a, B)
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.p_value == pytest.approx(expected.pvalue)
    assert found.is_significant == (expected.pvalue < 0.05)


def test_empty_samples_are_undefined():
    """Without a score on either side there is no distance, no test, no summary."""
    assert wasserstein_distance([], [1]).reason == "no_values"
    assert wasserstein_distance([None], [1]).reason == "no_values"
    assert wasserstein_distance([None], [None]).reason == "no_values"
    assert ks_test([1], [None]).reason == "no_values"
    assert score_distribution([None]).reason == "no_values"


def test_results_can_be_written():
    """Results, defined or not, serialise."""
    for a in ([0.1, 0.4], [None]):
        for found in (wasserstein_distance(a, [0.2]), ks_test(a, [0.2]), score_distribution(a)):
            assert json.loads(json.dumps(found.to_dict(), allow_nan=False))


def test_summary_of_scores():
    """Mean, spread, quartiles and a histogram over the sample's or the declared range."""
    found = score_distribution([0.0, 0.5, 1.0, None, 0.5], bins=2, scale=Interval(0, 1))
    assert (found.n_samples, found.n_missing, found.mean, found.median) == (4, 1, 0.5, 0.5)
    assert (found.minimum, found.q25, found.q75, found.maximum) == (0.0, 0.375, 0.625, 1.0)
    assert (found.bin_edges, found.bin_counts) == ((0.0, 0.5, 1.0), (1, 3))
    assert score_distribution([0.3]).std is None
    assert sum(score_distribution([1, 2, 3], scale=Interval(0)).bin_counts) == 3
    with pytest.raises(ArgumentError):
        score_distribution([1], bins=0)


def test_two_names_of_a_function():
    """One function under both names."""
    assert systematic_bias is bias
    assert earth_movers_distance is wasserstein_distance
