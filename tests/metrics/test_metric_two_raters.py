"""Figures of two raters against hand-worked ones and scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import metrics as sk

from autorubric.errors import ArgumentError
from autorubric.metrics import (
    Binary,
    Interval,
    Nominal,
    Ordinal,
    accuracy,
    adjacent_accuracy,
    balanced_accuracy,
    brennan_prediger,
    cohen_kappa,
    f1,
    fleiss_kappa,
    gwet_ac,
    macro_f1,
    mcc,
    negative_agreement,
    positive_agreement,
    precision,
    recall,
    scott_pi,
    specificity,
)
from tests.metrics.published import COHEN_1960

RNG = np.random.default_rng(11)
TRUTH = RNG.integers(0, 4, 300)
PRED = np.where(RNG.random(300) < 0.6, TRUTH, RNG.integers(0, 4, 300))


def test_kappa_of_a_table_by_hand():
    """In Cohen's own table of 200 diagnoses po is .70 and pe .41."""
    kappa = cohen_kappa(table=COHEN_1960)
    assert kappa == pytest.approx((0.70 - 0.41) / 0.59, abs=1e-12)
    assert kappa.n == 200


def test_analytic_kappa_interval_is_fleiss_cohen_everitt():
    """The non-null variance of Fleiss, Cohen and Everitt (1969), written out, has this error."""
    p = np.array(COHEN_1960) / 200
    rows, columns = p.sum(1), p.sum(0)
    po, pe = np.trace(p), rows @ columns
    kappa = (po - pe) / (1 - pe)
    on = sum(p[i, i] * ((1 - pe) - (rows[i] + columns[i]) * (1 - po)) ** 2 for i in range(3))
    off = (
        sum(p[i, j] * (columns[i] + rows[j]) ** 2 for i in range(3) for j in range(3) if i != j)
        * (1 - po) ** 2
    )
    variance = (on + off - (po * pe - 2 * pe + po) ** 2) / ((1 - pe) ** 4 * 200)
    found = cohen_kappa(table=COHEN_1960, ci="analytic")
    assert found.se == pytest.approx(np.sqrt(variance))
    assert found.low == pytest.approx(kappa - 1.959964 * np.sqrt(variance), abs=1e-6)


@pytest.mark.parametrize("weights", [None, "linear", "quadratic"])
def test_kappa_as_scikit_learn(weights):
    """Weighted or not, kappa equals scikit-learn's on 300 pairs of four codes."""
    expected = sk.cohen_kappa_score(TRUTH, PRED, weights=weights)
    assert cohen_kappa(TRUTH, PRED, weights=weights) == pytest.approx(expected)
    assert cohen_kappa(TRUTH.tolist(), PRED.tolist(), labels=4, weights=weights) == pytest.approx(expected)


def test_weights_use_values_and_unused_categories():
    """Distances come from the declared values; a category that nobody used keeps its place."""
    truth, pred = list("abbccaab"), list("acbbcaba")
    scale = Ordinal(["a", "b", "c", "d"], [0.0, 0.1, 1.0, 1.5])
    values = np.array([0.0, 0.1, 1.0, 1.5])
    by_matrix = 1 - ((values[:, None] - values) / 1.5) ** 2
    expected = cohen_kappa(truth, pred, scale=scale, weights=by_matrix.tolist())
    assert cohen_kappa(truth, pred, scale=scale, weights="quadratic") == pytest.approx(expected)
    assert cohen_kappa(truth, pred, scale=scale, weights="quadratic") != pytest.approx(
        cohen_kappa(truth, pred, scale=Ordinal("abc"), weights="quadratic")
    )


def test_weights_are_refused_where_there_is_no_distance():
    """Named weights on nominal labels, matrices of the wrong shape or kind, and other names raise."""
    wrong: list[Any] = ["linear", "squared", [[1, 0], [0, 1]], np.eye(3) * 2, np.zeros((3, 3))]
    for weights in wrong:
        with pytest.raises(ArgumentError):
            cohen_kappa(["x", "y", "z"], ["x", "y", "z"], weights=weights)
    assert cohen_kappa(["yes", "no"], ["yes", "no"], weights="linear") == 1.0


