"""What `--help` says, pinned in files."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path

import pytest

from autorubric.cli.app import COMMANDS as APP_COMMANDS
from tests.ci import skip_but_in_ci
from tests.cli.conftest import Cli

GOLDEN = Path(__file__).parent / "golden"
COMMANDS = [
    "",
    "init",
    "grade",
    "eval",
    "merge",
    "show",
    "metrics",
    "compare",
    "pass-at-k",
    "score",
    "rejudge",
    "export",
    "annotate",
    "labels",
    "labels export",
    "labels merge",
    "judges",
    "judges compare",
    "judges audit",
    "report",
    "view",
    "redteam",
    "critique",
    "refine",
    "critique-text",
    "tools",
    "mcp",
    "validate",
    "schema",
    "demo",
    "cache",
    "cache stats",
    "cache clear",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_as_pinned(cli: Cli, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The help is what its golden file says; AUTORUBRIC_UPDATE_GOLDEN=1 writes the files anew."""
    made_with = GOLDEN / "typer-version.txt"
    update = bool(os.environ.get("AUTORUBRIC_UPDATE_GOLDEN"))
    if update:
        made_with.write_text(f"{version('typer')}\n", encoding="utf-8", newline="\n")
    elif made_with.read_text(encoding="utf-8").strip() != version("typer"):
        skip_but_in_ci(
            f"the layout of help is Typer's, and {version('typer')} is not the version of the files; "
            "AUTORUBRIC_UPDATE_GOLDEN=1 pytest tests/cli writes them anew"
        )
    monkeypatch.setenv("COLUMNS", "80")
    done = cli(*command.split(), "--help")
    assert done.code == 0
    path = GOLDEN / f"{command.replace(' ', '_') or 'autorubric'}.txt"
    if update:
        path.write_text(done.out, encoding="utf-8", newline="\n")
    assert done.out == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example(cli: Cli, command: str) -> None:
    """Every command's help shows how it is called, and fits into 80 columns."""
    shown = cli(*command.split(), "--help").out
    assert f"\n    autorubric {command}".rstrip() in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("name", APP_COMMANDS)
def test_summaries_are_those_of_the_commands(cli: Cli, name: str) -> None:
    """What `autorubric --help` shows without loading a command is the first sentence of its help."""
    usage, summary, *_ = cli(name, "--help").out.split("\n\n")
    assert usage == f"Usage: autorubric {name} {usage.partition(f' {name} ')[2]}"
    assert " ".join(summary.split()) == APP_COMMANDS[name][1]


def test_version_is_that_of_the_package(cli: Cli) -> None:
    """`--version` names the package and its version."""
    assert cli("--version").out == f"autorubric {version('autorubric')}\n"


def test_nothing_asked_shows_the_help(cli: Cli) -> None:
    """Without a command the help is shown."""
    done = cli()
    assert "Usage: autorubric" in done.out + done.err


@pytest.mark.parametrize(
    "arguments", [["nosuch"], ["grade", "--nosuch"], ["grade", "text"], ["eval", "--judge"]]
)
def test_usage_errors_exit_with_two(cli: Cli, arguments: list[str]) -> None:
    """A command line that Typer cannot read ends with 2 and says why on stderr."""
    done = cli(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "Error" in done.err
