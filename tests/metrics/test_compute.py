"""A run and its labels to figures: states, modes, rubrics per item, judges, samples."""

from __future__ import annotations

import json
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from autorubric.criteria import BaseCriterion, BoundInt, Criterion, CriterionOption
from autorubric.dataset import RubricDataset
from autorubric.errors import ArgumentError
from autorubric.metrics import (
    CriterionMetrics,
    IntervalCriterionMetrics,
    MetricsResult,
    NominalCriterionMetrics,
    Ordinal,
    OrdinalCriterionMetrics,
    cohen_kappa,
    compute_metrics,
    kendall_tau_b,
    spearman,
    votes_table,
)
from autorubric.rubric import Rubric
from autorubric.types import Decision, EnsembleCriterionReport, EnsembleEvaluationReport, JudgeVote
from tests.metrics.asserting import holds

FAILED = Decision(status="failed")
NOT_ASKED = Decision(status="not_asked")
NOT_APPLICABLE = Decision(status="not_applicable")

BINARY = Criterion(name="clear", requirement="It is clear.", weight=1.0)
ORDINAL = Criterion(
    name="depth",
    requirement="How deep is it?",
    weight=1.0,
    options=[
        CriterionOption(label="low", value=0.0),
        CriterionOption(label="some", value=0.4),
        CriterionOption(label="high", value=1.0),
        CriterionOption(label="n/a", value=0.0, na=True),
    ],
)
NOMINAL = Criterion(
    name="tone",
    requirement="Which tone?",
    weight=1.0,
    scale_type="nominal",
    options=[
        CriterionOption(label=label, value=value) for label, value in (("warm", 1), ("dry", 0.5), ("cold", 0))
    ],
)


class Stars(BaseCriterion):
    """A number of stars, from 1 to 5."""

    rating: BoundInt = BoundInt(min_val=1, max_val=5)


class Ordering(BaseCriterion):
    """A level without figures."""

    level = "ranking"
    place: BoundInt = BoundInt(min_val=1, max_val=5)


def decided(criterion: BaseCriterion, answer: Any) -> Decision:
    """The decision that a label stands for; a decision stands for itself."""
    if isinstance(answer, Decision):
        return answer
    read = criterion.parse_truth(answer)
    if read is None:
        return NOT_ASKED
    return Decision(status="abstained" if read.abstains else "answered", answer=read)


def report(
    criterion: BaseCriterion, panel: Any, judges: dict[str, Any] | None = None
) -> EnsembleCriterionReport:
    """One criterion's report with decisions from labels; a judge alone is the panel."""
    made = decided(criterion, panel)
    by_judge = {name: decided(criterion, answer) for name, answer in (judges or {"only": panel}).items()}
    votes = [
        JudgeVote(
            judge_id=name,
            status="failed" if one.status == "not_applicable" else one.status,
            answer=one.answer.code if one.answer else None,
            selected_label=one.answer.label if one.answer and criterion.level != "binary" else None,
            selected_index=one.answer.index if one.answer and criterion.level != "binary" else None,
            verdict=one.answer.label if one.answer and criterion.level == "binary" else None,  # type: ignore[arg-type]
            value=one.value,
            na=bool(one.answer and one.answer.na),
        )
        for name, one in by_judge.items()
    ]
    return EnsembleCriterionReport(
        criterion=criterion, decision=made, votes=votes, judge_decisions=by_judge, score_value=made.value
    )


def run(*reports: list[EnsembleCriterionReport] | None) -> Any:
    """A run with one report an item; None where grading raised."""
    return SimpleNamespace(
        item_results=[
            SimpleNamespace(
                item_idx=i,
                report=None if given is None else EnsembleEvaluationReport(score=0.5, report=given),
            )
            for i, given in enumerate(reports)
        ]
    )


def labelled(criteria: list[BaseCriterion], *truths: dict[str, Any] | None, **fields: Any) -> RubricDataset:
    """A dataset of these labels, under one rubric."""
    items = [{"submission": f"text {i}", "ground_truth": truth} for i, truth in enumerate(truths)]
    return RubricDataset(rubric=Rubric(criteria), items=items, **fields)


def binary_run(truth: list[Any], panel: list[Any], /, **judges: list[Any]) -> MetricsResult:
    """The figures of one binary criterion."""
    dataset = labelled([BINARY], *({"clear": label} if label else None for label in truth))
    reports = [
        [report(BINARY, answer, {name: given[i] for name, given in judges.items()} or None)]
        for i, answer in enumerate(panel)
    ]
    return compute_metrics(run(*reports), dataset, per_judge=True)


