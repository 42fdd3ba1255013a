"""`autorubric report`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli


@pytest.fixture
def run(cli: Cli, dataset: str, votes: str) -> str:
    """A run of two recorded judges."""
    judges = ("--judge", f"recorded:{votes}#right", "--judge", f"recorded:{votes}#wrong")
    assert cli("eval", dataset, *judges, "--name", "two").code == 0
    return "experiments/two"


def test_a_report_is_written(cli: Cli, run: str, dataset: str, votes: str) -> None:
    """The file is where it was asked for, and its path is what is printed."""
    assert cli("eval", dataset, "--judge", f"recorded:{votes}#wrong", "--name", "one").code == 0
    done = cli("report", run, "--baseline", "experiments/one", "-o", "two.html")
    assert (done.code, done.out) == (0, "two.html\n")
    page = Path("two.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert '"name":"one"' in page
    told = cli("report", run, "--json").json
    assert told["bytes"] == Path("report.html").stat().st_size
    assert (told["run"], told["baseline"], told["report"]) == (run, None, "report.html")


def test_texts_can_be_left_out(cli: Cli, run: str) -> None:
    """`--max-chars 0` keeps the texts out of the file."""
    assert cli("report", run, "--max-chars", "0").code == 0
    page = Path("report.html").read_text(encoding="utf-8")
    assert "Submission" in page
    assert "Paris is the capital" not in page


def test_a_critique_becomes_a_section(cli: Cli, run: str) -> None:
    """What `critique-text --json` printed is shown; anything else is refused with what to give."""
    Path("critique.json").write_text(
        json.dumps({"ok": True, "summary": "Short and right."}), encoding="utf-8"
    )
    assert cli("report", run, "--critique", "critique.json").code == 0
    assert "Short and right." in Path("report.html").read_text(encoding="utf-8")
    Path("critique.json").write_text("[1]", encoding="utf-8")
    done = cli("report", run, "--critique", "critique.json")
    assert (done.code, done.out) == (2, "")
    assert "critique-text --json" in done.err


def test_a_folder_that_is_no_run_is_refused(cli: Cli) -> None:
    """A missing run ends with 2 and writes nothing."""
    done = cli("report", "nowhere")
    assert done.code == 2
    assert not Path("report.html").exists()
