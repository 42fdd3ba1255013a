"""A run and its labels to figures: states, judges, scores, rubrics per item, resampling."""

from __future__ import annotations

import json

import numpy as np
import pytest

from autorubric.criteria import Criterion
from autorubric.datasets import RubricDataset
from autorubric.metrics import compute_metrics
from autorubric.rubric import Rubric
from autorubric.scoring import Decision, EnsembleCriterionReport
from tests.metrics.asserting import holds
from tests.metrics.reports import (
    BINARY,
    FAILED,
    NOT_APPLICABLE,
    NOT_ASKED,
    ORDINAL,
    PANEL,
    TRUTH,
    binary_run,
    labelled,
    report,
    run,
)


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
            "rubric": Rubric([ORDINAL.with_name("clear")]),
            "ground_truth": {"clear": "high"},
        },
    ]
    given = run(
        [report(BINARY, "MET"), report(other, "MET")],
        [report(other, "MET"), report(BINARY, "UNMET")],
        [report(ORDINAL.with_name("clear"), "high")],
    )
    found = compute_metrics(given, RubricDataset(items=items))
    by_name = [(one.name, one.n_samples) for one in found.per_criterion]
    assert by_name == [("clear", 2), ("extra", 2), ("clear", 1)]
    assert getattr(found.per_criterion[0], "accuracy", None) == 1.0
    assert any("scales differ between items" in warning for warning in found.warnings)


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


def test_a_judge_may_miss_some_criteria():
    """A judge with no vote on a criterion is scored on the others."""
    other = Criterion(name="extra", requirement="More.", weight=1.0)
    dataset = labelled([BINARY, other], {"clear": "MET", "extra": "UNMET"})
    given = run([report(BINARY, "MET", {"a": "MET", "b": "MET"}), report(other, "MET", {"a": "MET"})])
    found = compute_metrics(given, dataset, per_judge=True)
    assert found.per_judge["a"].score_mae == 0.5
    assert found.per_judge["b"].score_mae == 0.5
    assert found.per_judge["b"].na_stats.not_asked == 1


def test_thin_data_is_said():
    """Few items and a rare class bring warnings."""
    found = binary_run(["MET"] * 60 + ["UNMET"] * 4, ["MET"] * 64)
    assert any("rarer class: clear" in warning for warning in found.warnings)
    assert not any("fewer than about" in warning for warning in found.warnings)
    assert any("with fewer than about 50" in warning for warning in binary_run(TRUTH, PANEL).warnings)


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


def test_metrics_that_are_undefined_for_the_same_reason_share_a_warning():
    """A criterion without labels does not bring a warning for each metric."""
    other = Criterion(name="extra", requirement="More.", weight=1.0)
    dataset = labelled([BINARY, other], {"clear": "MET"}, {"clear": "UNMET"})
    verdicts = ("MET", "UNMET")
    found = compute_metrics(run(*([report(BINARY, one), report(other, one)] for one in verdicts)), dataset)
    (shared,) = (one for one in found.warnings if "(no_pairs) on" in one)
    assert "kappa, accuracy," in shared and shared.endswith(
        "are undefined (no_pairs) on 1 of 2 criteria: extra"
    )
