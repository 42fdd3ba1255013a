"""Tests of bias: Wilcoxon's signed ranks and random signs against scipy; effect sizes."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
import scipy.stats as st

from autorubric.errors import ArgumentError
from autorubric.metrics import bias
from autorubric.metrics.figures.bias import sign_flip, wilcoxon
from tests.metrics.asserting import number

# Student 1908: hours of sleep gained by ten patients with either of two drugs.
FIRST = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
SECOND = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]


def _differences(n, kind):
    rng = np.random.default_rng(n)
    if kind == "different":
        return rng.normal(0.4, 1, n)
    whole = rng.integers(-3, 5, n).astype(float)
    return whole if kind == "with zeros" else np.where(whole == 0, 1.0, whole)


@pytest.mark.parametrize("n", [1, 4, 9, 13, 14, 50, 51, 120])
@pytest.mark.parametrize("kind", ["different", "tied", "with zeros"])
def test_signed_ranks_as_scipy(n, kind):
    """Statistic and p are scipy's: exact for few, with ties for fewer, else normal."""
    differences = _differences(n, kind)
    found = wilcoxon(differences)
    if not differences.any():
        assert found is None
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = st.wilcoxon(differences)
    assert found is not None
    assert (found.statistic, found.p_value) == pytest.approx((expected.statistic, expected.pvalue))
    assert found.method == ("exact" if n <= (50 if kind == "different" else 13) else "normal")


def test_signed_ranks_by_hand():
    """Differences 1, 2, 3, -4: negative rank 4; of 16 signs 7 sum to at most 4, twice 7/16."""
    found = wilcoxon(np.array([1.0, 2.0, 3.0, -4.0]))
    assert found is not None
    # Subsets of {1, 2, 3, 4} with sum up to 4: {}, 1, 2, 3, 12, 13, 4.
    assert (found.statistic, found.p_value, found.method) == (4.0, 2 * 7 / 16, "exact")


@pytest.mark.parametrize("n", [1, 2, 7, 12])
@pytest.mark.parametrize("kind", ["different", "tied"])
def test_random_signs_as_scipy(n, kind):
    """Over all signs p is scipy's exact permutation p."""
    differences = _differences(n, kind)
    if n == 1:
        assert sign_flip(differences, 1, np.random.default_rng(0)).p_value == 1.0
        return
    expected = st.permutation_test((differences,), np.sum, permutation_type="samples", n_resamples=10_000)
    assert sign_flip(differences, 1, np.random.default_rng(0)).p_value == pytest.approx(expected.pvalue)


def test_random_signs_by_hand():
    """Differences 1, 2, 3: of the 8 sums ±1 ±2 ±3 two are 6 or -6, p = 1/4; adding zeros changes nothing."""
    for differences in ([1, 2, 3], [0, 1, 0, 2, 3]):
        found = sign_flip(np.array(differences, dtype=float), 1, np.random.default_rng(0))
        assert (found.p_value, found.method) == (0.25, "exact")


@pytest.mark.parametrize(("kind", "method"), [("different", "random flips"), ("tied", "exact")])
def test_flips_come_near_to_all_signs(kind, method):
    """Random flips of 24 differences estimate the share over all; multiples of a unit are counted exactly."""
    differences = _differences(24, kind) - 0.15
    sums = np.array([0.0])
    for one in np.abs(differences):
        sums = np.concatenate([sums + one, sums - one])
    exact = float(np.mean(np.abs(sums) >= abs(differences.sum()) - 1e-9))
    found = sign_flip(differences, 40_000, np.random.default_rng(1))
    assert found.method == method
    tolerance = 1e-9 if method == "exact" else 4 * np.sqrt(exact * (1 - exact) / 40_000)
    assert found.p_value == pytest.approx(exact, abs=tolerance)


@pytest.mark.parametrize("n", [30, 49, 400])
def test_flips_of_verdicts_are_exact(n):
    """Differences of -1, 0 and 1 have a binomial number of positive signs; sixths are counted as whole."""
    differences = np.random.default_rng(n).choice([-1.0, 0.0, 1.0], n)
    positive, negative = int((differences > 0).sum()), int((differences < 0).sum())
    expected = st.binomtest(positive, positive + negative).pvalue
    for scale in (1.0, 1 / 6, 0.07):
        found = sign_flip(scale * differences, 1, np.random.default_rng(0))
        assert found.method == "exact"
        assert found.p_value == pytest.approx(expected)
    sides = [
        sign_flip(differences, 1, np.random.default_rng(0), side).p_value for side in ("greater", "less")
    ]
    upper = st.binomtest(positive, positive + negative, alternative="greater").pvalue
    assert sides[0] == pytest.approx(upper)


def test_many_sizes_take_the_normal_limit():
    """With thousands of different sizes p is that of the normal limit, which the t test meets."""
    differences = np.random.default_rng(3).normal(0.01, 1, 20_000)
    found = sign_flip(differences, 10_000, np.random.default_rng(0))
    assert found.method == "normal"
    assert found.p_value == pytest.approx(st.ttest_1samp(differences, 0).pvalue, rel=0.01)


def test_students_sleep():
    """Student 1908: t = 4.0621, p = .00283; Wilcoxon on nine differences W = 0; signs 2 / 2⁹."""
    found = bias(FIRST, SECOND)
    assert found.mean_bias == pytest.approx(1.58)
    assert round(number(found.p_value), 5) == 0.00283
    assert (found.wilcoxon_statistic, found.wilcoxon_method) == (0.0, "exact")
    # All nine differences that are not 0 are positive.
    assert found.wilcoxon_p == found.permutation_p == 2 / 2**9
    assert found.permutation_method == "exact"


