"""Votes of a stored run, read once and in bulk: the same tables as from each item's report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from autorubric import CriterionGrader, DataItem, EvalResult, Rubric, RubricDataset, evaluate_sync
from autorubric.errors import RunFormatError
from autorubric.judges import JudgeRequest, JudgeSpec
from autorubric.metrics import compute_metrics, item_analysis, judge_report, votes_table
from autorubric.metrics.core.read_votes import read_votes
from autorubric.reports.page import report_html
from autorubric.runs.export import scores_table
from tests.reports.runs import graded, kinds_dataset, panel


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with every kind of criterion, conditions, abstentions and failures."""
    return graded(tmp_path_factory.mktemp("runs"), kinds_dataset(), panel()).experiment_dir


def _without_bulk(result: EvalResult) -> Any:
    """The run with its results as a list, which has nothing but a report for each item."""
    return SimpleNamespace(item_results=list(result.item_results), dataset=result.dataset)


def test_tables_are_equal(folder: Path) -> None:
    """All columns, raters, scores and ties are those of the reports."""
    result = EvalResult.from_experiment(folder)
    fast, slow = read_votes(result, result.dataset), read_votes(_without_bulk(result), result.dataset)
    pd.testing.assert_frame_equal(fast.to_frame(), slow.to_frame(), check_exact=True)
    assert fast.raters == slow.raters and fast.criteria == slow.criteria
    assert list(fast.scores) == list(slow.scores)
    for rater, scores in slow.scores.items():
        np.testing.assert_array_equal(fast.scores[rater], scores)
    np.testing.assert_array_equal(fast.tied, slow.tied)
    assert fast.outcomes == slow.outcomes


def test_a_rule_for_the_truth_gives_the_same_metrics(folder: Path) -> None:
    """The dataset with a rule is another object, whose items are those of the run."""
    result = EvalResult.from_experiment(folder)
    slow = _without_bulk(result)
    for truth in (None, "mode"):
        fast = compute_metrics(result, result.dataset, truth=truth).to_dict()
        assert fast == compute_metrics(slow, result.dataset, truth=truth).to_dict()


def test_the_table_is_kept_until_items_are_added(folder: Path) -> None:
    """Its arrays cannot be changed."""
    result = EvalResult.from_experiment(folder)
    table = read_votes(result, result.dataset)
    assert read_votes(result, result.dataset) is table
    with pytest.raises(ValueError, match="read-only"):
        table.value[0] = 1.0
    frame = votes_table(result, result.dataset)
    frame.loc[0, "value"] = 0.25
    assert judge_report(result).to_dict() == judge_report(EvalResult.from_experiment(folder)).to_dict()
    result.dataset.add_item(DataItem(submission="Sorry, again.", id="added"))
    assert read_votes(result, result.dataset).n_items == table.n_items + 1


def test_scores_and_page_are_equal(folder: Path) -> None:
    """The table of scores and the page are those of the reports."""
    result = EvalResult.from_experiment(folder)

    class Slow:
        """The run with its results as a list."""

        item_results = tuple(result.item_results)

        def __getattr__(self, name: str) -> Any:
            return getattr(result, name)

    slow: Any = Slow()
    pd.testing.assert_frame_equal(scores_table(result), scores_table(slow), check_exact=True)
    assert report_html(result) == report_html(slow)


def test_a_run_with_other_labels_has_its_own_table(folder: Path) -> None:
    """The table of the labels in the run's folder is not the table of labels that were entered later."""
    result = EvalResult.from_experiment(folder)
    items = [one.model_copy(update={"ground_truth": None, "ratings": {}}) for one in result.dataset.items]
    blank = RubricDataset(rubric=result.dataset.rubric, items=items)
    assert ("truth", "truth") in read_votes(result, result.dataset).raters
    assert ("truth", "truth") not in read_votes(replace(result, dataset=blank), blank).raters


@pytest.mark.parametrize("change", ["cut", "another item", "not JSON"])
def test_votes_that_changed_since_the_run_was_opened_are_an_error(
    folder: Path, tmp_path: Path, change: str
) -> None:
    """No vote is lost silently."""
    copy = tmp_path / "run"
    copy.mkdir()
    for file in folder.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    result = EvalResult.from_experiment(copy)
    votes = (copy / "votes.jsonl").read_bytes()
    lines = votes.splitlines(keepends=True)
    changed = {
        "cut": b"".join(lines[:-1]),
        "another item": b"".join([*lines[:-1], _of_another_item(lines[-1])]),
        "not JSON": b"".join([*lines[:-1], b"x" * (len(lines[-1]) - 1) + b"\n"]),
    }
    (copy / "votes.jsonl").write_bytes(changed[change])
    with pytest.raises(RunFormatError, match="has changed since the run was opened"):
        read_votes(result, result.dataset)


def _of_another_item(line: bytes) -> bytes:
    start = line.index(b'"item":"') + len(b'"item":"')
    return line[:start] + (b"x" if line[start : start + 1] != b"x" else b"y") + line[start + 1 :]


def test_another_dataset_is_matched_by_id(folder: Path) -> None:
    """A dataset that was built again has the same table."""
    result = EvalResult.from_experiment(folder)
    again = votes_table(result, kinds_dataset())
    pd.testing.assert_frame_equal(again, votes_table(result, result.dataset), check_exact=True)


def test_items_keep_the_weights_of_their_own_rubrics(tmp_path: Path) -> None:
    """Rubrics that are read from the folder one after the other are not mixed up."""

    def rubric(at: int) -> Rubric:
        return Rubric([{"name": f"c{n}", "requirement": "Good.", "weight": 1 + at * n % 7} for n in range(3)])

    def judge(request: JudgeRequest) -> str:
        return (
            "MET" if (len(request.item_id or "") + ord((request.criterion.name or "")[-1])) % 2 else "UNMET"
        )

    items = [
        DataItem(
            id="i" * (at + 1), submission="A text.", rubric=rubric(at), ground_truth=["MET", "UNMET", "MET"]
        )
        for at in range(80)
    ]
    judges = [JudgeSpec(judge, name) for name in ("one", "two")]
    in_memory = evaluate_sync(
        RubricDataset(items=items),
        CriterionGrader(judges=judges),
        experiments_dir=tmp_path,
        show_progress=False,
    )
    stored = EvalResult.from_experiment(in_memory.experiment_dir)
    expected = item_analysis(in_memory).to_dict()
    assert [item_analysis(stored).to_dict() for _ in range(3)] == [expected] * 3
