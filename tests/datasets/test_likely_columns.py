"""Tables with columns of any name: which are recognised, and what becomes of the others."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from autorubric import Rubric, RubricDataset
from autorubric.errors import DatasetError

RUBRIC = Rubric(
    [{"name": "polite", "requirement": "It is polite."}, {"name": "Is clear", "requirement": "Clear."}]
)


def _csv(folder: Path, text: str) -> RubricDataset:
    path = folder / "rows.csv"
    path.write_text(text, encoding="utf-8")
    return RubricDataset.from_file(path, rubric=RUBRIC)


@pytest.mark.parametrize(
    "name", ["submission", "text", "response", "output", "answer", "completion", "Model Output"]
)
def test_likely_names_of_the_submission(name: str, tmp_path: Path) -> None:
    """Other columns are kept as metadata."""
    dataset = _csv(tmp_path, f"channel,{name}\nmail,Hello\nchat,Hi\n")
    assert [item.submission for item in dataset] == ["Hello", "Hi"]
    assert [item.metadata for item in dataset] == [{"channel": "mail"}, {"channel": "chat"}]


@pytest.mark.parametrize("name", ["question", "input", "query", "instruction"])
def test_likely_names_of_the_prompt(name: str, tmp_path: Path) -> None:
    """They are recognised beside the submission."""
    dataset = _csv(tmp_path, f"{name},response\nWhere?,Here\n")
    assert (dataset[0].prompt, dataset[0].submission) == ("Where?", "Here")
    assert dataset.field_map == {"submission": "response", "prompt": name}


@pytest.mark.parametrize(
    ("columns", "chosen"),
    [
        (
            "question,bot_response,reference_response",
            "submission=bot_response prompt=question reference=reference_response",
        ),
        ("prompt,expected_output,reply", "submission=reply reference=expected_output"),
        (
            "input,actual_output,expected_output",
            "submission=actual_output prompt=input reference=expected_output",
        ),
        ("student_answer,expected_answer", "submission=student_answer reference=expected_answer"),
        ("Model Answer,Reference Answer", "submission=Model Answer reference=Reference Answer"),
        ("model-answer,student answer", "submission=student answer reference=model-answer"),
        ("Response Text,Gold  Summary", "submission=Response Text reference=Gold  Summary"),
        ("essay_id,full_text", "submission=full_text"),
        ("user,assistant", "submission=assistant prompt=user"),
        ("user,response", "submission=response"),
        ("response,response text,target_audience", "submission=response"),
        ("query,answer,ground_truth", "submission=answer prompt=query reference=ground_truth"),
        (
            "input,actualOutput,expectedOutput",
            "submission=actualOutput prompt=input reference=expectedOutput",
        ),
        (
            "userInput,modelresponse,ExpectedOutput",
            "submission=modelresponse prompt=userInput reference=ExpectedOutput",
        ),
        ("INPUT,OUTPUT,EXPECTEDOUTPUT", "submission=OUTPUT prompt=INPUT reference=EXPECTEDOUTPUT"),
        ("question,__expected,response", "submission=response prompt=question"),
        ("__expected1,response,re\u200bference", "submission=response reference=re\u200bference"),
    ],
)
def test_texts_and_references_are_told_apart(columns: str, chosen: str, tmp_path: Path) -> None:
    """A column named like a reference is never graded; case, blanks, hyphens and `_` do not count."""
    dataset = _csv(tmp_path, f"{columns}\n{','.join('abc'[: columns.count(',') + 1])}\n")
    expected = dict(one.split("=") for one in re.split(r" (?=\w+=)", chosen))
    assert {k: v for k, v in (dataset.field_map or {}).items() if k != "id"} == expected


@pytest.mark.parametrize(
    ("columns", "candidates"),
    [
        ("question,reference_response", ""),
        ("prompt,expected_output", ""),
        ("question,model_answer", ""),
        ("gold,target_text,ideal", ""),
        ("student_answer,grader_response", "Candidates: student_answer, grader_response. "),
        ("text,bot_reply", "Candidates: bot_reply, text. "),
        ("Response,response", "Candidates: Response, response. "),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_unclear_columns_are_not_graded(columns: str, candidates: str, suffix: str, tmp_path: Path) -> None:
    """The error lists the candidates and the option."""
    names = columns.split(",")
    path = tmp_path / f"rows.{suffix}"
    row = dict(zip(names, "abc", strict=False))
    path.write_text(
        json.dumps([row]) if suffix == "json" else f"{columns}\n{','.join(row.values())}\n", "utf-8"
    )
    said = f"'submission' not found. {candidates}Columns: {', '.join(names)}. Use --submission NAME"
    with pytest.raises(DatasetError, match=re.escape(said)):
        RubricDataset.from_file(path, rubric=RUBRIC)


def test_ground_truth_is_a_reference_unless_it_holds_labels(tmp_path: Path) -> None:
    """Labels are not sent to the judge."""
    assert _csv(tmp_path, "text,ground_truth\na,yes\nb,no\n").field_map == {"submission": "text"}


def test_the_more_likely_of_two_columns_is_the_submission(tmp_path: Path) -> None:
    """An answer beside a response may be the reference: it becomes neither."""
    dataset = _csv(tmp_path, "question,answer,response\nWhere?,There,Here\n")
    assert dataset[0].submission == "Here"
    assert dataset[0].reference_submission is None
    assert dataset[0].metadata == {"answer": "There"}


def test_the_last_word_of_a_name_counts_where_it_is_the_only_one(tmp_path: Path) -> None:
    """Two such columns are not chosen between."""
    dataset = _csv(tmp_path, "customer_question,bot_reply\nWhere?,Here\n")
    assert dataset.field_map == {"submission": "bot_reply", "prompt": "customer_question"}
    with pytest.raises(DatasetError, match=r"Columns: old_reply, new_reply\. Use --submission NAME"):
        _csv(tmp_path, "old_reply,new_reply\na,b\n")


def test_ids_are_recognised_where_they_are_unique(tmp_path: Path) -> None:
    """A column with a repeated cell is metadata."""
    unique = _csv(tmp_path, "item_id,text\na,x\nb,y\n")
    assert [unique.item_id(i) for i in range(2)] == ["a", "b"]
    repeated = _csv(tmp_path, "item_id,text\na,x\na,y\n")
    assert [repeated.item_id(i) for i in range(2)] == ["0", "1"]
    assert repeated[1].metadata == {"item_id": "a"}


@pytest.mark.parametrize(
    ("columns", "chosen"),
    [
        ("conversation_id", "conversation_id"),
        ("ticketId", "ticketId"),
        ("conversation_id,message_id", "message_id"),
        ("twice_id,conversation_id", "conversation_id"),
        ("case id", "case id"),
        ("essay_id", "essay_id"),
        ("annotator_id", None),
        ("left_id,right_id", None),
        ("twice_id", None),
    ],
)
def test_unique_columns_of_ids_are_ids(columns: str, chosen: str | None, tmp_path: Path) -> None:
    """The most specific one whose cells differ, and never a column of people."""
    names = columns.split(",")
    rows = [[f"{'same' if name == 'twice_id' else at}" for name in names] for at in ("a", "b")]
    lines = [f"{columns},text", *(",".join([*row, "x"]) for row in rows)]
    dataset = _csv(tmp_path, "\n".join(lines) + "\n")
    assert (dataset.field_map or {}).get("id") == chosen
    assert list(dataset.item_ids()) == (["a", "b"] if chosen else ["0", "1"])


@pytest.mark.parametrize(
    "column",
    [
        "polite",
        "human_polite",
        "label_polite",
        "Polite_truth",
        "truth.polite",
        "humanPolite",
        "po\u200blite",
        "truth.Polite ",
    ],
)
def test_columns_named_after_a_criterion_are_labels(column: str, tmp_path: Path) -> None:
    """With a rubric, which says what the criteria are called."""
    dataset = _csv(tmp_path, f"text,{column}\nThanks,MET\nNo,UNMET\n")
    assert [item.ground_truth for item in dataset] == [{"polite": "MET"}, {"polite": "UNMET"}]


def test_a_criterion_of_several_words_is_found(tmp_path: Path) -> None:
    """Blanks, hyphens and case do not count."""
    dataset = _csv(tmp_path, "text,is-clear\nThanks,yes\n")
    assert dataset[0].ground_truth == {"Is clear": "yes"}


@pytest.mark.parametrize(("yes", "no"), [("y", "N"), ("T", "f"), ("Pass", "fail"), ("1", "0")])
def test_spellings_of_verdicts(yes: str, no: str, tmp_path: Path) -> None:
    """In any case of letters."""
    dataset = _csv(tmp_path, f"text,polite\nThanks,{yes}\nNo,{no}\n")
    criterion = RUBRIC.by_name("polite")
    answers = [criterion.parse_truth((dataset.item_truth(at) or {})["polite"]) for at in range(2)]
    assert [answer and answer.code for answer in answers] == ["MET", "UNMET"]


def test_labels_that_cannot_be_read_are_an_error(tmp_path: Path) -> None:
    """They are not kept as metadata in silence."""
    with pytest.raises(DatasetError, match="'perhaps' is not a verdict"):
        _csv(tmp_path, "text,polite\nThanks,perhaps\n")


def test_a_named_column_comes_before_a_likely_one(tmp_path: Path) -> None:
    """The caller's word counts, and the rest is still recognised."""
    path = tmp_path / "rows.csv"
    path.write_text("question,response,draft\nq,a,b\n", encoding="utf-8")
    dataset = RubricDataset.from_file(path, rubric=RUBRIC, submission="draft")
    assert (dataset[0].submission, dataset[0].prompt) == ("b", "q")
    assert dataset[0].metadata == {"response": "a"}


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_recognised(delimiter: str, tmp_path: Path) -> None:
    """Also where cells hold the other delimiters."""
    cells = ['"one, two; three"', "x"]
    text = "\n".join(delimiter.join(row) for row in (["text", "note"], cells, cells))
    dataset = _csv(tmp_path, text + "\n")
    assert dataset[0].submission == "one, two; three"
    assert dataset[0].metadata == {"note": "x"}


