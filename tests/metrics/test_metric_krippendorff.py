"""Krippendorff's alpha, against his published tables and against the definition laid out pair by pair."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest

from autorubric.errors import ArgumentError
from autorubric.metrics import Binary, Interval, Nominal, Ordinal, krippendorff_alpha, scott_pi
from autorubric.metrics.figures.krippendorff import AlphaLevel
from tests.metrics.asserting import brackets, width
from tests.metrics.published import FOUR

N = None
LEVELS: tuple[AlphaLevel, ...] = ("nominal", "ordinal", "interval", "ratio")


def by_definition(ratings, level):
    """Alpha from the coincidence matrix, value by value, as the paper lays it out."""
    values = sorted({r for row in ratings for r in row if r is not None})
    coincidences = dict.fromkeys(itertools.product(values, values), 0.0)
    for row in ratings:
        there = [r for r in row if r is not None]
        for one, other in itertools.permutations(range(len(there)), 2):
            coincidences[there[one], there[other]] += 1 / (len(there) - 1)
    margin = {c: sum(coincidences[c, k] for k in values) for c in values}

    def difference(c, k):
        if level == "nominal":
            return float(c != k)
        if level == "ordinal":
            low, high = sorted((c, k))
            between = sum(margin[g] for g in values if low <= g <= high)
            return (between - (margin[c] + margin[k]) / 2) ** 2
        return float((c - k) ** 2 / (1 if level == "interval" else ((c + k) or 1) ** 2))

    n = sum(margin.values())
    observed = sum(o * difference(c, k) for (c, k), o in coincidences.items())
    expected = sum(margin[c] * margin[k] * difference(c, k) for c in values for k in values)
    return 1 - (n - 1) * observed / expected


@pytest.mark.parametrize("level", LEVELS)
def test_units_with_one_rating_do_not_count(level):
    """Of twelve units eleven have two ratings or more, which make the definition's alpha."""
    found = krippendorff_alpha(FOUR, level=level)
    assert found == pytest.approx(by_definition(FOUR, level))
    assert (found.n, found.n_missing) == (11, 1)
    assert brackets(found)


def test_two_observers_nominal_and_binary():
    """His two smaller examples: binary data .095, five nominal categories .692 (sections A and B)."""
    first = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    second = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    assert f"{krippendorff_alpha(list(zip(first, second, strict=True))):.3f}" == "0.095"
    observers = zip("aabbdcccedda", "babbbccceddd", strict=True)
    assert f"{krippendorff_alpha([list(row) for row in observers]):.3f}" == "0.692"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("seed", range(4))
def test_against_the_definition(level, seed):
    """Sums per unit give what pairs of ratings give, with ratings missing at random."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 6, 40)
    noisy = np.clip(truth[:, None] + rng.integers(-1, 2, (40, 4)), 0, 6).tolist()
    ratings = [[None if rng.random() < 0.3 else value for value in row] for row in noisy]
    found = krippendorff_alpha(ratings, level=level, ci=None)
    assert found == pytest.approx(by_definition(ratings, level))


def test_nominal_alpha_of_two_raters_nears_scotts_pi():
    """Alpha is pi with a correction for few ratings: 1 - (1 - pi) (2N - 1) / 2N."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, 50)
    pred = np.where(rng.random(50) < 0.7, truth, rng.integers(0, 3, 50))
    scale = Nominal(range(3))
    alpha = krippendorff_alpha(np.column_stack([truth, pred]), scale=scale, ci=None)
    assert alpha == pytest.approx(1 - (1 - scott_pi(truth, pred, scale=scale, ci=None)) * 99 / 100)


def test_order_and_distance_come_from_the_scale():
    """Words have an order where the scale declares one, and distances where it has values."""
    words = [["low", "mid"], ["mid", "mid"], ["high", "high"], ["low", "low"], ["high", "mid"]]
    scale = Ordinal(["low", "mid", "high"], [0, 1, 10])
    places = [[["low", "mid", "high"].index(word) for word in row] for row in words]
    values = [[[0, 1, 10][place] for place in row] for row in places]
    assert krippendorff_alpha(words, level="ordinal", scale=scale) == krippendorff_alpha(
        places, level="ordinal"
    )
    assert krippendorff_alpha(words, level="interval", scale=scale) == pytest.approx(
        krippendorff_alpha(values, level="interval", scale=Interval(0, 10))
    )
    assert krippendorff_alpha(np.array(places), level="interval", labels=3) == pytest.approx(
        krippendorff_alpha(places, level="interval")
    )


def test_levels_agree_on_two_values():
    """With two values every difference is the same one."""
    rng = np.random.default_rng(2)
    ratings = rng.integers(0, 2, (30, 3)).tolist()
    found = [krippendorff_alpha(ratings, level=level, ci=None).value for level in LEVELS]
    assert found == pytest.approx([found[0]] * 4)
    met = [["MET" if one else "UNMET" for one in row] for row in ratings]
    assert krippendorff_alpha(met, scale=Binary(), ci=None) == pytest.approx(found[0])


def test_undefined():
    """No rating, no pair, no difference: None with the reason, on every level."""
    for level in LEVELS:
        assert krippendorff_alpha([], level=level).reason == "no_ratings"
        assert krippendorff_alpha([[N, N]], level=level).reason == "no_ratings"
        assert krippendorff_alpha([[1, N], [N, 2]], level=level).reason == "no_pairs"
        assert krippendorff_alpha([[3, 3], [3, 3], [1, N]], level=level).reason == "single_class"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("ci", ["percentile", "bca"])