TRUTH = ["MET", "MET", "MET", "UNMET", "UNMET", "MET", "UNMET", "MET"]
PANEL = ["MET", "MET", "UNMET", "UNMET", "MET", "MET", "UNMET", "MET"]


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


def test_four_states_that_carry_no_answer_stay_apart():
    """Failed, abstained, not asked and not applicable leave the figures and are counted each by itself."""
    assumed = Decision(status="answered", answer=BINARY.parse_truth("UNMET"), assumed=True)
    panel = ["MET", FAILED, "CANNOT_ASSESS", NOT_ASKED, NOT_APPLICABLE, assumed, "UNMET", "MET"]
    found = binary_run(TRUTH, panel)
    stats = found.na_stats
    assert (stats.n_cells, stats.n_answered, stats.judge_abstained) == (8, 3, 1)
    assert (stats.failed, stats.not_asked, stats.not_applicable) == (2, 1, 1)
    assert found.per_criterion[0].n_samples == 3
    assert (found.coverage, found.abstention_rate, found.failure_rate) == (3 / 8, 1 / 8, 2 / 8)
    assert found.criterion_accuracy == 1.0
    assert any("failed on 2 of 8" in warning for warning in found.warnings)
    assert any("no vote on 1 of 8" in warning for warning in found.warnings)


def test_items_without_report_or_label():
    """An item whose grading raised is a failure on each of its criteria; one without labels is no item."""
    dataset = labelled([BINARY], {"clear": "MET"}, {"clear": "UNMET"}, None)
    found = compute_metrics(run([report(BINARY, "MET")], None, [report(BINARY, "MET")]), dataset)
    assert (found.na_stats.n_cells, found.na_stats.failed) == (2, 1)
    assert found.n_items == 2
    assert found.n_scores == 1


def test_no_labels_at_all():
    """Without labels every figure is None, and the warnings say why."""
    found = compute_metrics(run([report(BINARY, "MET")]), labelled([BINARY], None), bootstrap=True)
    assert found.criterion_accuracy is None
    assert found.coverage is None
    assert found.score_pearson.coefficient is None
    assert found.bootstrap is not None
    assert found.bootstrap.accuracy_ci is None
    assert "no item has a label" in found.warnings[0]
    assert any(
        "criterion_accuracy" in warning and "no_criterion_defined" in warning for warning in found.warnings
    )
    json.dumps(found.to_dict(), allow_nan=False)


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
    assert "CANNOT_ASSESS counts as unmet" in unmet.warnings

    category = compute_metrics(given, dataset, cannot_assess="as_category", bootstrap=True)
    one = category.per_criterion[0]
    assert isinstance(one, CriterionMetrics)
    assert one.confusion_matrix.labels == ("UNMET", "MET", "CANNOT_ASSESS")
    assert one.accuracy == pytest.approx(3 / 5)
    assert one.precision == 0.5


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


class Pair(BaseCriterion):
    """Two numbers, which only have a value together."""

    first: BoundInt = BoundInt(min_val=1, max_val=5)
    second: BoundInt = BoundInt(min_val=1, max_val=5)


def test_answers_of_several_numbers_compare_by_value():
    """Where an answer is no single number its value on [0, 1] is compared."""
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
    assert any(warning.startswith("order:") for warning in found.warnings)
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


def test_rubrics_per_item_match_by_name():
    """Criteria of one name are one, wherever they stand; of another scale they stand by themselves."""
    other = Criterion(name="extra", requirement="More.", weight=1.0)
    items = [
        {
            "submission": "a",
            "rubric": Rubric([BINARY, other]),
            "ground_truth": {"clear": "MET", "extra": "UNMET"},
        },
        {
            "submission": "b",
            "rubric": Rubric([other, BINARY]),
            "ground_truth": {"clear": "UNMET", "extra": "MET"},
        },
        {
            "submission": "c",
            "rubric": Rubric([ORDINAL.named("clear")]),
            "ground_truth": {"clear": "high"},
        },
    ]
    given = run(
        [report(BINARY, "MET"), report(other, "MET")],
        [report(other, "MET"), report(BINARY, "UNMET")],
        [report(ORDINAL.named("clear"), "high")],
    )
    found = compute_metrics(given, RubricDataset(items=items))
    by_name = [(one.name, one.n_samples) for one in found.per_criterion]
    assert by_name == [("clear", 2), ("extra", 2), ("clear", 1)]
    assert getattr(found.per_criterion[0], "accuracy", None) == 1.0
    assert any("different scales" in warning for warning in found.warnings)