def test_a_comma_in_a_head_of_semicolons(tmp_path: Path) -> None:
    """The delimiter divides every row into equally many cells."""
    dataset = _csv(tmp_path, "text;note, long;year\nHello, you;x;1\nBye;y, z;2\n")
    assert dataset[0].metadata == {"note, long": "x", "year": "1"}


@pytest.mark.parametrize("suffix", ["json", "jsonl", "parquet"])
def test_other_formats_are_recognised_too(suffix: str, tmp_path: Path) -> None:
    """Rows of JSON and Parquet, also streamed."""
    rows = [{"question": "q", "response": "a", "run": 1}, {"question": "q", "response": "b", "run": 2}]
    path = tmp_path / f"rows.{suffix}"
    if suffix == "parquet":
        pd.DataFrame(rows).to_parquet(path)
        streamed = RubricDataset.stream(path, rubric=RUBRIC)
        assert [item.submission for item in streamed] == ["a", "b"]
    else:
        text = json.dumps(rows) if suffix == "json" else "\n".join(map(json.dumps, rows))
        path.write_text(text, encoding="utf-8")
    dataset = RubricDataset.from_file(path, rubric=RUBRIC)
    assert [(item.prompt, item.submission) for item in dataset] == [("q", "a"), ("q", "b")]
    assert dataset[1].metadata == {"run": 2}


