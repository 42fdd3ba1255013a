"""Runs as tables and as files for other programs."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pytest
from hypothesis import given, strategies as st

from autorubric import (
    CriterionGrader,
    EvalResult,
    JudgeReply,
    JudgeRequest,
    LengthPenalty,
    RubricDataset,
    evaluate_sync,
)
from autorubric.errors import ArgumentError
from autorubric.runs.export import _lines, scores_table
from tests.runs.test_lines import LONE

RUBRIC = {
    "criteria": [
        {"name": "=short", "requirement": "It is short.", "weight": 3},
        {"name": "parts", "weight": 1, "criteria": [{"name": "stars", "type": "numerical_rating"}]},
    ]
}
TEXTS = {"a|b": "Yes.", "=SUM(A1)": "No.", "\x01<c>": "Fails."}


def judge(request: JudgeRequest) -> JudgeReply:
    """Likes `Yes.`, dislikes `No.` and cannot read the third text."""
    text = request.submission.text or ""
    if text == "Fails.":
        raise ValueError("no such word")
    if request.criterion.name == "stars":
        return JudgeReply(answer=10 if text == "Yes." else 5, reason="a <b>")
    return JudgeReply(answer="MET" if text == "Yes." else "UNMET", reason="& so on")


def other(request: JudgeRequest) -> Any:
    """Dislikes everything."""
    return 0 if request.criterion.name == "stars" else "UNMET"


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> EvalResult:
    """A run with a good item, a bad one, and one that one of its judges could not read."""
    items: list[dict[str, Any]] = [{"id": name, "submission": text} for name, text in TEXTS.items()]
    items.append({"id": "none", "submission": None})
    dataset = RubricDataset(rubric=RUBRIC, items=items)
    folder = tmp_path_factory.mktemp("runs")
    grader = CriterionGrader(judges=[judge], on_failure="exclude")
    return evaluate_sync(dataset, grader, experiments_dir=folder, experiment_name="r1", show_progress=False)


def test_scores_table(result: EvalResult) -> None:
    """One row an item, with the score, the judges', the groups' and each criterion's answer and value."""
    table = result.scores_table().set_index("item_id")
    assert list(table["item"]) == [0, 1, 2, 3]
    good, bad = table.loc["a|b"], table.loc["=SUM(A1)"]
    assert (good["score"], good["raw_score"], good["judge.judge"], good["group.parts"]) == (
        1.0,
        4.0,
        1.0,
        1.0,
    )
    assert (bad["answer.=short"], bad["value.=short"], bad["value.stars"]) == ("UNMET", 0.0, 0.5)
    assert bad["score"] == pytest.approx(0.125)
    lost = table.loc["\x01<c>"]
    assert pd.isna(lost["score"])
    assert "no such word" in lost["error"]
    assert table["score"].dtype == "float64"


def test_the_scores_table_of_a_stored_run_is_that_of_its_reports(tmp_path: Path) -> None:
    """A stored run, whose votes are read in bulk, has the table of its items' reports, also with failures."""
    items: list[dict[str, Any]] = [{"id": name, "submission": text} for name, text in TEXTS.items()]
    items += [{"id": "again", "submission": "Fails."}, {"id": "none", "submission": None}]
    for name, judges in (("one", [judge]), ("two", [judge, other])):
        run = evaluate_sync(
            RubricDataset(rubric=RUBRIC, items=items),
            CriterionGrader(judges=judges, length_penalty=LengthPenalty(free_budget=0, max_cap=9)),
            experiments_dir=tmp_path,
            experiment_name=name,
            show_progress=False,
        )
        plain: Any = SimpleNamespace(item_results=list(run.item_results))
        pd.testing.assert_frame_equal(run.scores_table(), scores_table(plain), check_exact=True)


def test_the_scores_table_agrees_with_the_run(result: EvalResult) -> None:
    """Scores stand in it as `get_scores` gives them."""
    found = result.scores_table()["score"]
    assert [None if pd.isna(one) else one for one in found] == result.get_scores()


def test_csv_is_safe_to_open(result: EvalResult) -> None:
    """No cell and no head begins a formula; figures are the table's."""
    rows = list(csv.DictReader(io.StringIO(result.export("csv").decode("utf-8"))))
    assert [row["item_id"] for row in rows][1] == "'=SUM(A1)"
    assert all(not cell.startswith(("=", "+", "@")) for row in rows for cell in (*row, *row.values()))
    assert float(rows[0]["score"]) == 1.0


