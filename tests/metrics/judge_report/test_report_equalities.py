"""`judge_report`: its figures are those of `compute_metrics`, `agreement` and a table of the same labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from autorubric.datasets import RubricDataset
from autorubric.metrics import (
    Binary,
    CriterionMetrics,
    NominalCriterionMetrics,
    Ordinal,
    OrdinalCriterionMetrics,
    RaterReport,
    accuracy,
    agreement,
    compute_metrics,
    judge_report,
    reliability,
    votes_table,
)
from tests.metrics.asserting import number
from tests.metrics.judge_report.tables import SCALES, drawn_table, labels
from tests.metrics.reports import BINARY, FAILED, NOMINAL, NOT_ASKED, ORDINAL, Stars, labelled, report, run

STARS = Stars(name="stars", requirement="How many?", weight=1.0)
CRITERIA: list[Any] = [BINARY, ORDINAL, NOMINAL, STARS]
ANSWERS: dict[str, list[Any]] = {
    "clear": ["MET", "UNMET", "CANNOT_ASSESS"],
    "depth": ["low", "some", "high", "n/a"],
    "tone": ["warm", "dry", "cold"],
    "stars": [1, 2, 3, 4, 5],
}


def drawn_run(n_items: int = 30, seed: int = 0) -> tuple[Any, RubricDataset]:
    """A run of two judges on criteria of four levels, with abstentions, failures and unlabelled cells."""
    rng = np.random.default_rng(seed)
    truths: list[dict[str, Any]] = []
    reports = []
    for _ in range(n_items):
        truth: dict[str, Any] = {}
        of_item = []
        for criterion in CRITERIA:
            options = ANSWERS[criterion.name]
            right = options[rng.integers(len(options))]
            if rng.random() < 0.9:
                truth[criterion.name] = right
            said = [right if rng.random() < 0.6 else options[rng.integers(len(options))] for _ in range(2)]
            judges = {
                name: FAILED if chance < 0.05 else NOT_ASKED if chance < 0.1 else answer
                for name, answer, chance in zip(("a", "b"), said, rng.random(2), strict=True)
            }
            of_item.append(report(criterion, judges["a"], judges))
        truths.append(truth)
        reports.append(of_item)
    return run(*reports), labelled(CRITERIA, *truths)


MODES = {
    "exclude": {"cannot_assess": "exclude", "na_mode": "exclude"},
    "as_category": {"cannot_assess": "as_category", "na_mode": "as_category"},
    "as_negative": {"cannot_assess": "as_unmet", "na_mode": "as_worst"},
}


@pytest.mark.parametrize("abstain", MODES)
def test_figures_are_those_of_compute_metrics(abstain: Any) -> None:
    """Where both give a figure it is the same: means, pooled cells, criteria, scores, failures."""
    result, dataset = drawn_run()
    modes: Any = MODES[abstain]
    plain = compute_metrics(result, dataset, per_judge=True, bootstrap=True, n_bootstrap=200, **modes)
    found = judge_report(result, dataset, abstain=abstain, n_resamples=200)
    for mine, theirs in ((found.panel, plain), *((found.per_judge[j], plain.per_judge[j]) for j in "ab")):
        for name in ("accuracy", "balanced_accuracy", "precision", "recall", "f1"):
            _same(getattr(mine.macro, name), getattr(theirs, f"criterion_{name}"))
            assert mine.macro.defined[name] == theirs.defined[f"criterion_{name}"], name
        _same(mine.macro.kappa, theirs.mean_kappa)
        assert theirs.bootstrap is not None
        for figure, ends in (
            (mine.macro.accuracy, theirs.bootstrap.accuracy_ci),
            (mine.macro.kappa, theirs.bootstrap.kappa_ci),
        ):
            assert ends is not None
            assert (figure.low, figure.high) == pytest.approx((ends.lower, ends.upper))
        for name in ("accuracy", "precision", "recall", "f1", "balanced_accuracy"):
            _same(getattr(mine.micro, name), getattr(theirs.pooled, name))
        for labels_of, pooled in theirs.pooled_by_scale.items():
            on_scale = mine.by_scale[labels_of]
            _same(on_scale.accuracy, pooled.accuracy)
            ordered = "low" in labels_of
            if not (ordered and abstain == "as_category"):
                _same(on_scale.kappa, pooled.weighted_kappa if ordered else pooled.kappa)
        _same_scores(mine, theirs)
        stats = theirs.na_stats
        assert mine.failures.n_cells == stats.n_cells
        _same(mine.failures.failure_rate, stats.failed / stats.n_cells)
        _same(mine.failures.not_asked_rate, stats.not_asked / stats.n_cells)
        _same(mine.failures.abstention_rate, stats.judge_rate)
        _same(mine.failures.truth_abstention_rate, stats.truth_rate)
        _same(mine.failures.abstention_kappa, stats.kappa)
        _same_criteria(mine, theirs)


def _same(found: Any, wanted: float | None) -> None:
    assert found.value == (None if wanted is None else pytest.approx(wanted)), found.method


def _same_scores(mine: RaterReport, theirs: Any) -> None:
    assert mine.scores is not None
    _same(mine.scores.rmse, theirs.score_rmse)
    _same(mine.scores.mae, theirs.score_mae)
    _same(mine.scores.pearson, theirs.score_pearson.coefficient)
    _same(mine.scores.spearman, theirs.score_spearman.coefficient)
    _same(mine.scores.kendall, theirs.score_kendall.coefficient)
    assert mine.scores.bias.mean_bias == theirs.bias.mean_bias


def _same_criteria(mine: RaterReport, theirs: Any) -> None:
    for one in theirs.per_criterion:
        found = mine.per_criterion[one.name]
        assert (found.n, found.level) == (one.n_samples, one.criterion_type)
        if isinstance(one, CriterionMetrics):
            for name in (
                "accuracy",
                "balanced_accuracy",
                "precision",
                "recall",
                "specificity",
                "f1",
                "kappa",
                "mcc",
            ):
                _same(getattr(found, name), getattr(one, name))
        elif isinstance(one, OrdinalCriterionMetrics):
            for name in ("adjacent_accuracy", "adjacent_by_chance", "weighted_kappa", "rmse", "mae"):
                _same(getattr(found, name), getattr(one, name))
            _same(found.kappa, one.weighted_kappa)
            _same(found.spearman, one.spearman.coefficient)
            _same(found.kendall, one.kendall.coefficient)
        elif isinstance(one, NominalCriterionMetrics):
            for name in ("balanced_accuracy", "macro_f1", "kappa"):
                _same(getattr(found, name), getattr(one, name))
        else:
            for name in ("rmse", "mae", "ccc"):
                _same(getattr(found, name), getattr(one, name))
            _same(found.pearson, one.pearson.coefficient)


def test_a_long_table_of_the_run_gives_the_same_report() -> None:
    """The frame of `votes_table` says what the run says, but for item scores, which weights make."""
    result, dataset = drawn_run()
    of_run = judge_report(result, dataset, n_resamples=100)
    of_table = judge_report(votes_table(result, dataset), dataset, n_resamples=100)
    assert of_table.panel.scores is None
    # Rows of a table come in another order than those of a run, so that sums may differ by rounding.
    keys = ["rater", "criterion", "figure"]
    mine, theirs = (one.to_dataframe().sort_values(keys, ignore_index=True) for one in (of_table, of_run))
    pd.testing.assert_frame_equal(mine, theirs)
    assert (of_table.n_items, of_table.n_cells) == (of_run.n_items, of_run.n_cells)
    assert of_table.failures == of_run.failures
    assert of_table.reliability["clear"] == of_run.reliability["clear"]
    assert not any("score_" in warning for warning in of_table.warnings)


def test_micro_is_share_over_items_as_the_function_gives_it() -> None:
    """Pooled accuracy is that of all cells with items as clusters, interval and all."""
    rows = [row for row in drawn_table(n_people=1) if row["criterion"] == "clear"]
    rows += [
        row | {"criterion": "short"} for row in drawn_table(n_people=1, seed=5) if row["criterion"] == "clear"
    ]
    found = judge_report(rows, scales=Binary()).per_judge["a"]
    cells = {(row["rater"], row["item_id"], row["criterion"]): row["label"] for row in rows}
    at = [(item, criterion) for rater, item, criterion in cells if rater == "a"]
    truth, judged = ([cells[who, item, criterion] for item, criterion in at] for who in ("h0", "a"))
    alone = accuracy(truth, judged, scale=Binary(), cluster=[item for item, _ in at])
    assert (found.micro.accuracy.low, found.micro.accuracy.high) == pytest.approx((alone.low, alone.high))
    assert "mixes base rates" in found.micro.accuracy.method


def test_pooled_kappa_does_not_rise_from_base_rates() -> None:
    """Two criteria of kappa 0 with base rates 90 and 10 %: .64 pooled, 0 with chance within criteria."""
    rows = []
    for criterion, met, others in (("easy", 90, 10), ("hard", 10, 90)):
        # Independent raters with equal margins: 81, 9, 9, 1 of a hundred.
        truth = ["MET"] * met + ["UNMET"] * others
        judged = ["MET"] * (met * met // 100) + ["UNMET"] * (met * others // 100)
        judged += ["MET"] * (others * met // 100) + ["UNMET"] * (others * others // 100)
        rows += labels("truth", "truth", criterion, truth) + labels("judge", "j", criterion, judged)
    found = judge_report(rows, scales=Binary(), n_resamples=50)
    assert number(found.macro.kappa.value) == pytest.approx(0.0, abs=1e-12)
    assert number(found.micro.kappa.value) == pytest.approx(0.0, abs=1e-12)
    pooled = found.panel.by_scale["UNMET | MET"].kappa
    assert number(pooled.value) == pytest.approx(0.0, abs=1e-12)
    assert "chance agreement within criteria" in pooled.method


def test_every_criterion_is_the_agreement_of_its_labels() -> None:
    """What the report says of a criterion is what `agreement` says of its columns."""
    rows = drawn_table(n_people=1)
    found = judge_report(rows, scales=SCALES, n_resamples=100)
    for criterion, scale in SCALES.items():
        by_rater = {
            who: [row["label"] for row in rows if (row["rater"], row["criterion"]) == (who, criterion)]
            for who in ("h0", "a", "b")
        }
        weights: Any = "quadratic" if isinstance(scale, Ordinal) else None
        alone = agreement(by_rater["h0"], by_rater["a"], scale=scale, weights=weights, n_resamples=100)
        assert found.per_judge["a"].per_criterion[criterion].to_dict() == alone.to_dict()
        pairs = list(zip(by_rater["a"], by_rater["b"], strict=True))
        among = reliability(pairs, scale=scale, n_resamples=100)
        assert found.reliability[criterion].alpha.to_dict() == among.alpha.to_dict()
