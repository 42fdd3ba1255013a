"""The unit that the smoothed bootstrap adds to ratings."""

from __future__ import annotations

import numpy as np
import pytest

from autorubric.errors import ArgumentError
from autorubric.metrics import (
    Ordinal,
    brennan_prediger,
    cohen_kappa,
    conger_kappa,
    fleiss_kappa,
    gwet_ac,
    krippendorff_alpha,
    percent_agreement,
    scott_pi,
)
from autorubric.metrics.figures.many_raters import prior_counts, prior_ratings
from tests.metrics.asserting import number, width

RNG = np.random.default_rng(5)
PAIRS = np.column_stack([RNG.integers(0, 3, 40), RNG.integers(0, 3, 40)])
PAIRS[:28, 1] = PAIRS[:28, 0]
PERFECT = [[1, 1]] * 20 + [[0, 0]] * 10
ITEMS = [i // 2 for i in range(40)]


def test_two_raters_are_the_cells_of_their_table():
    """Each of the K² cells is as likely."""
    found = prior_ratings(np.ones((1, 2), dtype=bool), np.array([7]), 3)
    assert sorted(map(tuple, found.rows.tolist())) == [(i, j) for i in range(3) for j in range(3)]
    assert found.chances == pytest.approx(np.full(9, 1 / 9))


def test_ratings_are_missing_as_often_as_in_the_units():
    """Three of four units with both raters, one with the second alone: 3/4 and 1/4, spread evenly."""
    given = np.array([[True, True], [False, True], [True, True]])
    found = prior_ratings(given, np.array([2, 1, 1]), 2)
    both = (found.rows >= 0).all(axis=1)
    assert found.chances[both] == pytest.approx(np.full(4, 3 / 16))
    assert sorted(found.rows[~both].tolist()) == [[-1, 0], [-1, 1]]
    assert found.chances[~both] == pytest.approx([1 / 8, 1 / 8])


def test_counts_are_multinomial():
    """Of three ratings in two categories: 1/8, 3/8, 3/8, 1/8; of many, about half in each."""
    found = prior_counts(np.array([3]), np.array([5]), 2)
    assert found.rows.tolist() == [[0, 3], [1, 2], [2, 1], [3, 0]]
    assert found.chances == pytest.approx([1 / 8, 3 / 8, 3 / 8, 1 / 8])
    many = prior_counts(np.array([60, 61]), np.array([1, 1]), 2)
    assert many.chances.sum() == pytest.approx(1.0)
    assert set(many.rows.sum(axis=1).tolist()) == {60, 61}
    assert many.chances @ many.rows == pytest.approx([30.25, 30.25], rel=0.02)


@pytest.mark.parametrize("cluster", [None, ITEMS])
def test_two_raters_agree_with_the_table(cluster):
    """Fleiss' interval is Scott's and Conger's is Cohen's but for the draws; alpha's is nearly Scott's."""
    columns = (PAIRS[:, 0], PAIRS[:, 1])
    options = {"labels": 3, "n_resamples": 20000, "cluster": cluster}
    scott, cohen = scott_pi(*columns, **options), cohen_kappa(*columns, **options)
    for ours, table, slack in (
        (fleiss_kappa(PAIRS, **options), scott, 0.01),
        (conger_kappa(PAIRS, **options), cohen, 0.01),
        (krippendorff_alpha(PAIRS, **options), scott, 0.02),
    ):
        assert "smoothed bootstrap" in ours.method
        assert (ours.low, ours.high) == pytest.approx((table.low, table.high), abs=slack)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval", "ratio"])
@pytest.mark.parametrize("cluster", [None, [i // 2 for i in range(30)]])
def test_alpha_of_perfect_raters_has_width(level, cluster):
    """On every level with declared categories; of two categories all levels have one interval."""
    found = krippendorff_alpha(PERFECT, level=level, labels=2, cluster=cluster)
    nominal = krippendorff_alpha(PERFECT, labels=2, cluster=cluster)
    assert found == 1.0
    assert 0.6 < number(found.low) < 0.95
    assert found.low == pytest.approx(nominal.low)
    scale = Ordinal(["bad", "good"], [0.0, 1.0])
    words = [[("bad", "good")[code] for code in row] for row in PERFECT]
    assert krippendorff_alpha(words, level=level, scale=scale, cluster=cluster).low == nominal.low


def test_raw_numbers_are_not_smoothed():
    """Numbers without categories keep the percentile bootstrap, and refuse the smoothed one by name."""
    found = krippendorff_alpha([[1.5, 1.7], [2.0, 2.9], [3.3, 3.1], [0.2, 0.9]], level="interval")
    assert "percentile bootstrap" in found.method
    with pytest.raises(ArgumentError, match="finite number of categories"):
        krippendorff_alpha([[1.5, 1.7], [2.0, 2.9]], level="interval", ci="smoothed")


@pytest.mark.parametrize("function", [fleiss_kappa, conger_kappa, krippendorff_alpha])
def test_other_intervals_keep_their_names(function):
    """Percentile and BCa draw the units alone."""
    plain = function(PAIRS, labels=3)
    assert function(PAIRS, labels=3, ci="smoothed").low == plain.low
    for ci in ("percentile", "bca"):
        other = function(PAIRS, labels=3, ci=ci)
        assert f"{ci} bootstrap" in other.method
        assert other.value == plain.value
        assert width(other) != width(plain)


def test_chance_free_coefficients_of_perfect_raters_have_width():
    """Gwet's and Brennan and Prediger's coefficient of ratings are smoothed too."""
    for function in (gwet_ac, brennan_prediger):
        found = function(ratings=PERFECT)
        assert found == 1.0
        assert number(found.low) < 0.95


def test_many_raters_with_gaps():
    """Ratings missing and more possible units than are gone through: still one interval a seed."""
    rng = np.random.default_rng(2)
    ratings = np.where(
        rng.random((60, 9)) < 0.3, -1, rng.integers(0, 4, (60, 1)) + (rng.random((60, 9)) < 0.1)
    )
    for function in (fleiss_kappa, conger_kappa, krippendorff_alpha):
        found = function(ratings, labels=5)
        assert number(found.low) < number(found.value) < number(found.high)
        assert found.low == function(ratings, labels=5).low


def test_percent_agreement_is_logit_t_over_units():
    """Hand-worked: shares 1, 1, 1/3, 1, 1/3, 1 of three raters; t with 5 on the logit scale."""
    ratings = [[1, 1, 1], [0, 0, 0], [1, 1, 0], [1, 1, 1], [0, 1, 0], [0, 0, 0], [1, None, None]]
    found = percent_agreement(ratings)
    shares = np.array([1, 1, 1 / 3, 1, 1 / 3, 1])
    # Mean 7/9; sd of the shares 0.3443, over √6 0.1405; t(5) = 2.5706; logit(7/9) = ln 3.5.
    half = 2.570582 * shares.std(ddof=1) / np.sqrt(6) / (7 / 9 * 2 / 9)
    assert found == pytest.approx(7 / 9)
    assert found.low == pytest.approx(1 / (1 + np.exp(half) / 3.5), rel=1e-5)
    assert found.high == pytest.approx(1 / (1 + np.exp(-half) / 3.5), rel=1e-5)
    one_each = percent_agreement(ratings[:6], cluster=range(6))
    assert (one_each.low, one_each.high) == pytest.approx((found.low, found.high))
    perfect = percent_agreement([[1, 1]] * 30)
    assert perfect == 1.0
    # At 1 the score interval with one observation a unit: n / (n + t²), t(29) = 2.0452.
    assert perfect.low == pytest.approx(30 / (30 + 2.04523**2), rel=1e-4)
    assert percent_agreement([[1, 1], [0, None]]).reason == "too_few_units"