def test_a_table_of_the_format_has_no_field_map(tmp_path: Path) -> None:
    """Nothing was chosen."""
    assert _csv(tmp_path, "id,submission,truth.polite\na,x,MET\n").field_map is None


@pytest.mark.parametrize("name", ["summary", "answer", "reference", "task"])
def test_a_criterion_with_the_name_of_a_text_has_its_labels_in_that_column(name: str, tmp_path: Path) -> None:
    """They are never graded or sent to a judge; a column of texts of that name is one of texts."""
    path = tmp_path / "rows.csv"
    rubric = Rubric([{"name": name, "requirement": "Good."}])
    path.write_text(f"reply,{name}\nOne.,yes\nTwo.,\nThree.,UNMET\n", encoding="utf-8")
    dataset = RubricDataset.from_file(path, rubric=rubric)
    assert dataset.field_map == {"submission": "reply", "truth": {name: name}}
    assert [dataset.item_truth(at) is not None for at in range(3)] == [True, False, True]
    path.write_text(f"reply,{name}\nOne.,a text\nTwo.,yes\n", encoding="utf-8")
    texts = RubricDataset.from_file(path, rubric=rubric)
    assert "truth" not in (texts.field_map or {})


@pytest.mark.parametrize("name", ["gold", "expected", "reference", "question", "text"])
def test_a_column_of_verdicts_is_never_a_text(name: str, tmp_path: Path) -> None:
    """It becomes metadata, since nobody says of which criterion."""
    dataset = _csv(tmp_path, f"response,{name}\nHello,MET\nHi,UNMET\n")
    assert dataset.field_map == {"submission": "response"}
    assert dataset[0].metadata == {name: "MET"}


def test_ids_in_capitals_and_columns_without_a_name(tmp_path: Path) -> None:
    """A table as Excel saves it: its ids are the items', and the nameless column is metadata."""
    dataset = _csv(tmp_path, "ID,Reply,\n7,Hello,x\n8,Hi,\n")
    assert list(dataset.item_ids()) == ["7", "8"]
    assert dataset[0].metadata == {"column 3": "x"}