def test_a_carriage_return_is_no_new_row(tmp_path: Path) -> None:
    """Cells with any line break are quoted, so that no row begins within a cell; rows end in a line feed."""
    items = [{"id": f"a{end}=1+1", "submission": "Yes."} for end in ("\r", "\n", "\r\n")]
    rubric = [{"name": "short\r=2", "requirement": "It is short."}]
    grader = CriterionGrader(judges=[judge])
    dataset = RubricDataset(rubric=rubric, items=[{**one, "ground_truth": ["MET"]} for one in items])
    run = evaluate_sync(dataset, grader, experiments_dir=tmp_path, show_progress=False)
    run.compute_metrics().to_file(tmp_path / "metrics.csv")
    metrics = (tmp_path / "metrics.csv").read_bytes()
    for text in (run.export("csv"), run.export("csv", table="votes"), metrics):
        rows = list(csv.reader(io.StringIO(text.decode("utf-8"), newline="")))
        assert {len(row) for row in rows} == {len(rows[0])}
        assert not any(row[0].startswith("=") for row in rows)
        assert text.endswith(b"\n") and not text.endswith(b"\r\n")
    scores = csv.DictReader(io.StringIO(run.export("csv").decode("utf-8"), newline=""))
    assert [row["item_id"] for row in scores] == [one["id"] for one in items]


@pytest.mark.parametrize("table", ["scores", "votes"])
def test_json_lines_hold_the_table(result: EvalResult, table: Any) -> None:
    """Every row of the table is a line, missing cells null."""
    rows = [
        json.loads(line, parse_constant=pytest.fail)
        for line in result.export("jsonl", table=table).splitlines()
    ]
    frame = result.scores_table() if table == "scores" else result.votes_table()
    assert len(rows) == len(frame)
    assert list(rows[0]) == list(frame.columns)
    assert [row["item_id"] for row in rows] == list(frame["item_id"])


CELLS = {
    "str": st.sampled_from(["a", "=1", "\u2028", "null", "", None]),
    "object": st.sampled_from(["a", "=1", 1, 1.0, True, -0.0, None, [1, "b"], LONE]),
    "int64": st.integers(-3, 3),
    "Int64": st.none() | st.integers(-3, 3),
    "bool": st.booleans(),
    "float64": st.floats(allow_infinity=False),
}


@given(st.data(), st.integers(0, 5), st.lists(st.sampled_from(list(CELLS)), min_size=1, max_size=4))
def test_each_cell_is_what_it_is_alone(data: st.DataObject, size: int, kinds: list[str]) -> None:
    """Equal cells are converted together, but as they would be one by one."""
    columns = {
        f"{at} {kind}": pd.Series(data.draw(st.lists(CELLS[kind], min_size=size, max_size=size)), dtype=kind)
        for at, kind in enumerate(kinds)
    }
    frame = pd.DataFrame(columns)
    there = frame.notna()
    rows = [
        {
            name: None if not there[name].iloc[at] else getattr(cell, "item", lambda cell=cell: cell)()
            for name in frame
            for cell in [frame[name].iloc[at]]
        }
        for at in range(size)
    ]
    assert _lines(frame).decode("ascii") == "".join(f"{json.dumps(row)}\n" for row in rows)


@pytest.mark.parametrize("table", ["scores", "votes"])
def test_parquet_holds_the_table(result: EvalResult, table: Any) -> None:
    """It comes back with the same numbers."""
    frame = result.scores_table() if table == "scores" else result.votes_table()
    back = pd.read_parquet(io.BytesIO(result.export("parquet", table=table)))
    assert list(back.columns) == list(frame.columns)
    column = "score" if table == "scores" else "value"
    assert back[column].tolist() == pytest.approx(frame[column].tolist(), nan_ok=True)


def test_markdown_marks_nothing_up(result: EvalResult) -> None:
    """Every row has as many cells as its head, and texts bring no markup and no control characters."""
    text = result.export("markdown").decode("utf-8")
    assert r"a\|b" in text
    assert r"\\x01\<c\>" in text
    assert "\x01" not in text
    for block in text.split("\n\n"):
        rows = [line.replace(r"\|", "") for line in block.splitlines() if line.startswith("|")]
        assert len({row.count("|") for row in rows}) <= 1


