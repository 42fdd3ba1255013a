"""The command line's page in the documentation shows the help as it is."""

from __future__ import annotations

import os
from pathlib import Path

from tests.cli.test_help import COMMANDS, GOLDEN

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md"

HEAD = """# Command line

Results go to standard output, notices and progress to standard error. With `--json` standard output is one
JSON object whose keys are stable. Exit codes: 0 done, 1 quality below `--fail-under`, 2 a faulty command line
or file, 3 could not be judged, or more verdicts are missing than `--max-lost` allows
([how they are counted](../explanation/when-things-fail.md)), 130 stopped (and can be resumed), 143 stopped
by SIGTERM.

A judge is named by a model's name, `lexical`, `supervised:TRAIN` or `recorded:CSV#RATER`; `--judge` repeats
for a panel.
"""


def _page() -> str:
    parts = [HEAD]
    for command in COMMANDS:
        name = command.replace(" ", "_") or "autorubric"
        text = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8").rstrip()
        parts.append(f"## autorubric {command}".rstrip() + f"\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


def test_the_page_shows_the_help_of_every_command() -> None:
    """The page is made of the golden help; AUTORUBRIC_UPDATE_GOLDEN=1 writes it anew."""
    if os.environ.get("AUTORUBRIC_UPDATE_GOLDEN"):
        PAGE.write_text(_page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == _page()


def test_every_command_is_on_the_page() -> None:
    """No golden help is left out of the page."""
    there = {path.stem for path in GOLDEN.glob("*.txt")} - {"typer-version"}
    assert there == {command.replace(" ", "_") or "autorubric" for command in COMMANDS}