def test_names_that_are_a_last_resort(tmp_path: Path) -> None:
    """A comment beside a reply is metadata."""
    assert _csv(tmp_path, "diff,comment\na,b\n").field_map == {"prompt": "diff", "submission": "comment"}
    assert _csv(tmp_path, "Bot said,comment\na,b\n").field_map == {"submission": "Bot said"}
    assert _csv(tmp_path, "bot_reply,comment\na,b\n")[0].metadata == {"comment": "b"}


@pytest.mark.parametrize("line", ['{"id": 7, "submission": "a"}', '{"id": 7.0, "text": "a", "channel": "x"}'])
def test_a_numeric_id_is_text(line: str, tmp_path: Path) -> None:
    """With other columns and without."""
    file = tmp_path / "texts.jsonl"
    file.write_text(line + "\n", encoding="utf-8")
    rubric = Rubric([{"name": "polite", "requirement": "It is polite."}])
    assert list(RubricDataset.from_file(file, rubric=rubric).item_ids()) == ["7"]


_CRITERIA = {"name": "a", "text": "How deep?", "weight": 2}
_PROFBENCH = {
    "task_id": "1",
    "prompt": "p",
    "rubrics": [{"criterion_description": "x", "criterion_weight": "Major"}],
    "o3_response": "r",
    "o3_fulfilment": [True],
}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (_CRITERIA, "contains criteria, not items; pass it as the rubric"),
        ({"text": "How deep?", "choices": ["low", "high"]}, "criteria, not items.*--submission NAME"),
        ({"id": "a", "text": "How deep?", "points": 2}, "contains criteria, not items"),
        ({"text": "How deep?", "importance": "high"}, "contains criteria, not items"),
        ({"text": "How deep?", "weight": 1, "reasoning": "x"}, "contains criteria, not items"),
        ({"id": "1", "response": "x", "criteria": [{"name": "A"}]}, "would not be graded, under"),
        ({"name": "a", "text": "How deep?", "options": ["low", "high"]}, "contains criteria, not items"),
        ({"criterion": "a", "text": "How deep?", "weight": 2}, "contains criteria, not items"),
        ({**_PROFBENCH, "rubrics": json.dumps(_PROFBENCH["rubrics"])}, "would not be graded.*--submission"),
        (_PROFBENCH, "criteria that would not be graded, under .rubrics."),
        (
            {"id": "1", "response": "x", "rubric_items": [{"criterion": "A"}]},
            "criteria that would not be graded",
        ),
    ],
)
def test_criteria_and_rows_with_rubrics_are_no_plain_items(
    row: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """A file of another kind is refused, unless the caller names the columns."""
    path = tmp_path / "rows.jsonl"
    text = next(key for key in row if key in ("text", "response", "o3_response"))
    rows = [row] if "text" in row else [{"prompt": "p", text: "r"}, row]
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    with pytest.raises(DatasetError, match=message):
        RubricDataset.from_file(path)
    assert len(RubricDataset.from_file(path, submission=text)) == len(rows)
    table = pd.DataFrame(rows)
    with pytest.raises(DatasetError, match=message):
        RubricDataset.from_dataframe(table)


def test_rubrics_in_a_table_are_not_metadata(tmp_path: Path) -> None:
    """In tables, only the labels of a shared rubric are read."""
    row = [{"prompt": "p", "response": "r", "rubric": json.dumps([{"name": "A", "weight": 1}])}]
    pd.DataFrame(row).to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(DatasetError, match=r"would not be graded, .*in tables, 'rubric'; use"):
        RubricDataset.from_file(tmp_path / "rows.csv")
    assert len(RubricDataset.from_file(tmp_path / "rows.csv", submission="response")) == 1


def test_streamed_tables_have_the_same_ids(tmp_path: Path) -> None:
    """Only the column of ids is read to find out whether its cells differ."""
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"conversation_id": ["a", "b"], "twice_id": ["c", "c"], "response": ["x", "y"]})
    frame.to_parquet(tmp_path / "rows.parquet")
    streamed = RubricDataset.stream(tmp_path / "rows.parquet", rubric=RUBRIC)
    assert list(streamed.item_ids()) == ["a", "b"]
    assert list(RubricDataset.from_file(tmp_path / "rows.parquet", rubric=RUBRIC).item_ids()) == ["a", "b"]
