"""Intraclass correlations, Cronbach's alpha and Kendall's W, against published tables and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from autorubric.errors import ArgumentError
from autorubric.metrics import cronbach_alpha, icc, kendall_w, lin_ccc
from tests.metrics.asserting import brackets, number, width
from tests.metrics.published import SHROUT_FLEISS

FORMS = ("ICC(1,1)", "ICC(2,1)", "ICC(3,1)", "ICC(1,k)", "ICC(2,k)", "ICC(3,k)")


@pytest.mark.parametrize(
    ("form", "low", "high"),
    [
        ("ICC(1,1)", -0.133, 0.723),
        ("ICC(2,1)", 0.019, 0.761),
        ("ICC(3,1)", 0.342, 0.946),
        ("ICC(1,k)", -0.884, 0.912),
        ("ICC(2,k)", 0.071, 0.927),
        ("ICC(3,k)", 0.676, 0.986),
    ],
)
def test_intervals_as_psych(form, low, high):
    """The intervals are those that R's psych prints for the table of Shrout and Fleiss."""
    found = icc(SHROUT_FLEISS, form=form)
    assert number(found.low) == pytest.approx(low, abs=6e-4)
    assert number(found.high) == pytest.approx(high, abs=6e-4)
    assert "analytic" in found.method


def mean_squares(ratings):
    """MSR, MSC, MSE and MSW, term by term."""
    x = np.array(ratings, dtype=float)
    n, k = x.shape
    rows = k * ((x.mean(1) - x.mean()) ** 2).sum() / (n - 1)
    columns = n * ((x.mean(0) - x.mean()) ** 2).sum() / (k - 1)
    left = x - x.mean(1, keepdims=True) - x.mean(0, keepdims=True) + x.mean()
    within = ((x - x.mean(1, keepdims=True)) ** 2).sum() / (n * (k - 1))
    return rows, columns, (left**2).sum() / ((n - 1) * (k - 1)), within


@pytest.mark.parametrize("seed", range(3))
def test_six_forms_by_hand(seed):
    """McGraw and Wong's table 4 from mean squares; A and C are other names of two of the models."""
    rng = np.random.default_rng(seed)
    ratings = rng.normal(size=(12, 1)) + rng.normal(size=(1, 4)) + rng.normal(size=(12, 4)) + 1e6
    rows, columns, error, within = mean_squares(ratings)
    n, k = ratings.shape
    expected = {
        "ICC(1,1)": (rows - within) / (rows + (k - 1) * within),
        "ICC(A,1)": (rows - error) / (rows + (k - 1) * error + k * (columns - error) / n),
        "ICC(C,1)": (rows - error) / (rows + (k - 1) * error),
        "ICC(1,k)": (rows - within) / rows,
        "ICC(A,k)": (rows - error) / (rows + (columns - error) / n),
        "ICC(C,k)": (rows - error) / rows,
    }
    found = {form: float(icc(ratings, form=form, ci=None)) for form in expected}
    assert found == pytest.approx(expected, abs=1e-6)
    assert icc(ratings).value == pytest.approx(found["ICC(A,1)"])
    assert cronbach_alpha(ratings) == pytest.approx(found["ICC(C,k)"])


def test_agreement_of_two_raters_is_near_lins_concordance():
    """ICC(2,1) and Lin's concordance estimate one thing: for many units they meet."""
    rng = np.random.default_rng(4)
    truth = rng.normal(size=2000)
    pred = truth + rng.normal(scale=0.5, size=2000) + 0.3
    assert icc(np.column_stack([truth, pred]), ci=None) == pytest.approx(lin_ccc(truth, pred), abs=1e-3)


def test_cronbachs_alpha_from_variances():
    """k / (k - 1) (1 - Σ s_j² / s_T²)."""
    x = np.array(SHROUT_FLEISS, dtype=float)
    by_hand = 4 / 3 * (1 - x.var(0, ddof=1).sum() / x.sum(1).var(ddof=1))
    found = cronbach_alpha(SHROUT_FLEISS)
    assert found == pytest.approx(by_hand)
    assert (found.low, found.high) == (icc(x, form="ICC(3,k)").low, icc(x, form="ICC(3,k)").high)
    assert found.method.startswith("Cronbach's alpha; analytic")


@pytest.mark.parametrize("form", ["ICC(1,1)", "ICC(2,1)", "ICC(3,1)"])
def test_analytic_intervals_hold_the_truth(form):
    """On normal data with a true value of 1/2 (one-way) the 95 % interval holds it as often as it says."""
    rng = np.random.default_rng(11)
    held = 0
    for _ in range(300):
        ratings = rng.normal(size=(15, 1)) + rng.normal(size=(15, 3))
        found = icc(ratings, form=form)
        held += number(found.low) <= 0.5 <= number(found.high)
    assert held / 300 > 0.91


