"""Figures of single criteria and scales, by level and by how abstentions count."""

from __future__ import annotations

import numpy as np
import pytest

from autorubric.criteria import Answer, BaseCriterion, Criterion, CriterionOption
from autorubric.errors import ArgumentError
from autorubric.metrics import (
    CorrelationResult,
    CriterionMetrics,
    IntervalCriterionMetrics,
    NominalCriterionMetrics,
    Ordinal,
    OrdinalCriterionMetrics,
    cohen_kappa,
    compute_metrics,
    kendall_tau_b,
    spearman,
)
from autorubric.metrics.core.votes_table import MeasuredCriterion
from autorubric.metrics.summaries.results import interpret_correlation, interpret_kappa
from autorubric.metrics.summaries.table_metrics import category_values
from tests.metrics.reports import (
    BINARY,
    NOMINAL,
    ORDINAL,
    PANEL,
    SAME_LABELS,
    TRUTH,
    Ordering,
    Pair,
    Stars,
    binary_run,
    labelled,
    report,
    run,
)


def test_a_binary_criterion_by_hand():
    """TP 4, FN 1, FP 1, TN 2: every figure follows from the four cells."""
    found = binary_run(TRUTH, PANEL)
    one = found.per_criterion[0]
    assert isinstance(one, CriterionMetrics)
    assert one.confusion_matrix.counts == ((2, 1), (1, 4))
    assert one.confusion_matrix.labels == ("UNMET", "MET")
    assert [one.accuracy, one.precision, one.recall, one.f1] == pytest.approx([0.75, 0.8, 0.8, 0.8])
    assert one.specificity == pytest.approx(2 / 3)
    assert one.kappa == pytest.approx((0.75 - (25 + 9) / 64) / (1 - (25 + 9) / 64))
    assert one.kappa_interpretation == "moderate"
    assert (one.support_true, one.support_pred, one.n_samples, one.coverage) == (5, 5, 8, 1.0)
    assert (one.name, one.index, one.criterion_type) == ("clear", 0, "binary")
    assert found.criterion_accuracy == found.pooled.accuracy == 0.75
    assert found.pooled.pearson == pytest.approx(one.mcc)
    assert found.score_rmse == pytest.approx(0.5)
    assert found.bias.mean_bias == 0.0
    assert found.defined["mean_kappa"] == (1, 1)
    assert (found.n_items, found.n_criteria, found.n_binary_criteria) == (8, 1, 1)


def test_cannot_assess_modes():
    """Left out by default; as UNMET it is an answer; as a category it is a third one."""
    truth = ["MET", "UNMET", "MET", "UNMET", "CANNOT_ASSESS"]
    panel = ["MET", "UNMET", "CANNOT_ASSESS", "MET", "CANNOT_ASSESS"]
    dataset = labelled([BINARY], *({"clear": label} for label in truth))
    given = run(*([report(BINARY, answer)] for answer in panel))

    excluded = compute_metrics(given, dataset)
    assert excluded.per_criterion[0].n_samples == 3
    assert (excluded.na_stats.truth_abstained, excluded.na_stats.both_abstained) == (1, 1)
    assert excluded.na_stats.kappa == pytest.approx(0.545454545)

    unmet = compute_metrics(given, dataset, cannot_assess="as_unmet")
    assert unmet.per_criterion[0].n_samples == 5
    assert getattr(unmet.per_criterion[0], "recall", None) == 0.5
    assert "CANNOT_ASSESS is counted as unmet" in unmet.warnings

    category = compute_metrics(given, dataset, cannot_assess="as_category", bootstrap=True)
    one = category.per_criterion[0]
    assert isinstance(one, CriterionMetrics)
    assert one.confusion_matrix.labels == ("UNMET", "MET", "CANNOT_ASSESS")
    assert one.accuracy == pytest.approx(3 / 5)
    assert one.precision == 0.5


def test_coverage_is_split_into_label_and_judge():
    """Of 90 labelled cells, 37 have no true answer, which the judge answers; on 10 others it abstains."""
    truth = ["MET"] * 25 + ["UNMET"] * 18 + ["CANNOT_ASSESS"] * 37 + ["MET"] * 10
    panel = ["MET"] * 25 + ["UNMET"] * 18 + ["MET"] * 30 + ["UNMET"] * 7 + ["CANNOT_ASSESS"] * 10
    found = binary_run(truth, panel)
    one = found.per_criterion[0]
    assert (one.label_unanswered, one.judge_unanswered, one.answered_na) == (37, 10, 37)
    assert one.coverage == pytest.approx(1 - (37 + 10) / 90)
    assert (one.accuracy, found.na_stats.answered_na) == (1.0, 37)
    shown = found.summary()
    assert "answered 37 of 37 cells whose label has no answer (NA or CANNOT_ASSESS)" in shown
    assert f"if NA counts as an answer, the accuracy over all cells is {43 / 90:.4f}" in shown
    assert "answered NA" in shown and "judge has no answer" in shown
    assert found.to_dataframe().answered_na.tolist() == [37] * 4
    plain = binary_run(["MET", "UNMET"] * 10, ["MET", "UNMET"] * 10)
    assert "answered NA" not in plain.summary()