def test_chance_corrected_family_by_hand():
    """On a = 40, b = 9, c = 6, d = 45 the four coefficients follow from their own chance terms."""
    table = [[40, 9], [6, 45]]
    po = 0.85
    mean = (49 + 46) / 200
    chance = {
        cohen_kappa: 0.49 * 0.46 + 0.51 * 0.54,
        scott_pi: mean**2 + (1 - mean) ** 2,
        gwet_ac: 2 * mean * (1 - mean),
        brennan_prediger: 0.5,
    }
    for function, pe in chance.items():
        assert function(table=table) == pytest.approx((po - pe) / (1 - pe)), function


def test_two_raters_are_a_case_of_many():
    """AC1 and Brennan-Prediger agree between two columns and a ratings table; Scott's pi is Fleiss' kappa."""
    ratings = list(zip(TRUTH.tolist(), PRED.tolist(), strict=True))
    scale = Ordinal(range(5))
    for weights in (None, "quadratic"):
        for function in (gwet_ac, brennan_prediger):
            by_pair = function(TRUTH, PRED, scale=scale, weights=weights, ci=None)
            assert by_pair == pytest.approx(function(ratings=ratings, scale=scale, weights=weights, ci=None))
        assert scott_pi(TRUTH, PRED, scale=scale, weights=weights, ci=None) == pytest.approx(
            fleiss_kappa(ratings, scale=scale, weights=weights, ci=None)
        )


def test_declared_categories_are_needed_where_they_count():
    """AC1 and Brennan-Prediger refuse to guess the number of categories, unless the labels are binary."""
    for function in (gwet_ac, brennan_prediger):
        with pytest.raises(ArgumentError, match="scale"):
            function(["a", "b"], ["a", "a"])
        with pytest.raises(ArgumentError, match="scale"):
            function(ratings=[["a", "b"]])
        with pytest.raises(ArgumentError, match="only one of"):
            function([1], [1], ratings=[[1, 1]])
        assert function([1, 1], [1, 1]) == 1.0
        assert function(ratings=[[1, 1], [1, 1]]) == 1.0
        assert function(["a"], ["a"], scale=Nominal(["a"])).reason == "single_category_scale"
        assert function(ratings=[["a", "a"]], scale=Nominal(["a"])).reason == "single_category_scale"
        assert function([None], [None]).reason == "no_pairs"


def test_classification_as_scikit_learn():
    """Accuracy, balanced accuracy, macro F1 and R_K equal scikit-learn's."""
    pairs = {
        accuracy: sk.accuracy_score,
        balanced_accuracy: sk.balanced_accuracy_score,
        mcc: sk.matthews_corrcoef,
        macro_f1: lambda t, p: sk.f1_score(t, p, average="macro"),
    }
    for ours, theirs in pairs.items():
        assert ours(TRUTH, PRED) == pytest.approx(theirs(TRUTH, PRED)), ours
        assert ours(table=sk.confusion_matrix(TRUTH, PRED)) == pytest.approx(theirs(TRUTH, PRED)), ours


@pytest.mark.parametrize("positive", range(4))
def test_one_class_as_scikit_learn(positive):
    """One category against the rest equals scikit-learn on the collapsed labels."""
    truth, pred = positive == TRUTH, positive == PRED
    assert precision(TRUTH, PRED, positive=positive) == pytest.approx(sk.precision_score(truth, pred))
    assert recall(TRUTH, PRED, positive=positive) == pytest.approx(sk.recall_score(truth, pred))
    assert f1(TRUTH, PRED, positive=positive, labels=4) == pytest.approx(sk.f1_score(truth, pred))
    assert specificity(truth, pred) == pytest.approx(sk.recall_score(~truth, ~pred))
    assert positive_agreement(truth, pred) == pytest.approx(sk.f1_score(truth, pred))
    assert negative_agreement(truth, pred) == pytest.approx(sk.f1_score(~truth, ~pred))


def test_the_positive_category():
    """MET by default on binary labels, the second of a bare 2 × 2 table, and named otherwise."""
    assert precision(["MET", "UNMET"], ["MET", "MET"]) == 0.5
    assert precision(table=[[3, 1], [2, 4]]) == 0.8
    assert precision(table=[[3, 1], [2, 4]], positive=0) == 0.6
    assert precision(["a", "b"], ["a", "a"], positive="a") == 0.5
    assert precision(["a", "b"], ["a", "a"], positive="z").reason == "no_positive_in_pred"
    assert precision([], []).reason == "no_pairs"
    for arguments in (
        {"truth": ["a", "b"], "pred": ["a", "a"]},
        {"table": np.eye(3)},
        {"table": np.eye(3), "positive": 3},
        {"truth": [1, 0], "pred": [1, 0], "scale": Nominal("ab"), "positive": "c"},
    ):
        with pytest.raises(ArgumentError):
            precision(**arguments)