def test_intervals_over_units_and_clusters(level, ci):
    """Units are resampled, or clusters of units."""
    rng = np.random.default_rng(5)
    truth = rng.integers(1, 5, 60)
    ratings = np.clip(truth[:, None] + rng.integers(-1, 2, (60, 3)), 1, 5)
    for cluster in (None, np.arange(60) // 3):
        assert (
            0 < width(krippendorff_alpha(ratings, level=level, ci=ci, cluster=cluster, n_resamples=200)) < 0.5
        )


def test_thousands_of_different_scores():
    """Every level that uses order or distances takes continuous scores."""
    rng = np.random.default_rng(7)
    truth = rng.normal(size=4000)
    ratings = np.abs(truth[:, None] + rng.normal(scale=0.5, size=(4000, 3)))
    for level in ("ordinal", "interval", "ratio"):
        found = krippendorff_alpha(ratings, level=level, ci=None)
        assert 0.2 < float(found) < 0.9


def ratio_alpha(ratings):
    """Alpha on the ratio level with every value set against every other; NaN is missing."""
    there = ~np.isnan(ratings)
    kept = ratings[there.sum(1) >= 2]

    def over_pairs(values):
        total = values[:, None] + values
        return (((values[:, None] - values) / np.where(total == 0, 1.0, total)) ** 2).sum()

    units = [row[~np.isnan(row)] for row in kept]
    observed = sum(over_pairs(row) / (len(row) - 1) for row in units)
    return 1 - (sum(map(len, units)) - 1) * observed / over_pairs(np.concatenate(units))


@pytest.mark.parametrize("spread", [1e-4, 0.1, 1.0, 20.0, 100.0])
def test_many_values_on_a_ratio_scale_against_the_definition(spread):
    """However close or far apart the values, zeros and gaps among them."""
    rng = np.random.default_rng(11)
    ratings = np.exp(spread * (rng.normal(size=(400, 1)) + 0.4 * rng.normal(size=(400, 3))))
    ratings[:30, 0] = np.nan
    if spread >= 1:
        ratings[20:40] = 0.0
        ratings[40:60, 1] = 0.0
    assert krippendorff_alpha(ratings, level="ratio", ci=None) == pytest.approx(
        ratio_alpha(ratings), abs=1e-12
    )


def test_more_values_than_a_table_of_units_and_values_holds():
    """With 1,200 units of three different scores, the counts of values are sparse."""
    rng = np.random.default_rng(14)
    ratings = np.exp(rng.normal(size=(1200, 1)) + 0.5 * rng.normal(size=(1200, 3)))
    assert krippendorff_alpha(ratings, level="ratio", ci=None) == pytest.approx(
        ratio_alpha(ratings), abs=1e-12
    )


def test_the_bootstrap_of_many_values_is_that_of_the_definition():
    """Standard errors on the ratio level, and nominal with many categories, from resamples by hand."""
    rng = np.random.default_rng(12)
    ratio = np.exp(rng.normal(size=(200, 1)) + 0.6 * rng.normal(size=(200, 3)))
    by_hand = [ratio_alpha(ratio[rng.integers(0, 200, 200)]) for _ in range(150)]
    assert krippendorff_alpha(ratio, level="ratio").se == pytest.approx(np.std(by_hand), rel=0.2)
    truth = rng.integers(0, 500, (9000, 1))
    names = np.where(rng.random((9000, 3)) < 0.8, truth, rng.integers(0, 500, (9000, 3)))
    one, two, three = names.T
    unequal = (one != two) * 1.0 + (one != three) + (two != three)
    draws = [rng.integers(0, 9000, 9000) for _ in range(150)]

    def nominal(rows):
        margins = np.bincount(names[rows].reshape(-1))
        n = margins.sum()
        return 1 - (n - 1) * unequal[rows].sum() / (n * n - (margins.astype(float) ** 2).sum())

    found = krippendorff_alpha(names, ci="percentile")
    assert found == pytest.approx(nominal(np.arange(9000)))
    assert found.se == pytest.approx(np.std([nominal(rows) for rows in draws]), rel=0.2)


@pytest.mark.parametrize("level", ["nominal", "ratio"])
def test_values_are_not_laid_out_against_each_other(level):
    """Nine thousand different values: a table of all pairs would take 648 MB."""
    values = np.random.default_rng(13).permutation(9000).reshape(3000, 3) + 1.0
    tracemalloc.start()
    try:
        krippendorff_alpha(values, level=level, n_resamples=20)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 250e6


@pytest.mark.parametrize(
    "arguments",
    [
        {"ratings": [["a", "b"]], "level": "ordinal"},
        {"ratings": [["a", "b"]], "level": "interval"},
        {"ratings": [["a", "b"]], "level": "interval", "scale": Nominal("ab")},
        {"ratings": [[-1, 2]], "level": "ratio"},
        {"ratings": [[1, 20]], "level": "interval", "scale": Interval(0, 10)},
        {"ratings": [[1, 2], [1]], "level": "interval"},
        {"ratings": np.zeros(3), "level": "interval"},
        {"ratings": [[1, 2]], "level": "cardinal"},
        {"ratings": [[1, 2], [2, 1]], "ci": "analytic"},
    ],
    ids=str,
)
def test_input_is_checked(arguments):
    """Labels without order or distance, ragged rows and unknown levels raise."""
    with pytest.raises(ArgumentError):
        krippendorff_alpha(**arguments)