def test_effect_sizes_of_lakens():
    """d_z is the mean over the sd of differences, d_av over the mean of the two sides' sds."""
    found = bias(FIRST, SECOND)
    sds = [np.std(side, ddof=1) for side in (FIRST, SECOND)]
    assert found.d_av == pytest.approx(1.58 / np.mean(sds))
    assert found.effect_size == pytest.approx(1.58 / number(found.std_bias))
    assert found.effect_size_name == "d_z"
    assert bias([0.1] * 3, [0.3] * 3).d_av is None
    assert bias([1], [2]).d_av is None


def test_no_difference():
    """Where all differences are 0 Wilcoxon's test is undefined and random signs give p = 1; nothing warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = bias([1, 2, 3], [1, 2, 3])
        nothing = bias([], [None][:0])
    assert (found.wilcoxon_p, found.wilcoxon_statistic, found.wilcoxon_method) == (None, None, None)
    assert (found.permutation_p, found.effect_size, found.d_av) == (1.0, None, 0.0)
    assert (nothing.permutation_p, nothing.wilcoxon_p) == (None, None)
    json.dumps([found.to_dict(), nothing.to_dict()], allow_nan=False)


def test_rounding_makes_no_difference_of_size():
    """Differences that are equal but for rounding are ties, and sums reach what they equal."""
    truth, pred = [0.1, 0.2, 0.7, 0.3], [0.3, 0.4, 0.9, 0.1]
    assert len(set(np.subtract(pred, truth).tolist())) > 2
    found = bias(truth, pred)
    whole = bias([0, 0, 0, 0], [1, 1, 1, -1])
    assert found.wilcoxon_p == whole.wilcoxon_p
    assert found.permutation_p == whole.permutation_p == 10 / 16


def test_clusters_flip_together():
    """Rows written twice in one cluster are one unit; the tests are those of the single rows."""
    single = bias(FIRST, SECOND)
    double = bias(FIRST * 2, SECOND * 2, cluster=[*range(10)] * 2)
    assert (double.wilcoxon_p, double.permutation_p) == (single.wilcoxon_p, single.permutation_p)
    assert bias(FIRST, SECOND, cluster=[0] * 10).permutation_p == 1.0


def test_same_seed_same_flips():
    """The seed fixes the flips, and more are drawn on request."""
    rng = np.random.default_rng(8)
    truth, pred = rng.normal(size=40), rng.normal(0.2, 1, size=40)
    found = [bias(truth, pred, rng=seed).permutation_p for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]
    more = number(bias(truth, pred, n_resamples=19_999).permutation_p) * 20_000
    assert more == pytest.approx(round(more))


@pytest.mark.parametrize("alternative", ["greater", "less"])
@pytest.mark.parametrize("n", [4, 9, 13, 14, 50, 51, 120])
@pytest.mark.parametrize("kind", ["different", "tied", "with zeros"])
def test_one_sided_signed_ranks_as_scipy(n, kind, alternative):
    """Statistic and p are scipy's, in both directions."""
    differences = _differences(n, kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = st.wilcoxon(differences, alternative=alternative)
    found = wilcoxon(differences, alternative)
    assert found is not None
    assert (found.statistic, found.p_value) == pytest.approx((expected.statistic, expected.pvalue))


@pytest.mark.parametrize("alternative", ["greater", "less"])
def test_one_sided_bias_as_scipy(alternative):
    """All three tests of Student's sleepers are one-sided where asked; the interval stays two-sided."""
    found = bias(FIRST, SECOND, alternative=alternative)
    both = bias(FIRST, SECOND)
    differences = np.array(SECOND) - np.array(FIRST)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranks = st.wilcoxon(differences, alternative=alternative)
    flips = st.permutation_test(
        (differences,), np.sum, permutation_type="samples", n_resamples=10_000, alternative=alternative
    )
    assert found.p_value == pytest.approx(st.ttest_rel(SECOND, FIRST, alternative=alternative).pvalue)
    assert found.wilcoxon_p == pytest.approx(ranks.pvalue)
    assert found.wilcoxon_statistic == pytest.approx(ranks.statistic)
    assert found.permutation_p == pytest.approx(flips.pvalue)
    assert (found.ci, found.alternative, both.alternative) == (both.ci, alternative, "two-sided")
    assert found.is_significant == (alternative == "greater")
    assert json.loads(json.dumps(found.to_dict()))["alternative"] == alternative


@pytest.mark.parametrize("n", [24, 6000])
def test_one_sided_flips_are_the_mirror_of_each_other(n):
    """With random signs and in the normal limit, p against greater and against less add to about 1."""
    differences = np.random.default_rng(n).normal(0.01, 1, n)
    rng = np.random.default_rng(0)
    p = [sign_flip(differences, 20_000, rng, side).p_value for side in ("greater", "less")]
    assert sum(p) == pytest.approx(1, abs=0.02)
    assert min(p) < 0.5 < max(p)


def test_unknown_alternatives_are_refused():
    """The message lists what is allowed."""
    with pytest.raises(ArgumentError, match="two-sided"):
        bias([0, 1], [1, 1], alternative="larger")  # type: ignore[arg-type]