def test_an_ordinal_criterion():
    """Weighted kappa and errors use the option values; NA is left out of both sides."""
    truth = ["low", "some", "high", "high", "low", "n/a", "some"]
    panel = ["low", "high", "high", "some", "low", "low", "n/a"]
    dataset = labelled([ORDINAL], *({"depth": label} for label in truth))
    found = compute_metrics(run(*([report(ORDINAL, answer)] for answer in panel)), dataset).per_criterion[0]
    assert isinstance(found, OrdinalCriterionMetrics)
    assert found.n_samples == 5
    assert found.confusion_matrix.labels == ("low", "some", "high")
    assert found.exact_accuracy == 0.6
    assert found.adjacent_accuracy == 1.0
    assert found.rmse == pytest.approx(np.sqrt(2 * 0.36 / 5))
    assert found.mae == pytest.approx(2 * 0.6 / 5)
    scale = Ordinal(["low", "some", "high"], [0.0, 0.4, 1.0])
    assert found.weighted_kappa == pytest.approx(
        cohen_kappa(truth[:5], panel[:5], scale=scale, weights="quadratic")
    )
    places = [[scale.code(label) for label in labels[:5]] for labels in (truth, panel)]
    assert found.spearman == pytest.approx(spearman(*places))
    assert found.kendall == pytest.approx(kendall_tau_b(*places))
    assert found.spearman.n_samples == 5
    assert found.spearman.ci is not None
    assert float(found.spearman) == found.spearman.coefficient
    assert [option.label for option in found.per_option] == ["low", "some", "high"]
    assert found.per_option[0].precision == 1.0
    assert (found.per_option[1].support_true, found.per_option[1].support_pred) == (1, 1)


def test_na_modes_on_an_ordinal_criterion():
    """As the worst option NA gets a place; as a category it leaves the figures of an order None."""
    truth, panel = ["low", "some", "high", "n/a"], ["low", "some", "some", "high"]
    dataset = labelled([ORDINAL], *({"depth": label} for label in truth))
    given = run(*([report(ORDINAL, answer)] for answer in panel))
    worst = compute_metrics(given, dataset, na_mode="as_worst").per_criterion[0]
    assert isinstance(worst, OrdinalCriterionMetrics)
    assert worst.rmse == pytest.approx(np.sqrt((0.6**2 + 1.0) / 4))
    category = compute_metrics(given, dataset, na_mode="as_category", bootstrap=True)
    one = category.per_criterion[0]
    assert isinstance(one, OrdinalCriterionMetrics)
    assert (one.exact_accuracy, one.weighted_kappa) == (0.5, None)
    assert one.reasons["spearman"] == "na_as_category"
    assert one.spearman.reason == "na_as_category"
    with pytest.raises(ArgumentError):
        float(one.spearman)
    assert category.pooled.weighted_kappa is None
    assert category.mean_kappa is None


def test_a_nominal_criterion():
    """A choice without order has kappa and figures per option, and none of an order."""
    truth, panel = ["warm", "dry", "cold", "cold"], ["warm", "dry", "cold", "dry"]
    dataset = labelled([NOMINAL], *({"tone": label} for label in truth))
    found = compute_metrics(run(*([report(NOMINAL, answer)] for answer in panel)), dataset)
    one = found.per_criterion[0]
    assert type(one) is NominalCriterionMetrics
    assert one.exact_accuracy == 0.75
    assert one.kappa == pytest.approx((0.75 - 5 / 16) / (1 - 5 / 16))
    assert found.n_nominal_criteria == 1
    assert found.mean_kappa == one.kappa


def test_numbers_in_their_own_units():
    """Interval criteria have errors in stars, bias and correlations, and enter neither accuracy nor kappa."""
    stars = Stars(name="stars", weight=1.0)
    truth, panel = [1, 2, 4, 5], [2, 2, 5, 5]
    dataset = labelled([stars], *({"stars": number} for number in truth))
    found = compute_metrics(run(*([report(stars, number)] for number in panel)), dataset)
    one = found.per_criterion[0]
    assert isinstance(one, IntervalCriterionMetrics)
    assert [one.rmse, one.mae, one.bias.mean_bias] == pytest.approx([np.sqrt(0.5), 0.5, 0.5])
    assert one.pearson.coefficient == pytest.approx(np.corrcoef(truth, panel)[0, 1])
    assert one.ccc is not None
    assert (found.criterion_accuracy, found.n_interval_criteria) == (None, 1)
    assert found.pooled.reasons["kappa"] == "not_comparable"
    assert found.pooled.pearson == pytest.approx(one.pearson.coefficient)
    assert found.pooled.n == 4