def test_junit(result: EvalResult) -> None:
    """Items are cases; one without a score is an error, one below the bound a failure with its criteria."""
    root = ElementTree.fromstring(result.export("junit", fail_under=0.5))
    suite = root.find("testsuite")
    assert suite is not None
    assert (suite.get("name"), suite.get("tests"), suite.get("failures"), suite.get("errors")) == (
        "r1",
        "4",
        "2",
        "1",
    )
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    assert set(cases) == {"a|b", "=SUM(A1)", "\ufffd<c>", "none"}
    failure = cases["=SUM(A1)"].find("failure")
    assert failure is not None
    assert "0.125 is below 0.5" in (failure.get("message") or "")
    assert "=short (weight 3): UNMET: & so on" in (failure.text or "")
    assert cases["\ufffd<c>"].find("failure") is None
    assert cases["\ufffd<c>"].find("error") is not None
    told = {one.get("name"): one.get("value") for one in cases["a|b"].iter("property")}
    assert (told["score"], told["answer.=short"]) == ("1", "MET")


def test_junit_without_a_bound_has_no_failures(result: EvalResult) -> None:
    """Low scores alone fail nothing."""
    assert b'failures="0"' in result.export("junit")


@pytest.mark.parametrize(
    ("limits", "errors"),
    [({}, 0), ({"fail_under": 0.0}, 1), ({"max_lost": 0.05}, 1), ({"fail_under": 0.0, "max_lost": 0.5}, 0)],
)
def test_lost_verdicts_of_a_case(limits: dict[str, Any], errors: int, tmp_path: Path) -> None:
    """One of two verdicts is lost; with either option, the limit applies."""

    def partly(request: JudgeRequest) -> Any:
        return 7 if request.criterion.name == "stars" else "no such word"

    dataset = RubricDataset(rubric=RUBRIC, items=[{"id": "a", "submission": "Yes."}])
    grader = CriterionGrader(judges=[partly], on_failure="exclude")
    run = evaluate_sync(dataset, grader, experiments_dir=tmp_path, show_progress=False)
    assert run.item_results[0].report is not None and run.item_results[0].report.score is not None
    root = ElementTree.fromstring(run.export("junit", **limits))
    assert root.get("errors") == str(errors)


def test_an_abstention_is_missing_in_tables_and_told_in_words(tmp_path: Path) -> None:
    """Frames and their files have no answer where the panel abstained; JUnit says that it did."""

    def unsure(request: JudgeRequest) -> Any:
        return 7 if request.criterion.name == "stars" else "CANNOT_ASSESS"

    given: list[dict[str, Any]] = [{"id": "a", "submission": "Yes."}]
    dataset = RubricDataset(rubric=RUBRIC, items=given)
    grader = CriterionGrader(judges=[unsure])
    run = evaluate_sync(dataset, grader, experiments_dir=tmp_path, experiment_name="run", show_progress=False)
    assert run.item_results[0].report is not None
    assert [one.status for one in run.item_results[0].report.report] == ["abstained", "answered"]
    row = run.scores_table().iloc[0]
    assert pd.isna(row["answer.=short"]) and row["answer.stars"] == "7.0"
    assert json.loads(run.export("jsonl"))["answer.=short"] is None
    assert next(csv.DictReader(io.StringIO(run.export("csv").decode("utf-8"))))["answer.=short"] == ""
    assert pd.read_parquet(io.BytesIO(run.export("parquet")))["answer.=short"].isna().all()
    suite = ElementTree.fromstring(run.export("junit", fail_under=1.0))
    told = {one.get("name"): one.get("value") for one in suite.iter("property")}
    assert (told["answer.=short"], told["answer.stars"]) == ("abstained", "7.0")
    failure = next(suite.iter("failure")).text or ""
    assert "=short (weight 3): abstained" in failure


@pytest.mark.parametrize("asked", [{"format": "xml"}, {"format": "csv", "table": "items"}])
def test_what_cannot_be_exported(result: EvalResult, asked: dict[str, Any]) -> None:
    """What is not a format or table is refused with those that are."""
    with pytest.raises(ArgumentError, match=r"allowed|did you mean"):
        result.export(**asked)


def test_notices_are_a_list_in_markdown(tmp_path: Path) -> None:
    """Each notice of a run is an entry of a list."""
    dataset = RubricDataset(rubric=RUBRIC, items=[{"id": "a", "submission": "Yes."}])
    grader = CriterionGrader(judges=[other])
    result = evaluate_sync(dataset, grader, experiments_dir=tmp_path, show_progress=False)
    text = replace(result, notices=("First.", "Second.")).export("markdown").decode("utf-8")
    assert "## Notices\n\n- First\\.\n- Second" in text or "## Notices\n\n- First.\n- Second." in text
