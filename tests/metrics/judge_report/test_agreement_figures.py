"""`agreement`: every figure is that of the function of its name; abstentions count as they are told to."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from autorubric.errors import ArgumentError
from autorubric.metrics import (
    Agreement,
    Binary,
    Interval,
    Nominal,
    Ordinal,
    accuracy,
    adjacent_accuracy,
    agreement,
    balanced_accuracy,
    bias,
    cohen_kappa,
    f1,
    gwet_ac,
    kendall_tau_b,
    lin_ccc,
    macro_f1,
    mae,
    mcc,
    negative_agreement,
    pearson,
    positive_agreement,
    precision,
    recall,
    rmse,
    spearman,
    specificity,
)
from tests.metrics.asserting import brackets, number

DEPTH = Ordinal(["low", "some", "high"], values=[0.0, 0.3, 1.0])
TONE = Nominal(["warm", "dry", "cold"])
OF_TABLE = {
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    "macro_f1": macro_f1,
    "kappa": cohen_kappa,
    "ac1": gwet_ac,
    "phi": mcc,
}
OF_ONE_CLASS = {
    "precision": precision,
    "recall": recall,
    "specificity": specificity,
    "f1": f1,
    "positive_agreement": positive_agreement,
    "negative_agreement": negative_agreement,
}
OF_NUMBERS = {
    "spearman": spearman,
    "kendall": kendall_tau_b,
    "pearson": pearson,
    "ccc": lin_ccc,
    "rmse": rmse,
    "mae": mae,
}


def drawn(scale: Any, n: int = 60, seed: int = 3) -> tuple[list[Any], list[Any], list[int]]:
    """Labels of two raters who often agree, some missing, and clusters of three."""
    rng = np.random.default_rng(seed)
    truth = [scale.labels[i] for i in rng.integers(0, scale.size, n)]
    other = [scale.labels[i] for i in rng.integers(0, scale.size, n)]
    pred = [a if same else b for a, b, same in zip(truth, other, rng.random(n) < 0.6, strict=True)]
    truth[4], pred[9] = None, None
    return truth, pred, [i // 3 for i in range(n)]


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("scale", [Binary(), TONE, DEPTH])
def test_figures_of_the_table_are_those_of_their_functions(scale: Any, clustered: bool) -> None:
    """Value, interval, method and counts are the same, though all are drawn from one set of tables."""
    truth, pred, cluster = drawn(scale)
    interval: Any = {"scale": scale, "cluster": cluster if clustered else None, "n_resamples": 200}
    found = agreement(truth, pred, **interval)
    functions = OF_TABLE | (OF_ONE_CLASS if isinstance(scale, Binary) else {})
    for name, function in functions.items():
        assert getattr(found, name).to_dict() == function(truth, pred, **interval).to_dict(), name
    for option in found.per_option:
        for name in ("precision", "recall", "f1"):
            label = option.label
            alone = OF_ONE_CLASS[name](truth, pred, positive=label, **interval)
            assert getattr(option, name).to_dict() == alone.to_dict(), (name, label)
    assert (found.n, found.n_missing) == (58, 2)
    assert np.sum(found.table) == 58


@pytest.mark.parametrize("clustered", [False, True])
def test_figures_of_an_order_are_those_of_its_values(clustered: bool) -> None:
    """Correlations and errors take the scale's values; kappa has quadratic weights on them."""
    truth, pred, cluster = drawn(DEPTH)
    interval: Any = {"cluster": cluster if clustered else None, "n_resamples": 200}
    found = agreement(truth, pred, scale=DEPTH, **interval)
    places: dict[Any, float | None] = {"low": 0.0, "some": 0.3, "high": 1.0, None: None}
    numbers = [places[one] for one in truth], [places[one] for one in pred]
    for name, function in OF_NUMBERS.items():
        assert getattr(found, name).to_dict() == function(*numbers, **interval).to_dict(), name
    weighted = cohen_kappa(truth, pred, scale=DEPTH, weights="quadratic", **interval)
    assert found.weighted_kappa.to_dict() == weighted.to_dict()
    assert (
        found.adjacent_accuracy.to_dict() == adjacent_accuracy(truth, pred, scale=DEPTH, **interval).to_dict()
    )
    assert f"{found.adjacent_by_chance:.3f} by chance" in found.adjacent_accuracy.method
    alone = bias(*numbers, **interval).to_dict()
    assert {
        name: told for name, told in found.bias.to_dict().items() if told is not None
    }.items() <= alone.items()
    assert found.bias.ci is not None and found.bias.effect_size is not None


