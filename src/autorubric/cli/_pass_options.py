"""What passes over drafts take on the command line, critique and refine alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from autorubric.cli._output import Exit, notice
from autorubric.errors import ArgumentError

HOW_TO_GO_ON: Final = "the command with --resume"
OutDir = Annotated[Path, typer.Option("--out-dir", metavar="D", help="Where the files go.")]
SchemaFile = Annotated[
    Path | None,
    typer.Option(
        "--schema", metavar="S", help="A JSON schema of critiques, in place of ours.", show_default=False
    ),
]
TemplateFile = Annotated[
    Path | None,
    typer.Option(
        "--template", metavar="T", help="A template of prompts, in place of ours.", show_default=False
    ),
]
CritiqueRubric = Annotated[
    Path | None,
    typer.Option(
        "--rubric",
        metavar="R",
        help="A rubric file; its criteria become the scores, its score the verdict.",
        show_default=False,
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        metavar="X",
        help="With --rubric: the score from which the verdict is pass.  [default: 0.7]",
        show_default=False,
    ),
]
Limit = Annotated[
    int | None, typer.Option("--limit", metavar="N", help="Take N drafts at most.", show_default=False)
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with the records that are there.", show_default=False)
]
RetryErrors = Annotated[
    bool,
    typer.Option("--retry-errors", help="With --resume: try again what failed.", show_default=False),
]


def demand_resume(resume: bool, retry_errors: bool) -> None:
    """Refuses flags that go with --resume alone.

    Raises:
        ArgumentError: There is one, and no --resume.
    """
    if retry_errors and not resume:
        raise ArgumentError(
            "--retry-errors tries again what failed before, and without --resume everything is asked anew; "
            "give --resume with it, or leave it out"
        )


def tell_stopped(limit: str) -> Exit:
    """Tells that a pass was ended by a limit, and how to go on; the exit code for it."""
    notice(f"Stopped at --{limit.replace('_', '-')}; to go on, give {HOW_TO_GO_ON}.")
    return Exit.STOPPED