def test_units_that_lack_a_rating_are_left_out_and_counted():
    """Listwise, and `n_missing` says so; a cluster goes with its unit."""
    ratings = [*SHROUT_FLEISS, [None, 3, 4, 5], [1, 2, float("nan"), 4]]
    found = icc(ratings)
    assert (found.value, found.n, found.n_missing) == (icc(SHROUT_FLEISS).value, 6, 2)
    clustered = icc(ratings, cluster=list("aabbccdd"), n_resamples=100)
    assert "3 clusters" in clustered.method


@pytest.mark.parametrize("function", [icc, cronbach_alpha, kendall_w])
def test_undefined(function):
    """No rating, one rater, one complete unit or none, nothing that varies: None with the reason."""
    assert function([]).reason == "no_ratings"
    assert function([[None, None]]).reason == "no_ratings"
    assert function([[None, 1], [2, None]]).reason == "too_few_units"
    assert function([[1], [2]]).reason == "no_pairs"
    assert function([[1, 2]]).reason == "too_few_units"
    assert function([[3, 3], [3, 3]]).reason == "no_variance"
    assert function([[1e9 + 1, 1e9 + 1], [1e9 + 1, 1e9 + 1]]).reason == "no_variance"


def test_negative_and_degenerate_correlations():
    """Negative values stand; where the variance cancels there is none; equal raters have no interval."""
    assert icc([[0, 1], [1, 0], [0, 1], [1, 0]], form="ICC(1,1)") == -1.0
    assert icc([[0, 1], [1, 0]]).reason == "no_variance"
    assert icc([[0, 1], [1, 0]], form="ICC(1,k)").reason == "no_variance"
    equal = icc([[1, 1], [2, 2]])
    assert (equal.value, equal.low, equal.reason) == (1.0, None, "no_variance")
    no_units = icc([[1, 2], [1, 2], [1, 2]])
    assert no_units.value == 0.0
    unstable = icc([[0, 1], [1, 0], [0.5, 0.5]], form="ICC(2,k)")
    assert unstable.value is not None
    assert unstable.low is None


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("ci", ["percentile", "bca"])
def test_bootstrap_intervals(form, ci):
    """Units are resampled, or clusters of units."""
    rng = np.random.default_rng(8)
    ratings = rng.normal(size=(40, 1)) + 0.7 * rng.normal(size=(40, 3))
    for cluster in (None, np.arange(40) // 2):
        assert 0 < width(icc(ratings, form=form, ci=ci, cluster=cluster, n_resamples=200)) < 1


def test_kendalls_w_without_ties_by_hand():
    """Siegel (1956, p. 229) has W = .16, which is the mean Spearman correlation moved to [0, 1]."""
    judges = [[1, 6, 3, 2, 5, 4], [1, 5, 6, 4, 2, 3], [6, 3, 2, 5, 4, 1]]
    sums = np.sum(judges, axis=0)
    by_hand = 12 * ((sums - sums.mean()) ** 2).sum() / (9 * (6**3 - 6))
    found = kendall_w(np.array(judges).T)
    assert f"{found:.2f}" == "0.16"
    assert found == pytest.approx(by_hand)
    spearman = np.mean([stats.spearmanr(judges[i], judges[j])[0] for i, j in ((0, 1), (0, 2), (1, 2))])
    assert found == pytest.approx((2 * spearman + 1) / 3)


def test_kendalls_w_with_ties_by_hand():
    """The correction takes m Σ (t³ - t) off the denominator; only order within a rater counts."""
    rng = np.random.default_rng(9)
    ratings = rng.integers(0, 4, (15, 3))
    ranks = np.array([stats.rankdata(column) for column in ratings.T])
    ties = sum(
        int((count**3 - count).sum())
        for column in ratings.T
        for count in [np.unique(column, return_counts=True)[1]]
    )
    sums = ranks.sum(0)
    by_hand = 12 * ((sums - sums.mean()) ** 2).sum() / (9 * (15**3 - 15) - 3 * ties)
    assert kendall_w(ratings) == pytest.approx(by_hand)
    assert kendall_w(np.exp(ratings) * [1, 5, 100]) == pytest.approx(by_hand)
    assert brackets(kendall_w(ratings))


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (icc, {"ratings": SHROUT_FLEISS, "form": "ICC(4,1)"}),
        (icc, {"ratings": [["a", "b"]]}),
        (icc, {"ratings": [[1, 2], [1]]}),
        (icc, {"ratings": np.zeros(3)}),
        (icc, {"ratings": SHROUT_FLEISS, "cluster": [1, 1, 2, 2, 3, 3], "ci": "analytic"}),
        (cronbach_alpha, {"ratings": SHROUT_FLEISS, "ci": "smoothed"}),
        (kendall_w, {"ratings": SHROUT_FLEISS, "ci": "analytic"}),
    ],
    ids=lambda given: given.__name__ if callable(given) else str(given),
)
def test_input_is_checked(function, arguments):
    """Unknown forms, labels that are no numbers, ragged rows and intervals that do not exist raise."""
    with pytest.raises(ArgumentError):
        function(**arguments)
