"""The votes table, and the forms in which figures leave."""

from __future__ import annotations

import json
import warnings
from types import SimpleNamespace

import pandas as pd
import pytest

from autorubric.criteria import BaseCriterion, Criterion
from autorubric.datasets import RubricDataset
from autorubric.errors import ArgumentError
from autorubric.metrics import compute_metrics, votes_table
from autorubric.metrics.core.read_votes import read_votes
from autorubric.rubric import Rubric
from tests.metrics.reports import BINARY, FAILED, NOMINAL, ORDINAL, Stars, labelled, report, run


def test_ratings_of_missing_labels_are_left_out():
    """A person's rating that is None is no row."""
    items = [{"submission": "text", "ratings": {"ann": {"clear": "MET"}}, "ground_truth": {"clear": None}}]
    dataset = RubricDataset(rubric=Rubric([BINARY]), items=items)
    frame = votes_table(run([report(BINARY, "MET")]), dataset)
    assert sorted(frame.rater_kind) == ["human", "judge", "judge", "panel", "truth"]
    assert len(read_votes(run([report(BINARY, "MET")]), dataset)) == 5


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
    given.item_results[0].item.id = "first"
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
        "Panel against the ground truth",
        "clear",
        "Judges",
        "Confusion matrix of depth",
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