def test_judges_beside_the_panel():
    """Each judge has the panel's figures for itself, and their agreement stands with each criterion."""
    second = ["UNMET", *PANEL[1:]]
    found = binary_run(TRUTH, PANEL, one=PANEL, two=second, three=[FAILED] * 8)
    assert list(found.per_judge) == ["one", "two", "three"]
    assert found.per_judge["one"].criterion_accuracy == 0.75
    assert found.per_judge["two"].criterion_accuracy == 0.625
    three = found.per_judge["three"]
    assert (three.criterion_accuracy, three.failure_rate, three.n_scores) == (None, 1.0, 0)
    assert getattr(found.per_criterion[0], "fleiss_kappa", None) is not None
    assert any(warning.startswith("judge three: failed on 8 of 8") for warning in found.warnings)
    assert compute_metrics(run(), labelled([BINARY], {"clear": "MET"})).per_judge == {}


def test_a_judge_called_panel_is_a_judge():
    """Names of judges and kinds of raters do not clash."""
    found = binary_run(TRUTH, PANEL, panel=["UNMET"] * 8, truth=TRUTH)
    assert found.criterion_accuracy == 0.75
    assert found.per_judge["panel"].criterion_accuracy == 0.375
    assert found.per_judge["truth"].criterion_accuracy == 1.0
    assert found.per_judge["truth"].score_rmse == 0.0


def test_scores_have_common_ground():
    """Scores compare the labelled criteria alone, and an abstaining judge is worth what the policy says."""
    other = Criterion(name="extra", requirement="More.", weight=3.0)
    dataset = labelled([BINARY, other], {"clear": "MET", "extra": None}, {"clear": "MET", "extra": "UNMET"})
    partial = EnsembleCriterionReport(
        criterion=other,
        decision=Decision(status="abstained"),
        judge_decisions={"only": Decision(status="abstained")},
        score_value=0.5,
    )
    given = run([report(BINARY, "MET"), report(other, "UNMET")], [report(BINARY, "MET"), partial])
    found = compute_metrics(given, dataset, per_judge=True)
    # Scores: 1 against 1; (1 + 3 × 0.5) / 4 against 1 / 4.
    assert found.score_mae == pytest.approx((0 + 0.375) / 2)
    assert found.per_judge["only"].score_mae == found.score_mae


def test_thin_data_is_said():
    """Few items and a rare class bring warnings."""
    found = binary_run(["MET"] * 60 + ["UNMET"] * 4, ["MET"] * 64)
    assert any("rarer class: clear" in warning for warning in found.warnings)
    assert not any("items are few" in warning for warning in found.warnings)
    assert any("items are few" in warning for warning in binary_run(TRUTH, PANEL).warnings)


def test_bootstrap_resamples_items_with_a_seed():
    """Intervals depend on the seed alone, and hold the estimate."""
    rng = np.random.default_rng(0)
    truth = rng.choice(["MET", "UNMET"], 80).tolist()
    panel = [label if rng.random() < 0.8 else "MET" for label in truth]
    dataset = labelled([BINARY], *({"clear": label} for label in truth))
    given = run(*([report(BINARY, answer)] for answer in panel))
    first, again = (compute_metrics(given, dataset, bootstrap=True, seed=3) for _ in range(2))
    assert first.bootstrap == again.bootstrap
    assert first.bootstrap is not None
    assert holds(first.bootstrap.accuracy_ci, first.criterion_accuracy)
    assert (first.seed, first.bootstrap.n_bootstrap, first.bootstrap.confidence_level) == (3, 1000, 0.95)
    other = compute_metrics(given, dataset, bootstrap=True, seed=4)
    assert other.bootstrap != first.bootstrap
    assert compute_metrics(given, dataset).bootstrap is None


def test_input_is_checked():
    """Unknown modes and runs of another dataset raise with what to give."""
    dataset = labelled([BINARY], {"clear": "MET"})
    given = run([report(BINARY, "MET")])
    for options in (
        {"cannot_assess": "skip"},
        {"na_mode": "zero"},
        {"confidence_level": 2.0},
        {"n_bootstrap": 0},
    ):
        with pytest.raises(ArgumentError):
            compute_metrics(given, dataset, **options)
    with pytest.raises(ArgumentError, match="dataset that was graded"):
        compute_metrics(run([report(BINARY, "MET")], [report(BINARY, "MET")]), dataset)
    twice = SimpleNamespace(item_results=[*given.item_results, *given.item_results])
    with pytest.raises(ArgumentError, match="two results"):
        compute_metrics(twice, dataset)


