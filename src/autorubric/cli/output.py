"""Output of commands: streams, exit codes, blocks and reports."""

from __future__ import annotations

import json
import math
import os
import shlex
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import IntEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TextIO

import typer

from autorubric.criteria.values import MAX_LOST
from autorubric.errors import AutorubricError, ItemFailedError, JudgeError, RunError, RunWriteError
from autorubric.support.blocks import Block, ScalarBlock, printable

if TYPE_CHECKING:
    from autorubric.criteria.values import VerdictCounts
    from autorubric.runs.result import EvalResult
    from autorubric.scoring.reports import CriterionReport, EnsembleEvaluationReport
    from autorubric.scoring.votes import JudgeVote


P = ParamSpec("P")

JsonFlag = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object on stdout instead of tables.", show_default=False),
]


def _finite_score(given: float | None) -> float | None:
    if given is not None and not math.isfinite(given):
        raise typer.BadParameter(f"{given} is not a score; it must be a finite number")
    return given


FailUnder = Annotated[
    float | None,
    typer.Option(
        "--fail-under",
        metavar="X",
        min=0,
        max=1,
        help="Exit with code 1 if the score, or the mean score of the items, is below X (0 to 1).",
        show_default=False,
        callback=_finite_score,
    ),
]
MeanFailUnder = Annotated[
    float | None,
    typer.Option(
        "--fail-under",
        metavar="X",
        help="Exit with code 1 if the mean score is below X.",
        show_default=False,
        callback=_finite_score,
    ),
]


def max_lost_option(help: str) -> Any:
    """Return the `--max-lost` option, which takes a fraction in [0, 1]."""
    return typer.Option("--max-lost", metavar="SHARE", min=0, max=1, help=help, show_default=False)


MaxLost = Annotated[
    float | None,
    max_lost_option(
        "Exit with code 3 if more than this fraction of verdicts was lost or assumed.  "
        f"[default: {MAX_LOST} with a --fail option]"
    ),
]

_FLAGS = {"experiment_name": "--name", "on_mismatch": "--on-mismatch"}


class Exit(IntEnum):
    """Exit codes of commands.

    Attributes:
        DONE: The command succeeded.
        BELOW: The command succeeded, but the score is below `--fail-under`.
        USAGE: The command line or a file is invalid; nothing was judged.
        UNJUDGED: Something could not be judged, or more verdicts were lost or assumed than allowed.
        STOPPED: The user stopped the command.
        CUT: The program reading stdout, such as `head`, closed the pipe; shells use the same code.
    """

    DONE = 0
    BELOW = 1
    USAGE = 2
    UNJUDGED = 3
    STOPPED = 130
    CUT = 141


def exit_code(
    score: float | None,
    fail_under: float | None,
    *,
    unjudged: int = 0,
    verdicts: VerdictCounts | None = None,
    max_lost: float | None = None,
) -> Exit:
    """Return the exit code for a score, and print a notice if too many of its verdicts are missing.

    Args:
        max_lost: Maximum fraction of verdicts that may be lost or assumed, in [0, 1]. If None, the limit is
            `MAX_LOST` if `fail_under` is set; otherwise there is no limit.
    """
    is_gate = fail_under is not None or max_lost is not None
    if verdicts is not None and is_gate and too_many_missing(verdicts, max_lost):
        return Exit.UNJUDGED
    if score is None or unjudged:
        return Exit.UNJUDGED
    if fail_under is None or score >= fail_under:
        return Exit.DONE
    notice(f"score {score:.3f} is below --fail-under {fail_under:g}")
    return Exit.BELOW


def too_many_missing(verdicts: VerdictCounts, max_lost: float | None, of: str = "") -> bool:
    """Return whether too many verdicts were lost or assumed, and print a notice if so.

    Args:
        max_lost: Maximum fraction of verdicts that may be lost or assumed, in [0, 1]; None for `MAX_LOST`.
    """
    most = MAX_LOST if max_lost is None else max_lost
    if not verdicts.exceeds(most):
        return False
    notice(
        f"{of}{': ' if of else ''}{verdicts.lost + verdicts.assumed:,} of {verdicts.asked:,} verdicts "
        f"({verdicts.missing_share:.1%}) were lost or assumed, more than --max-lost {most:g}"
    )
    return True


