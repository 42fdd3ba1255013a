"""The `autorubric init` command."""

from __future__ import annotations

import os
import shlex
import string
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final

import typer

from autorubric.cli.output import Exit, notice, report_errors
from autorubric.errors import ArgumentError


class Template(StrEnum):
    """A set of starter files: a rubric, a run file and sample data."""

    support_reply = "support-reply"
    rag_faithfulness = "rag-faithfulness"
    summary = "summary"
    essay = "essay"
    code_review = "code-review"
    agent_run = "agent-run"


_COLUMNS: Final = {
    Template.support_reply: ("reply", "question"),
    Template.rag_faithfulness: ("answer", "question"),
    Template.summary: ("summary", "document"),
    Template.essay: ("essay", "task"),
    Template.code_review: ("comment", "diff"),
    Template.agent_run: ("transcript", "task"),
}
"""Columns of the submission and the prompt in the sample data."""

Folder = Annotated[
    Path,
    typer.Argument(
        metavar="[DIR]",
        help="Folder to write to; created if missing.  [default: the working directory]",
        show_default=False,
    ),
]
TemplateName = Annotated[
    Template, typer.Option("--template", metavar="NAME", help=f"Template: {', '.join(Template)}.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]


@report_errors
def init(
    folder: Folder = Path(), template: TemplateName = Template.support_reply, force: Force = False
) -> Exit:
    """Write a rubric, a run file and sample data as a starting point.

    Writes rubric.yaml, autorubric.yaml, and data.csv with ten texts and human labels. The run file names a
    model: set its API key in the environment, or name another model.

    \b
    Examples:
      autorubric init
      autorubric init grading --template essay

    Exit codes: 0 success, 2 a file already exists, or invalid command line.
    """
    from autorubric.support.write import write_text_atomic

    source = files("autorubric") / "templates"
    submission, prompt = _COLUMNS[template]
    run_file = string.Template((source / "autorubric.yaml").read_text(encoding="utf-8"))
    texts = {
        "rubric.yaml": (source / template / "rubric.yaml").read_text(encoding="utf-8"),
        "autorubric.yaml": run_file.substitute(submission=submission, prompt=prompt),
        "data.csv": (source / template / "data.csv").read_text(encoding="utf-8"),
    }
    where = "the current folder" if folder == Path() else folder
    there = [name for name in texts if os.path.lexists(folder / name)]
    if there and not force:
        raise ArgumentError(
            f"{where} already contains {', '.join(there)}; choose another folder, or pass --force to replace"
        )
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write_text_atomic(folder / name, text)
    notice(f"Wrote {', '.join(texts)} to {where}.")
    into = "" if folder == Path() else f"cd {shlex.quote(str(folder))} && "
    notice(f"Next: {into}export OPENAI_API_KEY=… && autorubric eval")
    notice("Without a key: autorubric eval --judge lexical, which only compares words.")
    return Exit.DONE
