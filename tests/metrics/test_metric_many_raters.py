"""Agreement among many raters, by hand and against other software."""

from __future__ import annotations

import numpy as np
import pytest

from autorubric.errors import ArgumentError
from autorubric.metrics import (
    Interval,
    Nominal,
    Ordinal,
    brennan_prediger,
    cohen_kappa,
    conger_kappa,
    fleiss_kappa,
    percent_agreement,
)
from tests.metrics.asserting import brackets, number
from tests.metrics.published import FOUR, FOURTEEN

N = None


def test_fleiss_worked_example():
    """Of the fourteen raters P is .378 and Pe .213."""
    found = fleiss_kappa(counts=FOURTEEN)
    shares = np.array(FOURTEEN).sum(0) / 140
    agreeing = (np.array(FOURTEEN) ** 2).sum() / (10 * 14 * 13) - 1 / 13
    assert found == pytest.approx((agreeing - (shares**2).sum()) / (1 - (shares**2).sum()))
    assert percent_agreement(counts=FOURTEEN) == pytest.approx(agreeing)


def test_gwet_four_raters_with_missing_ratings():
    """irrCAC prints agreement .81818, which is 9 / 11, for the four raters."""
    scale = Ordinal([1, 2, 3, 4, 5])
    assert f"{percent_agreement(FOUR, scale=scale):.5f}" == "0.81818"
    assert brennan_prediger(ratings=FOUR, scale=scale) == pytest.approx((9 / 11 - 0.2) / 0.8)


def test_conger_four_raters_with_missing_ratings():
    """irrCAC prints Conger's kappa .76282 for the four raters; complete rows give Conger's own formula."""
    assert f"{conger_kappa(FOUR):.5f}" == "0.76282"
    complete = np.array([row for row in FOUR if N not in row])
    shares = np.array([[(column == k).mean() for k in range(1, 5)] for column in complete.T])
    pairs = [(g, h) for g in range(4) for h in range(g)]
    expected = np.mean([shares[g] @ shares[h] for g, h in pairs])
    observed = np.mean([(complete[:, g] == complete[:, h]).mean() for g, h in pairs])
    assert conger_kappa(complete) == pytest.approx((observed - expected) / (1 - expected))


@pytest.mark.parametrize("weights", [None, "linear", "quadratic"])
def test_conger_of_two_raters_is_cohens_kappa(weights):
    """Each rater keeps margins of their own; with weights as without."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 4, 80)
    pred = np.minimum(truth + rng.integers(0, 2, 80), 3)
    scale = Ordinal(range(4))
    found = conger_kappa(np.column_stack([truth, pred]), scale=scale, weights=weights, ci="analytic")
    cohen = cohen_kappa(truth, pred, scale=scale, weights=weights, ci="analytic")
    assert found == pytest.approx(cohen)
    assert number(found.se) == pytest.approx(number(cohen.se))


def test_conger_undefined():
    """One category, no pair, no rating, weights that leave no room: None with the reason."""
    assert conger_kappa([[1, 1], [1, 1]]).reason == "single_class"
    assert conger_kappa([[1, N], [N, 0]]).reason == "no_pairs"
    assert conger_kappa([[N, N]]).reason == "no_ratings"
    assert conger_kappa([]).reason == "no_ratings"
    assert conger_kappa([[1], [0]]).reason == "no_pairs"
    assert conger_kappa([[1, 0], [0, 1]], weights=[[1, 1], [1, 1]]).reason == "no_variance"
    found = conger_kappa([[1, 1, N], [0, 0, N], [N, N, N]])
    assert (found.value, found.n, found.n_missing) == (1.0, 2, 1)


def test_missing_ratings_do_not_drop_the_unit():
    """A unit with one rating counts in the shares alone, and a unit with none is counted as missing."""
    found = fleiss_kappa([[1, 1, 1], [1, 0, N], [N, N, N], [0, N, N]])
    assert (found.n, found.n_missing) == (3, 1)


def test_arrays_rows_and_counts_agree():
    """Codes in an array, lists of labels, and counts are the same ratings."""
    codes = np.array([[-1 if r is None else r - 1 for r in row] for row in FOUR])
    counts = [[row.count(k) for k in range(1, 6)] for row in FOUR]
    expected = float(fleiss_kappa(FOUR))
    assert fleiss_kappa(codes, labels=5) == pytest.approx(expected)
    assert fleiss_kappa(counts=counts) == pytest.approx(expected)
    assert fleiss_kappa(counts=counts, weights="quadratic") == pytest.approx(
        fleiss_kappa(FOUR, weights="quadratic", scale=Ordinal([1, 2, 3, 4, 5]))
    )


def test_undefined_agreement():
    """One category, no unit with two ratings, no rating at all: None with the reason."""
    assert fleiss_kappa([[1, 1], [1, 1]]).reason == "single_class"
    assert fleiss_kappa([[1, N], [N, 0]]).reason == "no_pairs"
    assert fleiss_kappa([[N, N]]).reason == "no_ratings"
    assert fleiss_kappa([]).reason == "no_ratings"
    assert percent_agreement([[1, 1], [1, 1]]) == 1.0
    assert fleiss_kappa([[1, 0], [0, 1]], weights=[[1, 1], [1, 1]]).reason == "no_variance"


@pytest.mark.parametrize("ci", ["auto", "analytic", "percentile", "bca"])
def test_intervals_resample_units_or_clusters(ci):
    """Every method brackets the estimate, over units and over clusters of units."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 90)
    ratings = np.where(rng.random((90, 3)) < 0.7, truth[:, None], rng.integers(0, 3, (90, 3)))
    for cluster in (None, np.arange(90) // 3):
        found = fleiss_kappa(ratings, cluster=cluster, ci=ci)
        assert brackets(found)
        assert 0 < number(found.se) < 0.2


def test_input_is_checked():
    """Ragged rows, other shapes, no counts and too many forms raise."""
    for arguments in (
        {},
        {"ratings": [[1]], "counts": [[1]]},
        {"ratings": [[1, 2], [1]]},
        {"ratings": np.zeros(3)},
        {"counts": [1, 2]},
        {"counts": [[0.5, 1]]},
        {"counts": [[1, 2]], "scale": Nominal("abc")},
        {"counts": [[1, 2]], "scale": Interval()},
    ):
        with pytest.raises(ArgumentError):
            fleiss_kappa(**arguments)