def report_errors(command: Callable[P, Exit]) -> Callable[P, None]:
    """Wrap a command so that it prints errors as messages and exits with the code that it returns."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with _plain_warnings():
            try:
                code = command(*args, **kwargs)
            except AutorubricError as error:
                notice(f"Error: {in_flags(str(error)) if isinstance(error, RunError) else error}")
                code = _code_of(error)
            except BrokenPipeError:
                _let_go_of_stdout()
                code = Exit.CUT
            except OSError as error:
                notice(f"Error: {format_os_error(error)}")
                code = Exit.USAGE
            except KeyboardInterrupt as stop:
                notice(" ".join(["Stopped.", *map(str, stop.args)]))
                code = Exit.STOPPED
        raise typer.Exit(code)

    return run


@contextmanager
def stoppable(folder: Path, *, done: str, how_to_go_on: str) -> Iterator[None]:
    """Add a message to an interrupt in the block: where finished work is stored and how to resume."""
    try:
        yield
    except KeyboardInterrupt:
        kept = f"{done.capitalize()} items are in {shlex.quote(str(folder))}"
        told = f"{kept}. To resume, run {how_to_go_on}."
        raise KeyboardInterrupt(told) from None


def format_os_error(error: OSError) -> str:
    """Format an operating system error as one line, with its file name if there is one."""
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


def _let_go_of_stdout() -> None:
    """Discard output that is still buffered for stdout, so that the process ends quietly."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def in_flags(text: str) -> str:
    """Replace parameter names in a library message with the matching command-line flags."""
    for parameter, flag in _FLAGS.items():
        text = text.replace(f"{parameter}=", f"{flag} ").replace(parameter, flag)
    return text


def _code_of(error: AutorubricError) -> Exit:
    unjudged = isinstance(error, JudgeError | ItemFailedError)
    if unjudged or (isinstance(error, RunWriteError) and error.begun):
        return Exit.UNJUDGED
    return Exit.USAGE


_shown: set[str] = set()
"""Warnings that the command has already shown."""


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Show warnings as notices, without their location in the code."""

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if str(message) not in _shown:
            notice(f"Warning: {message}")
            _shown.add(str(message))

    _shown.clear()
    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def open_in_browser(url: str) -> None:
    """Open a page in the browser if stdout is a terminal and a display is available."""
    # Without a display, `webbrowser` would take over the terminal with a text browser.
    graphical = (
        sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    if sys.stdout.isatty() and graphical:
        import webbrowser

        webbrowser.open(url)


def notice(text: str) -> None:
    """Print a message on stderr, unless it was already shown as a warning."""
    if text not in _shown:
        lines, width = printable(text).splitlines(), shutil.get_terminal_size().columns
        # From 80 columns on, lines stay whole, so that they can be searched and copied.
        if width < 80:
            shaped = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
            lines = [shaped.fill(line) for line in lines]
        typer.echo("\n".join(lines), err=True)


def print_json(content: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print ASCII-only JSON on stdout, with null in place of non-finite numbers."""
    typer.echo(json.dumps(_finite(content), ensure_ascii=True, allow_nan=False, indent=2))


def _finite(content: Any) -> Any:
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    if isinstance(content, Mapping):
        return {str(key): _finite(value) for key, value in content.items()}
    if isinstance(content, Sequence) and not isinstance(content, str):
        return [_finite(value) for value in content]
    return content


def tolerate_narrow_encodings() -> None:
    """Make stdout and stderr escape characters that their encoding lacks, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def report_json(report: EnsembleEvaluationReport) -> dict[str, Any]:
    """Return a report as the object that `--json` prints."""
    return {
        "score": report.score,
        "raw_score": report.raw_score,
        "error": report.error,
        "node_scores": report.node_scores,
        "judge_scores": report.judge_scores,
        "mean_agreement": report.mean_agreement,
        "cannot_assess_count": report.cannot_assess_count,
        "verdicts": report.verdicts.to_dict(),
        "tokens": report.token_usage.total_tokens if report.token_usage else None,
        "cost": report.completion_cost,
        "criteria": [_criterion_json(one) for one in report.report],
    }


def _criterion_json(report: CriterionReport) -> dict[str, Any]:
    return {
        "name": report.name,
        "weight": report.criterion.weight,
        "status": report.status,
        "answer": report.final_answer,
        "value": report.score_value,
        "reason": report.final_reason,
        "agreement": report.agreement,
        "tie": report.tie,
        "error": report.error,
        "votes": [_vote_json(vote) for vote in report.votes],
    }


def _vote_json(vote: JudgeVote) -> dict[str, Any]:
    return {
        "judge": vote.judge_id,
        "sample": vote.sample,
        "status": vote.status,
        "answer": vote.answer,
        "value": vote.value,
        "reason": vote.reason,
        "confidence": vote.confidence,
        "error": vote.error,
    }


def run_blocks(result: EvalResult) -> list[Block]:
    """Return a run's figures as blocks; if the cost is unknown, the reason is shown in its place."""
    blocks = result.blocks()
    head = blocks[0]
    if result.total_completion_cost is None and isinstance(head, ScalarBlock):
        costs = ((name, _why_no_cost(result) if "cost" in name else value) for name, value in head.figures)
        blocks[0] = replace(head, figures=tuple(costs))
    return blocks


def _why_no_cost(result: EvalResult) -> str:
    judges = result.fingerprint.get("judges")
    settings = judges.values() if isinstance(judges, dict) else ()
    models = [str(one["model"]) for one in settings if isinstance(one, dict) and "model" in one]
    if not models:
        return "none reported (the panel has no models)"
    if result.total_token_usage is None:
        return "unknown (no reply reported a token count)"
    return f"unknown (no price for {', '.join(dict.fromkeys(models))})"