def test_answers_of_several_numbers_compare_by_value():
    """Where an answer is no single number its value in [0, 1] is compared."""
    pair = Pair(name="pair", weight=1.0)
    truth = [{"first": 1, "second": 5}, {"first": 5, "second": 5}]
    panel = [{"first": 1, "second": 1}, {"first": 5, "second": 5}]
    dataset = labelled([pair], *({"pair": label} for label in truth))
    found = compute_metrics(run(*([report(pair, label)] for label in panel)), dataset).per_criterion[0]
    assert isinstance(found, IntervalCriterionMetrics)
    assert found.mae == pytest.approx(0.25)


def test_levels_without_figures_are_named():
    """Rankings have no figures here, and a warning says so."""
    order = Ordering(name="order", weight=1.0)
    dataset = labelled([order, BINARY], {"order": 1, "clear": "MET"})
    found = compute_metrics(run([report(order, 2), report(BINARY, "MET")]), dataset)
    assert [one.name for one in found.per_criterion] == ["clear"]
    assert "no metrics are computed for these criteria (free text or rankings): order" in found.warnings
    assert found.n_criteria == 1


def test_mixed_scales_pool_what_they_share():
    """Accuracy pools every categorical cell; figures of a table take the binary ones."""
    criteria: list[BaseCriterion] = [BINARY, ORDINAL, NOMINAL]
    truths = [
        {"clear": "MET", "depth": "low", "tone": "dry"},
        {"clear": "UNMET", "depth": "high", "tone": "warm"},
        {"clear": "MET", "depth": "some", "tone": "cold"},
    ]
    panel = [("MET", "low", "dry"), ("MET", "some", "dry"), ("UNMET", "some", "cold")]
    reports = [[report(c, answer) for c, answer in zip(criteria, given, strict=True)] for given in panel]
    found = compute_metrics(run(*reports), labelled(criteria, *truths), bootstrap=True, n_bootstrap=200)
    assert found.pooled.n == 9
    assert found.pooled.accuracy == pytest.approx(5 / 9)
    assert found.pooled.precision == 0.5
    assert found.pooled.labels == ("UNMET", "MET")
    assert list(found.pooled_by_scale) == ["UNMET | MET", "low | some | high", "warm | dry | cold"]
    assert found.pooled_by_scale["low | some | high"].weighted_kappa is not None
    assert found.defined["criterion_precision"] == (1, 1)
    assert found.defined["criterion_accuracy"] == (3, 3)
    without_binary = compute_metrics(
        run(*(given[1:] for given in reports)),
        labelled(criteria[1:], *({k: v for k, v in t.items() if k != "clear"} for t in truths)),
    )
    assert without_binary.pooled.reasons["kappa"] == "not_comparable"
    assert without_binary.pooled.accuracy == pytest.approx(4 / 6)


def test_scales_of_one_wording_stay_apart():
    """Two scales with the same labels and other values are pooled each by itself."""
    steep = Criterion(
        name="steep",
        requirement="How deep?",
        options=[CriterionOption(label=label, value=value) for label, value in SAME_LABELS.items()],
    )
    dataset = labelled([ORDINAL, steep], {"depth": "low", "steep": "high"})
    found = compute_metrics(run([report(ORDINAL, "low"), report(steep, "high")]), dataset)
    assert list(found.pooled_by_scale) == ["low | some | high", "low | some | high | ordinal"]


def test_answers_without_value_stand_at_their_places():
    """Categories of which some has no value are ordered by their places alone."""
    answers = tuple(Answer(code=label, value=None, label=label, index=i) for i, label in enumerate("abc"))
    assert category_values(MeasuredCriterion("place", "ordinal", answers)) == [0.0, 1.0, 2.0]


def test_a_correlation_formats_as_its_coefficient():
    """With a coefficient it is a number; without one it says so."""
    assert f"{CorrelationResult(coefficient=0.25):.1f} {CorrelationResult(coefficient=0.5)}" == "0.2 0.5"
    assert str(CorrelationResult(coefficient=None)) == "n/a"
    assert [interpret_correlation(r) for r in (0.05, -0.2, 0.4, 0.6, 0.8, -0.95, None)] == [
        "negligible", "weak", "moderate", "strong", "very strong", "almost perfect", "undefined",
    ]  # fmt: skip
    assert [interpret_kappa(k) for k in (-0.1, 0.1, 0.3, 0.5, 0.7, 0.9, None)] == [
        "poor", "slight", "fair", "moderate", "substantial", "almost perfect", "undefined",
    ]  # fmt: skip
