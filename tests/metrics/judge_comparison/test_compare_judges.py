"""Two judges against the same truth: the difference, its interval and its tests."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.contingency_tables import mcnemar

from autorubric.errors import ArgumentError
from autorubric.metrics import Interval, Nominal, Ordinal, accuracy, cohen_kappa, compare_judges, mae, pearson
from tests.metrics.asserting import brackets, number

RNG = np.random.default_rng(11)
TRUTH = RNG.integers(0, 3, 90)
A = np.where(RNG.random(90) < 0.85, TRUTH, RNG.integers(0, 3, 90))
B = np.where(RNG.random(90) < 0.6, TRUTH, RNG.integers(0, 3, 90))
ITEMS = np.arange(90) // 3
STATS = ["kappa", "accuracy", "mae", "pearson"]


def _equal_share(truth, pred):
    return np.mean(truth == pred)


@pytest.mark.parametrize("stat", STATS)
def test_sides_are_what_each_figure_gives_alone(stat):
    """Figures of a and b equal those of their own functions, and the difference is theirs."""
    alone = {"kappa": cohen_kappa, "accuracy": accuracy, "mae": mae, "pearson": pearson}[stat]
    found = compare_judges(TRUTH, A, B, stat=stat)
    assert (found.a, found.b) == (alone(TRUTH, A), alone(TRUTH, B))
    assert (found.a.low, found.b.high) == (alone(TRUTH, A).low, alone(TRUTH, B).high)
    assert found.difference == pytest.approx(float(found.a) - float(found.b))
    assert brackets(found.difference)
    assert (found.n, found.stat, found.method) == (90, stat, "bootstrap")


def test_kappa_difference_as_scikit_learn_has_it():
    """The difference of two kappas, plain and with quadratic weights."""
    for weights in (None, "quadratic"):
        expected = cohen_kappa_score(TRUTH, A, weights=weights) - cohen_kappa_score(TRUTH, B, weights=weights)
        assert compare_judges(TRUTH, A, B, weights=weights, ci=None).difference == pytest.approx(expected)


@pytest.mark.parametrize(
    "keywords",
    [
        *({"stat": stat, "method": method} for stat in STATS for method in ("bootstrap", "permutation")),
        {"stat": _equal_share, "n_resamples": 50},
        {"method": "mcnemar"},
        {"method": "williams"},
        {"stat": "kappa", "cluster": ITEMS},
        {"stat": "mae", "method": "permutation", "cluster": ITEMS},
        {"stat": "pearson", "ci": "analytic", "cluster": ITEMS},
        {"stat": "kappa", "ci": "bca"},
    ],
)
def test_exchanging_the_judges_changes_the_sign_alone(keywords):
    """compare(a, b) is minus compare(b, a): difference, interval, and the same p."""
    one, other = compare_judges(TRUTH, A, B, **keywords), compare_judges(TRUTH, B, A, **keywords)
    assert one.difference.value == -number(other.difference.value)
    assert (one.difference.low, one.difference.high) == (
        -number(other.difference.high),
        -number(other.difference.low),
    )
    assert one.p_value == other.p_value
    assert (one.a.value, one.b.value) == (other.b.value, other.a.value)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_exact_mcnemar_is_that_of_statsmodels_and_of_permutation(rows):
    """Exact McNemar, statsmodels, and the exact permutation of accuracy are one test."""
    truth, a, b = (np.array(column) for column in zip(*rows, strict=True))
    right_a, right_b = a == truth, b == truth
    table = [[np.sum(x & y) for y in (right_b, ~right_b)] for x in (right_a, ~right_a)]
    found = compare_judges(truth, a, b, method="mcnemar", ci=None)
    assert found.p_value == pytest.approx(mcnemar(table, exact=True).pvalue)
    permuted = compare_judges(truth, a, b, stat="accuracy", method="permutation", ci=None)
    assert "exact" in permuted.test
    assert found.p_value == pytest.approx(permuted.p_value)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_asymptotic_mcnemar_is_that_of_statsmodels(rows):
    """Chi-squared without continuity correction; exchanging the judges changes nothing; p = 1 of no item."""
    truth, a, b = (np.array(column) for column in zip(*rows, strict=True))
    right_a, right_b = a == truth, b == truth
    table = [[np.sum(x & y) for y in (right_b, ~right_b)] for x in (right_a, ~right_a)]
    found = compare_judges(truth, a, b, method="mcnemar-asymptotic", ci=None)
    expected = 1.0 if not table[0][1] + table[1][0] else mcnemar(table, exact=False, correction=False).pvalue
    assert found.p_value == pytest.approx(expected)
    assert compare_judges(truth, b, a, method="mcnemar-asymptotic", ci=None).p_value == found.p_value


def test_asymptotic_mcnemar_of_a_published_table():
    """Agresti 2002, table 10.1: 150 and 86 discordant of 1,600; z² = 64²/236 = 17.36, p = .00003."""
    truth = np.ones(1600)
    a = np.r_[np.ones(150), np.zeros(86), np.ones(1364)]
    b = np.r_[np.zeros(150), np.ones(86), np.ones(1364)]
    found = compare_judges(truth, a, b, method="mcnemar-asymptotic")
    assert found.p_value == pytest.approx(stats.chi2.sf(64**2 / 236, 1))
    assert "chi-squared = 17.35" in found.test and found.stat == "accuracy"
    assert found.difference.to_dict() == compare_judges(truth, a, b, method="mcnemar").difference.to_dict()


def test_no_discordant_item_gives_a_p_of_one():
    """Judges who are right on the same items do not differ; the interval still has width."""
    found = compare_judges([1, 0, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1], method="mcnemar")
    assert (found.p_value, found.difference.value) == (1.0, 0.0)
    assert brackets(found.difference)
    same = compare_judges([1, 0, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1], stat="accuracy")
    assert (same.p_value, same.difference.low, same.difference.reason) == (1.0, None, "no_variance")


def test_adjusted_wald_by_hand():
    """6 items right by a alone, 1 by b alone, 20 in all: (7 - 2)/22 ± 1.96 √((9/22 - (5/22)²)/22)."""
    truth = [1] * 20
    a, b = [1] * 6 + [0] + [1] * 13, [0] * 6 + [1] * 14
    found = compare_judges(truth, a, b, method="mcnemar")
    half = stats.norm.ppf(0.975) * math.sqrt((9 / 22 - (5 / 22) ** 2) / 22)
    assert found.difference.value == pytest.approx(0.25)
    assert (found.difference.low, found.difference.high) == pytest.approx((5 / 22 - half, 5 / 22 + half))
    # 2 (C(7,0) + C(7,1)) / 2^7 = 16/128
    assert found.p_value == pytest.approx(0.125)


@pytest.mark.parametrize("stat", STATS)
def test_exact_permutation_goes_through_all_exchanges(stat):
    """Seven items: the p-value is the share of all 2^7 exchanges that part the judges as far, written out."""
    truth, a, b = TRUTH[:7], np.array([0, 1, 2, 0, 1, 1, 0]), np.array([2, 0, 2, 1, 1, 0, 2])
    of = {
        "kappa": lambda t, p: cohen_kappa_score(t, p),
        "accuracy": lambda t, p: np.mean(t == p),
        "mae": lambda t, p: np.mean(np.abs(t - p)),
        "pearson": lambda t, p: np.corrcoef(t, p)[0, 1],
    }[stat]
    observed = abs(of(truth, a) - of(truth, b))
    far = [
        abs(of(truth, np.where(swap, b, a)) - of(truth, np.where(swap, a, b))) >= observed - 1e-9
        for swap in itertools.product([False, True], repeat=7)
    ]
    found = compare_judges(truth, a, b, stat=stat, method="permutation", ci=None)
    assert found.p_value == pytest.approx(np.mean(far))
    called = compare_judges(truth, a, b, stat=of, method="permutation", ci=None)
    assert called.p_value == pytest.approx(np.mean(far))


def test_clusters_are_exchanged_as_a_whole():
    """Three clusters have 2³ exchanges, two of which part the judges most: p = 1/4."""
    truth = np.ones(12, dtype=int)
    a, b = np.ones(12, dtype=int), np.zeros(12, dtype=int)
    found = compare_judges(
        truth, a, b, stat="accuracy", method="permutation", cluster=np.arange(12) // 4, ci=None
    )
    assert found.p_value == pytest.approx(0.25)
    free = compare_judges(truth, a, b, stat="accuracy", method="permutation", ci=None)
    assert free.p_value == pytest.approx(2 / 2**12)


def test_random_p_values_are_never_zero():
    """However far apart the judges are, p is at least 1 / (B + 1)."""
    truth = np.arange(60) % 7
    far = -truth.astype(float) + RNG.normal(size=60)
    permuted = compare_judges(truth, truth + 0.1 * RNG.normal(size=60), far, stat="mae", method="permutation")
    assert permuted.p_value == 1 / 10_001
    drawn = compare_judges(truth, truth + 0.1 * RNG.normal(size=60), far, stat="mae", n_resamples=499)
    assert drawn.p_value == 2 / 500


def test_bootstrap_p_and_percentile_interval_agree():
    """p lies below 1 - level where the percentile interval leaves out 0, and above where it holds it."""
    for shift in np.linspace(0, 0.5, 12):
        b = np.where(RNG.random(90) < shift, (A + 1) % 3, A)
        found = compare_judges(TRUTH, A, b, stat="kappa")
        if found.difference.low is not None and abs(number(found.p_value) - 0.05) > 0.01:
            assert (number(found.p_value) < 0.05) == (
                found.difference.low > 0 or number(found.difference.high) < 0
            )


def test_williams_t_by_hand():
    """r_a = .8, r_b = .5, r_ab = .4 from 20 numbers made to have these correlations.

    |R| = 1 - .64 - .25 - .16 + 2·.8·.5·.4 = .27; 2·.27·19/17 = .603529; (1.3)²/4·.6³ = .09126;
    t = .3 √(19·1.4 / .694789) = 1.856247, 17 degrees of freedom.
    """
    wanted = np.array([[1.0, 0.8, 0.5], [0.8, 1.0, 0.4], [0.5, 0.4, 1.0]])
    noise = np.random.default_rng(0).normal(size=(20, 3))
    white = np.linalg.qr(noise - noise.mean(0))[0]
    truth, a, b = (white @ np.linalg.cholesky(wanted).T).T
    found = compare_judges(truth, a, b, method="williams")
    assert found.a == pytest.approx(0.8)
    assert found.p_value == pytest.approx(2 * stats.t.sf(1.856247, 17), abs=1e-6)
    assert "t = 1.8562" in found.test


def test_williams_without_an_answer():
    """Below four items and for opposite judges there is no test; equal judges have p = 1."""
    assert compare_judges([1, 2, 3], [1, 2, 4], [1, 3, 2], method="williams").reason == "too_few_units"
    opposite = compare_judges([1, 2, 3, 5, 4], [1, 3, 2, 4, 5], [-1, -3, -2, -4, -5], method="williams")
    assert (opposite.p_value, opposite.reason) == (None, "no_variance")
    assert compare_judges(TRUTH, A, A, method="williams").p_value == 1.0
    constant = compare_judges([1, 2, 3, 4], [1, 1, 1, 1], [1, 2, 3, 3], method="williams")
    assert (constant.difference.value, constant.p_value, constant.reason) == (None, None, "no_variance")


@pytest.mark.parametrize(
    "keywords",
    [
        {"stat": "accuracy"},
        {"stat": "kappa"},
        {"stat": "pearson", "method": "williams"},
        {"stat": "kappa", "method": "permutation"},
    ],
)
def test_p_values_are_uniform_where_the_judges_are_alike(keywords):
    """Of 300 comparisons of equally good judges on 60 items about 5 % have p < .05, and half p < .5."""
    rng = np.random.default_rng(5)
    p = []
    for seed in range(300):
        truth: Any = rng.random(60) < 0.5
        a, b = (np.where(rng.random(60) < 0.8, truth, ~truth) for _ in range(2))
        if keywords["stat"] == "pearson":
            truth = rng.normal(size=60)
            a, b = truth + rng.normal(size=60), truth + rng.normal(size=60)
        found = compare_judges(truth, a, b, **keywords, ci=None, n_resamples=300, rng=seed)
        p.append(number(found.p_value))
    assert 0.01 <= np.mean(np.array(p) < 0.05) <= 0.10
    assert 0.38 <= np.mean(np.array(p) < 0.5) <= 0.62


def test_intervals_cover_a_difference_that_is_there():
    """The bootstrap interval of a difference in accuracy of .2 covers it in about 95 % of 300 draws."""
    rng, covered = np.random.default_rng(2), 0
    for seed in range(300):
        truth = rng.random(80) < 0.5
        a, b = (np.where(rng.random(80) < right, truth, ~truth) for right in (0.9, 0.7))
        found = compare_judges(truth, a, b, stat="accuracy", n_resamples=300, rng=seed).difference
        covered += number(found.low) <= 0.2 <= number(found.high)
    assert 0.90 * 300 <= covered <= 0.99 * 300


def test_the_analytic_interval_is_near_the_bootstrap():
    """Delta method and bootstrap have errors within a quarter of each other, by item and by cluster."""
    for stat, cluster in itertools.product(STATS, (None, ITEMS)):
        keywords: dict[str, Any] = {"stat": stat, "cluster": cluster}
        drawn = compare_judges(TRUTH, A, B, **keywords).difference
        analytic = compare_judges(TRUTH, A, B, **keywords, ci="analytic").difference
        assert number(analytic.se) == pytest.approx(number(drawn.se), rel=0.25)
        assert analytic.value == drawn.value


def test_items_missing_anywhere_are_left_out_of_both():
    """Figures of both judges rest on the items that have all three."""
    truth = [1, 0, None, 1, 0, 1, 1, 0]
    a, b = [1, 0, 1, None, 0, 0, 1, 0], [1, 1, 1, 1, None, 1, 0, 0]
    stats_and_function: list[Any] = [*STATS, _equal_share]
    for stat in stats_and_function:
        found = compare_judges(truth, a, b, stat=stat)
        assert (found.n, found.n_missing, found.difference.n_missing) == (5, 3, 3)
    complete = [0, 1, 5, 6, 7]
    expected = accuracy([truth[i] for i in complete], [a[i] for i in complete])
    assert compare_judges(truth, a, b, stat="accuracy").a == expected


def test_scales_place_labels():
    """Ordinal labels count with their values in `mae`; unused categories do not change kappa."""
    scale = Ordinal(["poor", "fair", "good"], [0.0, 0.2, 1.0])
    truth, a, b = ["poor", "fair", "good", "good"], ["fair", "fair", "good", "poor"], ["poor"] * 4
    found = compare_judges(truth, a, b, stat="mae", scale=scale)
    assert found.a == pytest.approx((0.2 + 0 + 0 + 1) / 4)
    assert found.b == pytest.approx((0 + 0.2 + 1 + 1) / 4)
    wider = compare_judges(truth, a, b, scale=Nominal(["poor", "fair", "good", "best"]))
    assert wider.difference == compare_judges(truth, a, b, scale=Nominal(["poor", "fair", "good"])).difference
    assert compare_judges(TRUTH, A, B, labels=3).difference == compare_judges(TRUTH, A, B).difference
    bounded = compare_judges([0.1, 0.9], [0.2, 0.8], [0.5, 0.5], stat="mae", scale=Interval(0, 1))
    assert bounded.difference == pytest.approx(-0.3)


def test_functions_see_the_items_as_they_are():
    """A function gets arrays of the labels given; what it cannot tell is undefined with a reason."""
    seen = []

    def share(truth, pred):
        seen.append((truth.dtype.kind, len(truth)))
        return np.mean(truth == pred)

    found = compare_judges(["u", "v", "v", "u"], ["u", "v", "u", "u"], ["v", "v", "v", "v"], stat=share)
    assert found.difference == pytest.approx(0.25)
    assert {kind for kind, _ in seen} == {"U"}
    assert found.stat == "share"
    nothing = compare_judges(TRUTH, A, B, stat=lambda truth, pred: None)
    assert (nothing.p_value, nothing.difference.reason) == (None, "not_comparable")
    nested = compare_judges(TRUTH, A, B, stat=lambda t, p: cohen_kappa(t, p, ci=None), n_resamples=40)
    assert nested.difference == pytest.approx(float(compare_judges(TRUTH, A, B).difference))


def test_undefined_figures_and_lonely_units():
    """Nothing, one class, one item and one cluster: reasons, no p that looks certain, no warning."""
    assert compare_judges([], [], []).reason == "no_pairs"
    assert compare_judges([1, 1], [1, 1], [1, 1]).reason == "single_class"
    for size in (1, 2):
        keywords: dict[str, Any] = {} if size == 1 else {"cluster": ["x", "x"]}
        lonely = compare_judges([1] * size, [1] * size, [0] * size, stat="accuracy", **keywords)
        assert (lonely.difference.value, lonely.p_value, lonely.reason) == (1.0, None, "too_few_units")


def test_no_items_are_undefined_for_every_figure_and_test():
    """Without items every figure and every test has a reason."""
    cases: list[dict[str, Any]] = [{"stat": stat} for stat in [*STATS, _equal_share]]
    for keywords in [*cases, {"method": "mcnemar"}, {"method": "williams"}, {"cluster": []}]:
        found = compare_judges([], [], [], **keywords)
        assert (found.difference.value, found.p_value, found.reason) == (None, None, "no_pairs")


def test_many_resamples_without_a_figure_refuse():
    """A figure that most resamples leave undefined has no bootstrap p and says why."""

    def fragile(truth, pred):
        return pred[0] if sum(truth) == 1 else None

    rare = [1] + [0] * 11
    lost = compare_judges(rare, rare, rare[::-1], stat=fragile)
    assert (lost.difference.value, lost.difference.low) == (1.0, None)
    assert (lost.p_value, lost.reason) == (None, "degenerate_resamples")


def test_undefined_estimates_of_a_function_are_undefined():
    """A function may give an estimate; an undefined one makes that resample undefined."""
    found = compare_judges(
        [1, 0, 0, 1],
        [1, 0, 0, 1],
        [1, 0, 1, 1],
        stat=lambda t, p: cohen_kappa(t, p, ci=None),
        n_resamples=200,
    )
    # b: po = 3/4, pe = 2·3/16 + 2·1/16 = 1/2, kappa 1/2.
    assert found.difference == pytest.approx(0.5)
    assert "undefined" in found.difference.method


def test_order_of_items_does_not_matter():
    """Figures of tables have the same difference, interval and p in any order of the items."""
    order = RNG.permutation(90)
    cases: list[dict[str, Any]] = [{}, {"stat": "accuracy"}, {"method": "permutation"}]
    for keywords in cases:
        plain = compare_judges(TRUTH, A, B, **keywords)
        moved = compare_judges(TRUTH[order], A[order], B[order], **keywords)
        assert (moved.p_value, moved.difference.low) == (plain.p_value, plain.difference.low)


def test_the_seed_settles_everything():
    """The same seed gives the same figures; a generator goes on."""
    one, again = (compare_judges(TRUTH, A, B, rng=3) for _ in range(2))
    assert one.to_dict() == again.to_dict()
    generator = np.random.default_rng(3)
    drawn = [compare_judges(TRUTH, A, B, rng=generator).difference.low for _ in range(2)]
    assert drawn[0] != drawn[1]
    json.dumps(one.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"method": "t"}, "bootstrap"),
        ({"stat": "f2"}, "accuracy"),
        ({"stat": "kappa", "method": "mcnemar"}, "permutation"),
        ({"stat": "mae", "method": "williams"}, "pearson"),
        ({"method": "mcnemar", "cluster": ITEMS}, "independent"),
        ({"stat": "mae", "weights": "linear"}, "kappa"),
        ({"stat": "mae", "scale": Nominal([0, 1, 2])}, "Ordinal"),
        ({"stat": "mae", "scale": Interval(0, 1)}, "not on the scale"),
        ({"stat": _equal_share, "scale": Nominal([0, 1])}, "not on the scale"),
        ({"ci": "smoothed"}, "percentile"),
        ({"stat": _equal_share, "ci": "analytic"}, "percentile"),
    ],
)
def test_what_does_not_go_together_is_refused(keywords, words):
    """Unknown names, tests of another figure, clusters where items must be independent, wrong scales."""
    with pytest.raises(ArgumentError, match=words):
        compare_judges(TRUTH, A, B, **keywords)


def test_lengths_must_be_equal():
    """One label of each per item."""
    with pytest.raises(ArgumentError, match="truth has 90"):
        compare_judges(TRUTH, A[1:], B)


def test_a_difference_of_nothing_is_as_near_as_can_be():
    """Mean errors equal but for rounding: every exchange parts them as far, in tenths as in whole numbers."""
    truth, a, b = [6, 4, 3, 5, 9, 1], [5, 5, 8, 0, 2, 3], [9, 0, 4, 4, 0, 4]
    for unit in (10.0, 1.0, 0.1, 1e-7):
        columns = ([number * unit for number in column] for column in (truth, a, b))
        assert compare_judges(*columns, stat="mae").p_value == 1.0
    assert compare_judges(*([x / 10 for x in column] for column in (truth, a, b)), stat="mae").p_value == 1.0
