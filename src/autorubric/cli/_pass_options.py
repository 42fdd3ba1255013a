"""Options shared by the commands that process drafts: critique and refine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from autorubric.cli._output import Exit, max_lost_option, notice
from autorubric.errors import ArgumentError
from autorubric.values import MAX_LOST

HOW_TO_GO_ON: Final = "the command again with --resume"
OutDir = Annotated[Path, typer.Option("--out-dir", metavar="D", help="Folder to write the output files to.")]
SchemaFile = Annotated[
    Path | None,
    typer.Option(
        "--schema",
        metavar="S",
        help="JSON schema for critiques, used instead of the built-in schema.",
        show_default=False,
    ),
]
TemplateFile = Annotated[
    Path | None,
    typer.Option(
        "--template", metavar="T", help="Prompt template to replace the built-in one.", show_default=False
    ),
]
CritiqueRubric = Annotated[
    Path | None,
    typer.Option(
        "--rubric",
        metavar="R",
        help="Rubric file; each criterion yields a score, and the rubric score determines the verdict.",
        show_default=False,
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        metavar="X",
        help="With --rubric: minimum score for the verdict pass.  [default: 0.7]",
        show_default=False,
    ),
]
Limit = Annotated[
    int | None, typer.Option("--limit", metavar="N", help="Process at most N drafts.", show_default=False)
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Resume from the existing records.", show_default=False)
]
RetryErrors = Annotated[
    bool, typer.Option("--retry-errors", help="With --resume: retry drafts that failed.", show_default=False)
]


MaxLostDrafts = Annotated[
    float | None,
    max_lost_option(
        "Exit with code 3 if more than this fraction of the drafts could not be judged.  "
        f"[default: {MAX_LOST} with a --fail option, otherwise 0]"
    ),
]


def are_too_many(share: float, max_lost: float | None, *, is_gate: bool) -> bool:
    """Return whether `share` exceeds `max_lost`, which defaults to `MAX_LOST` with a gate, otherwise 0."""
    allowed = MAX_LOST if is_gate else 0.0
    return share > (allowed if max_lost is None else max_lost)


def report_lost(lost: int, total: int, first_error: str | None) -> float:
    """Print how many drafts could not be judged, with the first error, and return their fraction."""
    if not lost:
        return 0.0
    cause = "" if first_error is None else f"; first error: {first_error}"
    notice(f"Warning: {lost} of {total} drafts could not be judged{cause}")
    return lost / total


def demand_resume(resume: bool, retry_errors: bool) -> None:
    """Reject flags that require --resume.

    Raises:
        ArgumentError: If such a flag is set without --resume.
    """
    if retry_errors and not resume:
        raise ArgumentError("--retry-errors requires --resume; otherwise every draft is processed again")


def tell_stopped(limit: str) -> Exit:
    """Print how to resume a pass that a limit or an error stopped, and return the exit code."""
    if limit == "errors":
        notice(f"Stopped. To resume, run {HOW_TO_GO_ON} --retry-errors.")
        return Exit.UNJUDGED
    notice(f"Stopped at --{limit.replace('_', '-')}. To resume, run {HOW_TO_GO_ON}.")
    return Exit.STOPPED