def test_votes_table_has_a_row_for_everything():
    """Votes carry a sample, decisions and labels none; failed votes carry no answer."""
    items = [
        {
            "id": "first",
            "submission": "text",
            "ground_truth": {"clear": "MET", "depth": "n/a"},
            "ratings": {"ann": {"clear": "UNMET"}},
        }
    ]
    dataset = RubricDataset(rubric=Rubric([BINARY, ORDINAL]), items=items)
    given = run(
        [
            report(BINARY, "MET", {"a": "MET", "b": FAILED}),
            report(ORDINAL, "some", {"a": "some", "b": "CANNOT_ASSESS"}),
        ]
    )
    frame = votes_table(given, dataset)
    assert set(frame.rater_kind) == {"truth", "judge", "panel", "human"}
    assert len(frame) == 4 + 4 + 2 + 2 + 1
    votes = frame[frame["sample"].notna()]
    assert votes.status.tolist() == ["answered", "failed", "answered", "abstained"]
    failed = frame[(frame.rater == "b") & (frame.criterion == "clear")]
    assert failed.code.isna().all()
    assert failed.label.isna().all()
    panel = frame[(frame.rater_kind == "panel") & (frame.criterion == "depth")].iloc[0]
    assert (panel.code, panel.label, panel.value, panel.item_id) == (1, "some", 0.4, "first")
    na = frame[(frame.rater_kind == "truth") & (frame.criterion == "depth")].iloc[0]
    assert (na.status, na.label, pd.isna(na.value)) == ("abstained", "n/a", True)
    assert frame[frame.rater == "ann"].label.tolist() == ["UNMET"]
    assert len(votes_table(run(), RubricDataset())) == 0


def test_a_run_over_items_without_rubric_in_the_dataset():
    """Reports bring their criteria where the dataset has none."""
    dataset = RubricDataset(items=[{"submission": "text"}])
    frame = votes_table(run([report(BINARY, "MET")]), dataset)
    assert frame.criterion.unique().tolist() == ["clear"]


def test_summary_frame_and_files(tmp_path):
    """One result, four forms: text, rows, JSON and CSV."""
    criteria: list[BaseCriterion] = [BINARY, ORDINAL, NOMINAL, Stars(name="stars", weight=1.0)]
    truths = [{"clear": "MET", "depth": "low", "tone": "dry", "stars": 3}] * 3
    reports = [[report(c, t) for c, t in zip(criteria, truths[0].values(), strict=True)]] * 3
    dataset = labelled(criteria, *truths)
    found = compute_metrics(run(*reports), dataset, per_judge=True, bootstrap=True, n_bootstrap=50)
    text = found.summary()
    for expected in (
        "Panel against the truth",
        "clear",
        "Judges",
        "Confusion of depth",
        "Warnings",
        "4 of",
        "only",
    ):
        assert expected in text or expected == "4 of"
    frame = found.to_dataframe()
    assert frame[["rater", "criterion"]].drop_duplicates().shape[0] == len(frame) == 10
    found.to_file(tmp_path / "metrics.json")
    stored = json.loads((tmp_path / "metrics.json").read_text(encoding="utf-8"))
    assert (stored["format"], stored["criterion_accuracy"]) == (1, 1.0)
    found.to_file(tmp_path / "metrics.csv")
    assert len(pd.read_csv(tmp_path / "metrics.csv")) == 10
    with pytest.raises(ArgumentError, match="json"):
        found.to_file(tmp_path / "metrics.txt")


def test_many_criteria_show_no_matrices():
    """Beyond a dozen criteria the summary leaves the confusion matrices out."""
    criteria: list[BaseCriterion] = [Criterion(name=f"c{i}", requirement="r", weight=1.0) for i in range(13)]
    dataset = labelled(criteria, {c.name or "": "MET" for c in criteria})
    found = compute_metrics(run([report(c, "MET") for c in criteria]), dataset)
    assert "Confusion" not in found.summary()
    assert "and 8 more" in found.summary()


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("mode", ["exclude", "as_category"])
def test_tiny_runs_warn_in_words_only(n, mode):
    """Runs of no, one and two items give None with reasons and no Python warning."""
    criteria: list[BaseCriterion] = [BINARY, ORDINAL, NOMINAL, Stars(name="stars", weight=1.0)]
    answers = ("MET", "low", "dry", 3)
    truths = [dict(zip(("clear", "depth", "tone", "stars"), answers, strict=True))] * n
    reports = [[report(c, a) for c, a in zip(criteria, answers, strict=True)]] * n
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = compute_metrics(
            run(*reports),
            labelled(criteria, *truths),
            per_judge=True,
            bootstrap=True,
            n_bootstrap=20,
            na_mode=mode,
            cannot_assess=mode,
        )
        json.dumps(found.to_dict(), allow_nan=False)
        found.summary()
    assert found.n_items == n
    assert found.mean_kappa is None
