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