def test_figures_of_numbers() -> None:
    """An interval has no table; its figures are those of numbers, and the rest says why it is not there."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=40)
    pred = truth + rng.normal(size=40)
    found = agreement(truth, pred, scale=Interval())
    for name, function in OF_NUMBERS.items():
        assert getattr(found, name).to_dict() == function(truth, pred).to_dict(), name
    assert (found.table, found.labels, found.per_option) == ((), (), ())
    assert found.kappa.reason == "not_on_scale"
    assert set(found.figures()) == set(OF_NUMBERS)


@pytest.mark.parametrize("weights", ["linear", "quadratic", [[1, 0.5, 0], [0.5, 1, 0.5], [0, 0.5, 1]]])
def test_weights_enter_kappa_and_gwet(weights: Any) -> None:
    """`kappa` and `ac1` take the weights that are given, as the functions do."""
    truth, pred, _ = drawn(DEPTH)
    found = agreement(truth, pred, scale=DEPTH, weights=weights)
    for name, function in (("kappa", cohen_kappa), ("weighted_kappa", cohen_kappa), ("ac1", gwet_ac)):
        alone = function(truth, pred, scale=DEPTH, weights=weights)
        assert getattr(found, name).to_dict() == alone.to_dict(), name


def test_a_table_worked_by_hand() -> None:
    """20 both MET, 5 misses, 10 false alarms, 15 both UNMET: accuracy .7, kappa .4, phi 20/√2400."""
    truth = [1] * 25 + [0] * 25
    pred = [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15
    found = agreement(truth, pred, scale=Binary())
    assert found.table == ((15, 10), (5, 20))
    # po = 35/50 = .7; pe = (25·30 + 25·20)/2500 = .5; kappa = .2/.5.
    assert number(found.accuracy.value) == pytest.approx(0.7)
    assert number(found.kappa.value) == pytest.approx(0.4)
    # (20·15 - 10·5) / √(25·25·30·20) = 250 / √375000.
    assert number(found.mcc.value) == pytest.approx(250 / 375000**0.5)
    # AC1: π = 55/100, pe = 2·.55·.45 = .495; (.7 - .495)/.505.
    assert number(found.ac1.value) == pytest.approx(0.205 / 0.505)
    assert number(found.precision.value) == pytest.approx(20 / 30)
    assert number(found.recall.value) == pytest.approx(20 / 25)
    assert number(found.specificity.value) == pytest.approx(15 / 25)
    assert number(found.positive_agreement.value) == pytest.approx(40 / 55)
    assert number(found.negative_agreement.value) == pytest.approx(30 / 45)
    # 30 judged MET of 50, 25 true: the judge lies 5/50 above.
    assert number(found.bias.mean_bias) == pytest.approx(0.1)
    assert brackets(found.kappa) and brackets(found.accuracy)


ABSTAINING = (
    ["low", "NA", "high", "some", None, "CANNOT_ASSESS", "low", "high"],
    ["low", "NA", "some", "CANNOT_ASSESS", "low", "high", "INVALID", "high"],
)


def test_abstentions_are_left_out_and_counted() -> None:
    """Four pairs lose a side to an abstention or failure; coverage is of the units with a label."""
    found = agreement(*ABSTAINING, scale=DEPTH)
    assert (found.n, found.n_missing) == (3, 5)
    assert number(found.coverage.value) == pytest.approx(3 / 7)
    told = found.abstentions
    assert (told.n_labelled, told.n_truth, told.n_pred, told.n_both, told.n_failed) == (7, 2, 2, 1, 1)
    assert number(told.truth_rate.value) == number(told.pred_rate.value) == pytest.approx(2 / 7)
    # Six cells with a vote: both abstain on one, either alone on one each, neither on three.
    assert number(told.kappa.value) == pytest.approx((4 / 6 - 20 / 36) / (1 - 20 / 36))


def test_answers_to_labels_without_one_are_counted() -> None:
    """The judge answers one of two NA labels; a category of their own, they are pairs like others."""
    truth, pred = ["MET", "NA", "NA", "UNMET"], ["MET", "UNMET", "NA", "UNMET"]
    found = agreement(truth, pred, scale=Binary())
    assert found.abstentions.n_answered == 1
    assert "units without a true answer that the judge answered" in found.summary()
    assert agreement(truth, pred, scale=Binary(), abstain="as_category").abstentions.n_answered == 0


def test_abstentions_as_a_category_leave_no_order() -> None:
    """They get a row and a column; figures that need an order are None and say so."""
    found = agreement(*ABSTAINING, scale=DEPTH, abstain="as_category")
    assert found.labels == ("low", "some", "high", "CANNOT_ASSESS")
    assert found.n == 6
    assert number(found.accuracy.value) == pytest.approx(3 / 6)
    assert found.kappa.is_defined
    for name in ("weighted_kappa", "adjacent_accuracy", "adjacent_by_chance", *OF_NUMBERS):
        assert getattr(found, name).reason == "na_as_category", name
    assert found.bias.reason == "na_as_category"
    weighted = agreement(*ABSTAINING, scale=DEPTH, abstain="as_category", weights="linear")
    assert (weighted.kappa.reason, weighted.ac1.reason) == ("na_as_category", "na_as_category")


def test_abstentions_as_the_lowest_answer() -> None:
    """They count as the category of the lowest value: on a binary scale UNMET, on numbers the low end."""
    found = agreement(*ABSTAINING, scale=DEPTH, abstain="as_negative")
    replaced = [["low" if one in ("NA", "CANNOT_ASSESS") else one for one in side] for side in ABSTAINING]
    plain = agreement(*replaced, scale=DEPTH)
    assert found.table == plain.table
    assert found.mae == plain.mae
    assert agreement(["MET", "NA"], ["MET", "UNMET"], scale=Binary(), abstain="as_negative").accuracy == 1.0
    numbers = agreement([3, "NA", 2], [3, 2, 4], scale=Interval(1, 5), abstain="as_negative")
    assert number(numbers.mae.value) == pytest.approx((0 + 1 + 2) / 3)


def test_labels_that_the_scale_has_are_labels() -> None:
    """NA that is a category abstains from nothing."""
    found = agreement(["NA", "x"], ["NA", "NA"], scale=Nominal(["x", "NA"]))
    assert (found.n, found.abstentions.n_pred) == (2, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scale": None}, r"scale must be Binary\(\)"),
        ({"scale": Binary(), "abstain": "worst"}, "abstain must be one of"),
        ({"scale": Nominal([0, 1]), "abstain": "as_negative"}, "lowest category"),
        ({"scale": Interval(), "abstain": "as_category"}, "use 'exclude'"),
        ({"scale": Interval(), "abstain": "as_negative"}, r"Interval\(low, high\)"),
        ({"scale": Interval(), "weights": "linear"}, "need categories"),
        ({"scale": Nominal([0, 1]), "weights": "linear"}, "order"),
        ({"scale": Nominal([0])}, "not on the scale"),
        ({"scale": Binary(), "cluster": [1]}, "ids for"),
    ],
)
def test_what_cannot_be_is_refused(arguments: dict[str, Any], message: str) -> None:
    """Arguments that do not go together are refused with what to give instead."""
    with pytest.raises(ArgumentError, match=message):
        agreement([0, 1], [1, 1], **arguments)


def test_lengths_that_differ_are_refused() -> None:
    """Truth and judgments come in pairs."""
    with pytest.raises(ArgumentError, match="same length; got 2 and 1 labels"):
        agreement([0, 1], [1], scale=Binary())


@pytest.mark.parametrize("labels", [[], [None], ["NA"]])
def test_nothing_to_compare(labels: list[Any]) -> None:
    """Without a pair every figure is undefined, and JSON can carry it."""
    found = agreement(labels, labels, scale=DEPTH)
    assert found.n == 0
    assert found.accuracy.reason == found.kappa.reason == found.spearman.reason == "no_pairs"
    json.dumps(found.to_dict(), allow_nan=False)


def test_one_pair_has_values_and_no_bootstrap() -> None:
    """One pair has an accuracy; what needs two says so."""
    found = agreement(["MET"], ["MET"], scale=Binary())
    assert found.accuracy == 1.0
    assert found.kappa.reason == "single_class"
    assert found.balanced_accuracy.reason == "single_class"
    assert found.f1 == 1.0 and found.f1.low is None


def test_every_interval_method_goes_through() -> None:
    """A figure without the method asked for takes its own."""
    truth, pred, cluster = drawn(DEPTH)
    for ci in ("auto", "analytic", "percentile", "bca", "smoothed", None):
        for members in (None, cluster):
            found = agreement(truth, pred, scale=DEPTH, ci=ci, cluster=members, n_resamples=60)
            assert (found.kappa.low is None) == (ci is None)
            assert (found.pearson.low is None) == (ci is None)


def test_it_reads_and_serialises() -> None:
    """The summary names the figures and shows the table; the dict is JSON."""
    found = agreement(*drawn(DEPTH)[:2], scale=DEPTH)
    text = found.summary()
    assert "weighted kappa" in text and "Confusion" in text and "precision" not in text
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["kappa"]["value"] == found.kappa.value
    assert isinstance(found, Agreement)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=40))
def test_exchanging_the_raters_changes_what_it_should(pairs: list[tuple[int, int]]) -> None:
    """Symmetric figures stay, precision and recall of an option change places, bias changes its sign."""
    left, right = zip(*pairs, strict=True)
    scale = Ordinal([0, 1, 2])
    one, other = (agreement(a, b, scale=scale, ci=None) for a, b in ((left, right), (right, left)))
    for name in ("accuracy", "kappa", "weighted_kappa", "ac1", "phi", "pearson", "mae", "ccc"):
        assert getattr(one, name).value == pytest.approx(getattr(other, name).value), name
    for mine, theirs in zip(one.per_option, other.per_option, strict=True):
        assert (mine.precision.value, mine.support_true) == (theirs.recall.value, theirs.support_pred)
    assert number(one.bias.mean_bias) == pytest.approx(-number(other.bias.mean_bias))


def test_the_same_seed_gives_the_same() -> None:
    """A seed decides the intervals, another one gives others."""
    truth, pred, _ = drawn(TONE)
    one, again, other = (agreement(truth, pred, scale=TONE, rng=seed).kappa for seed in (1, 1, 2))
    assert one.to_dict() == again.to_dict()
    assert one.low != other.low