def test_zero_over_something_is_zero_and_something_over_zero_is_undefined():
    """A judge with only false positives has precision 0.0, no recall, and F1 0.0."""
    truth, pred = [0, 0, 0], [1, 0, 1]
    assert precision(truth, pred) == 0.0
    assert recall(truth, pred).reason == "no_positive_in_truth"
    assert f1(truth, pred) == 0.0
    assert precision([1, 0], [0, 0]).reason == "no_positive_in_pred"
    assert f1([0, 0], [0, 0]).reason == "no_positive"
    assert specificity([1, 1], [1, 0]).reason == "no_negative_in_truth"
    assert negative_agreement([1, 1], [1, 1]).reason == "no_negative"


def test_constant_raters():
    """Both constant and equal: no kappa. Both constant and different, or one constant: zero."""
    assert cohen_kappa([1, 1], [1, 1]).reason == "single_class"
    assert cohen_kappa([1, 1], [0, 0]) == 0.0
    assert cohen_kappa([1, 0], [1, 1]) == 0.0
    assert scott_pi([1, 1], [1, 1]).reason == "single_class"
    assert mcc([1, 1], [1, 0]).reason == "no_variance"
    assert balanced_accuracy([1, 1], [1, 0]).reason == "single_class"
    assert cohen_kappa(table=[[5, 3], [2, 7]], weights=[[1, 1], [1, 1]]).reason == "no_variance"
    assert macro_f1(["a", "b"], ["a", "b"], scale=Nominal("abc")) == 1.0


def test_missing_labels_drop_the_pair_and_are_counted():
    """None and NaN on either side leave the pair out."""
    found = cohen_kappa([1, None, 0, 1, 0], [1, 1, float("nan"), 1, 0])
    assert (found.n, found.n_missing, found.value) == (3, 2, 1.0)
    assert cohen_kappa([None], [None]).reason == "no_pairs"


def test_adjacent_accuracy():
    """Places apart, not values apart; the chance level stands beside it."""
    scale = Ordinal(["a", "b", "c", "d"], [0, 0.9, 0.95, 1.0])
    found = adjacent_accuracy(list("aabd"), list("abda"), scale=scale)
    assert found == 0.5
    assert "by chance" in found.method
    assert adjacent_accuracy(list("aabd"), list("abda"), scale=scale, k=0) == 0.25
    assert adjacent_accuracy(list("aabd"), list("abda"), scale=scale, k=3) == 1.0
    assert adjacent_accuracy([0, 2], [1, 0], labels=3) == 0.5
    assert adjacent_accuracy(table=np.eye(3)) == 1.0
    for arguments in ({"scale": Nominal("abcd")}, {}, {"scale": Interval()}, {"scale": scale, "k": -1}):
        with pytest.raises(ArgumentError):
            adjacent_accuracy(list("aabd"), list("abda"), **arguments)


def test_adjacent_accuracy_of_binary_labels_needs_no_scale():
    """Two categories are always next to each other; any other labels leave open what lies between them."""
    assert adjacent_accuracy([1, 0, None], [0, 1, 1]) == 1.0
    assert adjacent_accuracy(["MET", "UNMET"], ["UNMET", "UNMET"], k=0) == 0.5
    assert adjacent_accuracy([None], [None]).reason == "no_pairs"
    with pytest.raises(ArgumentError, match=r"observed labels \[0, 1, 2\]"):
        adjacent_accuracy([0, 2], [1, 0])


def test_input_is_checked():
    """Missing, double, ragged and impossible input raises with what to give."""
    for arguments in (
        {},
        {"truth": [1]},
        {"truth": [1], "pred": [1, 0]},
        {"truth": [1], "pred": [1], "table": [[1]]},
        {"table": [[1, 2]]},
        {"table": [[1.5, 0], [0, 1]]},
        {"table": [[-1, 0], [0, 1]]},
        {"table": np.eye(2), "scale": Nominal("abc")},
        {"table": np.eye(2), "scale": Interval()},
        {"table": np.eye(2), "cluster": [1]},
        {"truth": [1.0], "pred": [1.0], "scale": Interval()},
    ):
        with pytest.raises(ArgumentError):
            cohen_kappa(**arguments)
    assert cohen_kappa(table=[[3, 1], [0, 4]], scale=Binary()).n == 8
