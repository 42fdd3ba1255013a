"""A CSV of anyone's making on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autorubric import RubricDataset
from tests.cli.conftest import Cli

ROWS = """\
ticket;asked;bot text;mood;right
T1;Capital?;Paris is the capital of France.;glad;MET
T2;Capital?;Lyon.;sad;UNMET
"""
NAMED = ("--submission", "bot text", "--prompt", "asked", "--id", "ticket", "--truth", "capital=right")
CHOSEN = "columns: id=ticket, submission=bot text, prompt=asked, truth capital=right; metadata: mood"


@pytest.fixture
def table(cli: Cli, rubric: str) -> str:
    """A table whose columns are not recognised."""
    Path("rows.csv").write_text(ROWS, encoding="utf-8")
    return "rows.csv"


def test_an_unknown_table_says_which_option_to_use(cli: Cli, table: str, rubric: str) -> None:
    """One message with the columns."""
    failed = cli("eval", table, "--rubric", rubric, "--judge", "lexical")
    assert failed.code == 2
    assert "Columns: ticket, asked, bot text, mood, right. Use --submission NAME" in failed.err


def test_eval_takes_the_named_columns(cli: Cli, table: str, rubric: str) -> None:
    """The choice is printed, and the run folder holds the items in the dataset format."""
    done = cli("eval", table, "--rubric", rubric, "--judge", "lexical", "--name", "one", *NAMED)
    assert done.code == 0
    assert CHOSEN in done.err
    lines = Path("experiments/one/dataset.jsonl").read_text(encoding="utf-8").splitlines()
    first = json.loads(lines[1])
    assert (first["id"], first["submission"], first["prompt"]) == (
        "T1",
        "Paris is the capital of France.",
        "Capital?",
    )
    assert first["metadata"] == {"mood": "glad"}
    assert first["ground_truth"] == {"capital": "MET"}


def test_only_the_named_metadata_is_kept(cli: Cli, table: str, rubric: str) -> None:
    """With --meta the other columns are left out."""
    done = cli(
        "eval",
        table,
        "--rubric",
        rubric,
        "--judge",
        "lexical",
        "--name",
        "one",
        "--submission",
        "bot text",
        "--meta",
        "mood",
    )
    assert done.code == 0
    assert done.err.splitlines()[0] == "columns: submission=bot text; metadata: mood"


@pytest.mark.parametrize(
    "command",
    [
        ("validate", "rows.csv"),
        ("annotate", "rows.csv", "-o", "page.html"),
        ("redteam", "rows.csv", "--judge", "lexical", "--attacks", "roles"),
    ],
)
def test_other_commands_take_the_named_columns(
    cli: Cli, table: str, rubric: str, command: tuple[str, ...]
) -> None:
    """The same options, the same line."""
    done = cli(*command, "--rubric", rubric, *NAMED)
    assert done.code == 0
    assert CHOSEN in done.err


def test_columns_of_the_dataset_format_are_printed_too(cli: Cli, rubric: str) -> None:
    """All that is read is on one line, of a table and of rows with keys of their own."""
    head, row = "prompt,submission,id,truth.capital,meta.k,mood", "q,Paris.,7,MET,v,glad"
    told = (
        "columns: id=id, submission=submission, prompt=prompt, truth capital=truth.capital; metadata: meta.k"
    )
    for columns, line in ((5, told), (6, f"{told}, mood")):
        text = "\n".join(",".join(one.split(",")[:columns]) for one in (head, row))
        Path("own.csv").write_text(text, encoding="utf-8")
        assert cli("validate", "own.csv", "--rubric", rubric).err.splitlines()[0] == line
    Path("own.jsonl").write_text('{"id": "a", "submission": "x", "question": "q"}', encoding="utf-8")
    done = cli("validate", "own.jsonl", "--rubric", rubric)
    assert done.err.splitlines()[0] == "columns: id=id, submission=submission, prompt=question"


@pytest.mark.parametrize(
    "command",
    [
        ("eval", "rows.tsv", "--judge", "lexical", "--name", "one"),
        ("validate", "rows.tsv"),
        ("annotate", "rows.tsv", "-o", "page.html"),
        ("redteam", "rows.tsv", "--judge", "lexical", "--attacks", "roles"),
        ("grade", "--file", "rows.tsv", "--judge", "lexical", "--item-id", "T1"),
    ],
)
def test_all_commands_read_tables_of_tabs(cli: Cli, rubric: str, command: tuple[str, ...]) -> None:
    """With the same six options, and with warnings as plain notices."""
    text = ROWS.replace(";", "\t").replace("mood", "é").encode("cp1252")
    Path("rows.tsv").write_bytes(text)
    done = cli(*command, "--rubric", rubric, *NAMED, "--reference", "é", "--meta", "é")
    assert done.code == 0, done.err
    assert "Warning: rows.tsv (line 1): byte 0xe9 is not UTF-8" in done.err
    assert "reference=é" in done.err


def test_grade_keeps_labels_and_metadata(cli: Cli, table: str, rubric: str) -> None:
    """Of the row that is graded; a file of text has no columns."""
    call = ("--rubric", rubric, "--judge", "lexical")
    done = cli("grade", "--file", table, *call, *NAMED, "--item-id", "T1")
    assert done.err.splitlines()[-1] == "labels: capital=MET"
    kept = cli("grade", "--file", table, *call, *NAMED, "--meta", "mood", "--item-id", "T1", "--json").json
    assert (kept["truth"], kept["metadata"]) == ({"capital": "MET"}, {"mood": "glad"})
    Path("rows.txt").write_text(ROWS, encoding="utf-8")
    refused = cli("grade", "--file", "rows.txt", *call, "--truth", "capital=right")
    assert refused.code == 2
    assert "pass a table with --file (.jsonl, .csv, .tsv, .parquet)" in refused.err


def test_grade_takes_one_row_of_a_table(cli: Cli, table: str, rubric: str) -> None:
    """Several rows are for eval, unless one is named."""
    call = ("grade", "--file", table, "--rubric", rubric, "--judge", "lexical", "--submission", "bot text")
    refused = cli(*call)
    assert refused.code == 2
    assert "has 2 rows, but grade takes one text" in refused.err
    one = cli(*call, "--id", "ticket", "--item-id", "T1", "--json")
    assert one.code == 0
    assert one.json["score"] > cli(*call, "--id", "ticket", "--item-id", "T2", "--json").json["score"]


@pytest.mark.parametrize("given", ["capital", "=right", "capital="])
def test_truth_needs_a_criterion_and_a_column(cli: Cli, table: str, rubric: str, given: str) -> None:
    """The form is shown."""
    failed = cli("validate", table, "--rubric", rubric, "--truth", given)
    assert failed.code == 2
    assert "--truth must be CRITERION=COL" in failed.err


def test_a_file_of_rows_is_streamed_only_in_the_dataset_format(cli: Cli, rubric: str, tmp_path: Path) -> None:
    """JSON lines with keys of their own are read at once, and recognised."""
    rows = [{"question": "q", "response": "Paris is the capital of France.", "run": n} for n in range(3)]
    Path("rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    done = cli("eval", "rows.jsonl", "--rubric", rubric, "--judge", "lexical", "--name", "one")
    assert done.code == 0
    assert "columns: submission=response, prompt=question" in done.err
    stored = RubricDataset.from_file("experiments/one/dataset.jsonl")
    assert stored[2].metadata == {"run": 2}
