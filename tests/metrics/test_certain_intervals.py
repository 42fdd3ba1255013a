"""Units that are all alike are no certainty: no interval of no width, by rounding or exactly."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import stats

from autorubric.metrics import (
    accuracy,
    bias,
    clustered_se,
    cohen_kappa,
    ece,
    icc,
    kendall_tau_b,
    kendall_w,
    krippendorff_alpha,
    lin_ccc,
    log_loss,
    mae,
    pearson,
    percent_agreement,
    precision,
    recall,
    rmse,
    spearman,
    specificity,
)
from autorubric.metrics.core.estimate import is_rounding
from tests.metrics.asserting import number, width

TENTHS = list(range(10))
TENS = [i // 10 for i in range(100)]
THIRDS = [i // 3 for i in range(30)]


def score_interval(share, n):
    """Wilson's interval with the quantile of t with n - 1."""
    z = stats.t.ppf(0.975, n - 1)
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return middle - half, middle + half


def test_rounding_is_relative():
    """What counts as nothing depends on what it was worked out from."""
    assert is_rounding(2.3e-17) and is_rounding(0.0, 0.0) and is_rounding(-1e-3, 1e12)
    assert not is_rounding(1e-9) and not is_rounding(1e-14, 1e-6)


@pytest.mark.parametrize("function", [accuracy, recall])
def test_clusters_with_one_share_have_the_score_interval(function):
    """Ten clusters, nine of ten right in each: Wilson's interval of 0.9 with ten observations."""
    found = function([1] * 100, ([1] * 9 + [0]) * 10, cluster=TENS)
    assert found == pytest.approx(0.9)
    assert (found.low, found.high) == pytest.approx(score_interval(0.9, 10))
    swapped = precision(([1] * 9 + [0]) * 10, [1] * 100, cluster=TENS)
    assert (swapped.low, swapped.high) == pytest.approx(score_interval(0.9, 10))


def test_only_clusters_that_hold_the_denominator_count():
    """Negatives in one of three clusters: no interval. In two of five: that of two clusters."""
    one = specificity(
        [1] * 50 + [0] * 7, [1] * 50 + [0, 0, 0, 1, 0, 0, 0], cluster=["a"] * 25 + ["b"] * 25 + ["c"] * 7
    )
    assert (one.value, one.low, one.reason) == (6 / 7, None, "too_few_units")
    truth, judged = [0] * 8 + [1] * 6, [0, 0, 0, 1, 0, 0, 1, 1] + [1] * 6
    two = specificity(truth, judged, cluster=["a"] * 4 + ["b"] * 4 + list("ccddee"))
    alone = specificity(truth[:8], judged[:8], cluster=["a"] * 4 + ["b"] * 4)
    assert (two.low, two.high, two.se) == pytest.approx((alone.low, alone.high, alone.se))


def test_means_of_equal_clusters_have_no_error():
    """Clusters of .1, .2 and .6 have one mean; its error is rounding."""
    for values, cluster in (([0.1, 0.2, 0.6] * 10, THIRDS), ([0.1] * 3, None)):
        found = clustered_se(values, cluster)
        assert (found.low, found.high, found.se, found.reason) == (None, None, None, "no_variance")
    assert width(clustered_se([0.1, 0.2, 0.6] * 10)) > 0


def test_bias_of_equal_clusters_is_not_tested():
    """The same mean difference in each cluster has no t, whatever rounding says."""
    found = bias([0] * 30, [0.1, 0.2, 0.6] * 10, cluster=THIRDS)
    assert found.mean_bias == pytest.approx(0.3)
    assert (found.p_value, found.is_significant, found.ci, found.reason) == (None, False, None, "no_variance")


def test_bias_of_the_greatest_numbers():
    """Squares that overflow are not formed: the figures are those of the same numbers in other units."""
    truth, pred = [1.0, 2.0, 3.0], [2.0, 2.0, 5.0]
    plain = bias(truth, pred)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for unit in (1e200, 1e-200):
            found = bias([unit * x for x in truth], [unit * x for x in pred])
            assert found.p_value == pytest.approx(plain.p_value)
            assert number(found.std_bias) / unit == pytest.approx(plain.std_bias)
            assert found.ci is not None and plain.ci is not None
            assert found.ci.upper / unit == pytest.approx(plain.ci.upper)


def test_pearson_scales_each_side():
    """Numbers far smaller than those of the other side correlate as in other units; rounding does not."""
    assert pearson([1e-200, 2e-200, 3e-200], [1, 2, 3]) == 1.0
    assert pearson([1, 2, 4, 3], [1e150, 2e150, 3e150, 5e150], ci=None) == pytest.approx(
        pearson([1, 2, 4, 3], [1, 2, 3, 5], ci=None)
    )
    assert pearson([1e16, 1e16, 1e16 + 2], [1, 2, 3]).reason == "no_variance"


@pytest.mark.parametrize("ci", ["auto", "percentile"])
@pytest.mark.parametrize("function", [pearson, spearman, kendall_tau_b, lin_ccc, mae, rmse])
@pytest.mark.parametrize("clustered", [False, True])
def test_perfect_numbers_have_no_interval(function, ci, clustered):
    """What shows no error shows no spread either: the value stands, its interval does not."""
    found = function(TENTHS, TENTHS, ci=ci, cluster=[i // 2 for i in TENTHS] if clustered else None)
    assert found == (0.0 if function in (mae, rmse) else 1.0)
    assert (found.low, found.high, found.se, found.reason) == (None, None, None, "no_variance")


def test_other_figures_of_what_never_varies():
    """A constant judge, certain forecasts and raters who agree have no interval; a constant error neither."""
    table = [[x, x] for x in TENTHS]
    certain = ([1] * 20, [1.0] * 20)
    for found in (
        lin_ccc(TENTHS, [3] * 10),
        mae(TENTHS, [x + 0.1 for x in TENTHS]),
        log_loss(*certain),
        ece(*certain),
        icc(table),
        kendall_w(table),
        krippendorff_alpha(table, level="interval"),
        cohen_kappa([1, 0, 1, 0], [1, 0, 1, 0], ci="analytic"),
        percent_agreement([[1, 1]] * 9, ci="percentile"),
    ):
        assert found.is_defined
        assert (found.low, found.reason) == (None, "no_variance")


def test_perfect_categories_keep_their_interval():
    """Accuracy and kappa at 1 say how little so many items prove."""
    for found in (accuracy([1, 0] * 10, [1, 0] * 10), cohen_kappa([1, 0] * 10, [1, 0] * 10)):
        assert found == 1.0
        assert number(found.low) < 0.9
        assert found.high == 1.0
