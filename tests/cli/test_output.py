"""Exit codes, printable texts, JSON and tables."""

from __future__ import annotations

import io
import json
import sys
import warnings

import pytest
import typer

from autorubric.cli.app import Exit, guarded, tolerate_narrow_encodings
from autorubric.cli.gates import ScoreGate
from autorubric.cli.output import print_blocks, print_json
from autorubric.errors import (
    ArgumentError,
    ItemFailedError,
    JudgeError,
    MissingDependencyError,
    RunMismatchError,
)
from autorubric.support.blocks import (
    Block,
    ConfusionBlock,
    CurveBlock,
    ScalarBlock,
    TableBlock,
    TextBlock,
    printable,
)
from tests.cli.conftest import Cli


def failing(error: BaseException) -> int:
    """The exit code of a command that raises."""

    @guarded
    def command() -> Exit:
        raise error

    with pytest.raises(typer.Exit) as caught:
        command()
    return caught.value.exit_code


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (ArgumentError("wrong"), 2, "Error: wrong\n"),
        (MissingDependencyError("install it"), 2, "Error: install it\n"),
        (RunMismatchError("choose another experiment_name"), 2, "Error: choose another --name\n"),
        (ItemFailedError("an item failed"), 3, "Error: an item failed\n"),
        (JudgeError("no answer \x1b[0m"), 3, "Error: no answer \\x1b[0m\n"),
        (PermissionError(13, "Permission denied", "there"), 2, "Error: there: Permission denied\n"),
        (OSError("no space"), 2, "Error: no space\n"),
        (KeyboardInterrupt(), 130, "Stopped.\n"),
        (KeyboardInterrupt("Go on so."), 130, "Stopped. Go on so.\n"),
    ],
)
def test_errors_become_a_line_and_a_code(
    error: BaseException, code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every error that is meant for people ends in its code, with nothing on stdout."""
    assert failing(error) == code
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", told)


def test_a_bug_keeps_its_traceback() -> None:
    """An error that is not meant for people passes."""
    with pytest.raises(ZeroDivisionError):
        failing(ZeroDivisionError())


def test_warnings_are_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """A warning is shown without the place in the code that it comes from."""

    @guarded
    def command() -> Exit:
        warnings.simplefilter("always")
        warnings.warn("mind this", stacklevel=1)
        return Exit.DONE

    with pytest.raises(typer.Exit):
        command()
    assert capsys.readouterr().err == "Warning: mind this\n"


@pytest.mark.parametrize(
    ("score", "least", "code"),
    [(None, None, 3), (None, 0.5, 3), (0.5, None, 0), (0.5, 0.5, 0), (0.49, 0.5, 1), (0.0, 0.0, 0)],
)
def test_scores_come_to_codes(score: float | None, least: float | None, code: int) -> None:
    """No score is 3 whatever the least; a score at the least is enough."""
    assert ScoreGate(fail_under=least).exit_code(score) == code


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb\nc\r\nd", "a\tb\nc\nd"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\r\x08\x7f\x85", r"\r\x08\x7f\x85"),
        ("ok\u202etxt", r"ok\u202etxt"),
        ("half \ud83d", r"half \ud83d"),
        ("Grüße 👍", "Grüße 👍"),
    ],
)
def test_control_characters_are_written_out(text: str, shown: str) -> None:
    """What could move the cursor or turn the text round is shown as its escape."""
    assert printable(text) == shown


def test_json_is_ascii_without_nan(capsys: pytest.CaptureFixture[str]) -> None:
    """What is no finite number is null, on every level, and no byte depends on an encoding."""
    print_json({"a": float("nan"), "b": [float("inf"), {"c": (1, -0.5)}], "d": "ü\x9b", "e": None})
    out = capsys.readouterr().out
    assert out.isascii()
    assert json.loads(out) == {"a": None, "b": [None, {"c": [1, -0.5]}], "d": "ü\x9b", "e": None}


def test_a_narrow_encoding_is_tolerated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A character that stdout cannot encode is written out instead of raising."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    tolerate_narrow_encodings()
    print("–", flush=True)
    assert raw.getvalue().strip() == rb"\u2013"


WIDE = TableBlock(
    title="Wide",
    columns=("name", *(f"figure {number}" for number in range(12))),
    rows=(("one", *(number / 7 for number in range(12))), ("two", *([None] * 12))),
)
BLOCKS: list[Block] = [
    TextBlock(title="Text [bold]", text="a paragraph with [markup] and \x1b[31m"),
    ScalarBlock(title="Figures", figures=(("share", 0.5), ("none", None), ("on", True))),
    WIDE,
    TableBlock(columns=("key", "words"), rows=(("k", "word " * 60),)),
    ConfusionBlock(title="Pairs", labels=("yes", "no"), counts=((3, 1), (0, 2))),
    CurveBlock(title="Curve", x_label="x", y_label="y", points=((0.0, 0.25),)),
]


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_blocks_fit_the_width_and_lose_nothing(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the width, no line is longer, none ends in blanks, and no figure is cut."""
    monkeypatch.setenv("COLUMNS", str(columns))
    print_blocks(BLOCKS)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns
    assert all(line == line.rstrip() for line in lines)
    out = "\n".join(lines)
    for number in range(12):
        assert f"figure {number}" in out and f"{number / 7:.3f}" in out
    assert out.count("word") == 61
    assert "\x1b" not in out and "[markup]" in out and "[bold]" in out


def test_figures_stand_to_the_right_of_their_column(capsys: pytest.CaptureFixture[str]) -> None:
    """A confusion matrix has its counts under their labels."""
    print_blocks([ConfusionBlock(labels=("yes", "no"), counts=((3, 1), (0, 12)))])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split("  ")[0] == "truth \\ judge"
    assert lines[-1].split() == ["no", "0", "12"]


@pytest.mark.parametrize("bar", ["nan", "inf"])
def test_a_bar_that_is_no_number_is_refused(cli: Cli, bar: str) -> None:
    """A bar that nothing or everything would clear is a faulty command line."""
    assert cli("grade", "text", "--rubric", "r.yaml", "--judge", "lexical", "--fail-under", bar).code == 2


def test_verdicts_are_coloured_on_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Verdicts and failures have colours where colours are wanted, and the words are the same without."""
    rows = (("MET", "failed"), ("UNMET (tie)", "a text on MET"))
    block = TableBlock(columns=("verdict", "vote"), rows=rows)
    monkeypatch.setenv("FORCE_COLOR", "1")
    print_blocks([block])
    coloured = capsys.readouterr().out
    assert "\x1b[32mMET" in coloured and "\x1b[35mUNMET (tie)" in coloured and "\x1b[31mfailed" in coloured
    assert "\x1b[32ma text on MET" not in coloured
    monkeypatch.delenv("FORCE_COLOR")
    monkeypatch.setenv("NO_COLOR", "1")
    print_blocks([block])
    plain = capsys.readouterr().out
    assert "\x1b" not in plain and "UNMET (tie)" in plain
