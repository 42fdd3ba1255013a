"""The `autorubric critique-text` command."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

import autorubric
from autorubric.cli.output import Exit, JsonFlag, format_os_error, notice, print_json, report_errors
from autorubric.cli.tables import print_blocks, read_input
from autorubric.errors import ArgumentError, AutorubricError
from autorubric.support.blocks import Block, ScalarBlock, TableBlock, TextBlock

if TYPE_CHECKING:
    from autorubric.apps.tool.response import CritiqueResponse
    from autorubric.reports.critique import CritiqueGroup


_LETTERS: Final = ("A", "B", "C", "D", "F")
_MOST: Final = {"0-10": 10, "0-100": 100}
"""Highest score of each numeric scale."""
_BAR: Final = 10
"""Number of characters of a full bar."""

Content = Annotated[
    Path, typer.Argument(metavar="FILE", help="File to critique; - reads standard input.", show_default=False)
]
Criteria = Annotated[
    str,
    typer.Option(
        "--criteria",
        metavar="A,B",
        help="Comma-separated criteria: correctness, completeness, quality, security, performance, style, "
        "safety, or your own names. Alternatively, a rubric file.",
        show_default=False,
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="F",
        help="Provider table (YAML, TOML or JSON file).  [env var: AUTORUBRIC_PROVIDERS]",
        show_default=False,
    ),
]
ProviderName = Annotated[
    str,
    typer.Option("--provider", metavar="P", help="Provider: auto, local_fm, gpt4, claude or custom:<id>."),
]
Scale = Annotated[
    str, typer.Option("--scale", metavar="S", help="Scoring scale: 0-10, 0-100, letter or pass-fail.")
]
Mode = Annotated[
    str, typer.Option("--mode", metavar="M", help="Level of detail: detailed, summary or score_only.")
]
Kind = Annotated[
    str,
    typer.Option(
        "--type",
        metavar="T",
        help="Type of content: auto, code, text, markdown, tool_result or session_snapshot.",
    ),
]
Context = Annotated[
    str | None, typer.Option("--context", metavar="TEXT", help="Additional context.", show_default=False)
]
Root = Annotated[
    Path | None,
    typer.Option(
        "--workspace-root",
        metavar="DIR",
        help="Workspace folder; the rubric file and all file locations of issues must be inside it.",
        show_default=False,
    ),
]
MaxIssues = Annotated[
    int, typer.Option("--max-issues", metavar="N", help="Maximum number of issues per criterion.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show the planned request without sending it.", show_default=False)
]
FailUnder = Annotated[
    str | None,
    typer.Option(
        "--fail-under",
        metavar="X",
        help="Exit with code 1 if the overall score is below X: a number, letter or pass, by --scale.",
        show_default=False,
    ),
]
Timeout = Annotated[float, typer.Option("--timeout", metavar="S", help="Time limit in seconds.")]


@report_errors
def critique_text(  # noqa: PLR0913
    file: Content,
    criteria: Criteria,
    config: Config = None,
    provider: ProviderName = "auto",
    scale: Scale = "0-10",
    mode: Mode = "detailed",
    content_type: Kind = "auto",
    context: Context = None,
    workspace_root: Root = None,
    max_issues: MaxIssues = 10,
    dry_run: DryRun = False,
    timeout: Timeout = 30.0,
    fail_under: FailUnder = None,
    as_json: JsonFlag = False,
) -> Exit:
    """Critique a file against criteria, with scores, issues and suggestions.

    With --json, prints the result of the `critique.evaluate` tool, an object with the keys ok, provider,
    overall_score, scoring_scale, criteria_scores, issues, summary, suggestions, evaluation_time_ms and, if
    part of the reply was discarded, notes. After an error or for an invalid request, the object has
    ok and error. Tables list criteria from lowest to highest score.

    --fail-under takes a value on the scale: 8 with 0-10, 80 with 0-100, B with letter, pass with pass-fail.

    \b
    Examples:
      autorubric critique-text fetch.py --criteria correctness,security \\
          --config providers.yaml --fail-under 8
      git diff | autorubric critique-text - --criteria style \\
          --scale pass-fail --fail-under pass

    Exit codes: 0 success, 1 below --fail-under, 2 invalid command line or file, 3 the content could not be
    judged, 130 interrupted.
    """
    request = {
        "criteria": [name for name in criteria.split(",") if name.strip()],
        "provider": provider,
        "scoring_scale": scale,
        "evaluation_mode": mode,
        "content_type": content_type,
        "context": context,
        "workspace_root": None if workspace_root is None else str(workspace_root),
        "max_issues": max_issues,
        "dry_run": dry_run,
    }
    try:
        response, least = _answer(file, request, config, timeout, fail_under)
    except (AutorubricError, OSError) as error:
        if as_json:
            told = format_os_error(error) if isinstance(error, OSError) else str(error)
            print_json({"ok": False, "error": told, "provider": None})
        raise
    if as_json:
        print_json(response.to_dict())
    elif response.ok:
        print_blocks(_blocks(response))
    for name, why in response.fallback_from.items():
        notice(f"Warning: {name} could not evaluate ({why}); {response.provider} was used instead")
    return _exit(response, least)


def _answer(
    file: Path, arguments: Mapping[str, Any], config: Path | None, timeout: float, fail_under: str | None
) -> tuple[CritiqueResponse, float | None]:
    """Return the response and the score that it must reach.

    Errors in the command line or its files are reported before any call, with exit code 2.
    """
    from autorubric.apps.tool.audit import log_refusal
    from autorubric.apps.tool.providers import provider_table
    from autorubric.apps.tool.request import read_request
    from autorubric.apps.tool.task import rubric_of
    from autorubric.apps.tool.workspace import Workspace

    table = provider_table(config)
    asked = None
    try:
        least = _least(fail_under, arguments["scoring_scale"])
        if not 0 < timeout < math.inf:
            raise ArgumentError(f"--timeout must be a positive number of seconds; got {timeout:g}")
        asked = read_request({**arguments, "content": read_input(file)})
        table.routed(asked.provider, "text", ())
        root = None if asked.workspace_root is None else Workspace.at(asked.workspace_root)
        rubric_of(asked.criteria, root)
    except (AutorubricError, OSError):
        log_refusal(table, asked)
        raise
    return autorubric.apps.tool.critique_evaluate_sync(asked, providers=table, timeout=timeout), least


def _least(given: str | None, scale: str) -> float | None:
    """Return the required score, ranked by `_rank`; None if no score is required."""
    if given is None:
        return None
    if scale == "letter" and given.upper() in _LETTERS:
        return _rank(given.upper())
    if scale == "pass-fail" and given.lower() == "pass":
        return _rank("pass")
    if scale not in ("letter", "pass-fail"):
        with contextlib.suppress(ValueError):
            if 0 <= (number := float(given)) <= _MOST.get(scale, math.inf):
                return number
    numbers = f"a number from 0 to {_MOST[scale]}" if scale in _MOST else "a value of the scale"
    wanted = {"letter": f"one of {', '.join(_LETTERS)}", "pass-fail": "pass"}.get(scale, numbers)
    raise ArgumentError(f"--fail-under {given!r}: with --scale {scale}, it must be {wanted}")


def _rank(score: float | str) -> float:
    """Return a score as a number; higher is better."""
    if isinstance(score, str):
        return float(-_LETTERS.index(score)) if score in _LETTERS else float(score == "pass")
    return float(score)


def _exit(response: CritiqueResponse, least: float | None) -> Exit:
    if not response.ok:
        notice(f"Error: {response.error}")
        return Exit.UNJUDGED
    if response.dry_run:
        return Exit.DONE
    score = response.overall_score
    if score is None or any(one.score is None for one in response.criteria_scores):
        notice("Warning: at least one criterion could not be assessed")
        return Exit.UNJUDGED
    return Exit.BELOW if least is not None and _rank(score) < least else Exit.DONE


def _blocks(response: CritiqueResponse) -> list[Block]:
    if response.dry_run:
        figures = (
            ("provider", response.provider),
            ("criteria", ", ".join(response.criteria)),
            ("prompt size in bytes", response.prompt_size),
        )
        return [TextBlock(text=response.one_line()), ScalarBlock(figures=figures)]
    from autorubric.reports.critique import critique_groups

    groups = critique_groups(response)
    scores = tuple(
        (one.name, _bar(one.share), one.score or "not assessed", one.label or "") for one in groups
    )
    blocks: list[Block] = [
        TextBlock(text=f"{response.one_line()} · {response.provider}"),
        TableBlock(columns=("criterion", "", "score", "label"), rows=scores),
    ]
    if response.summary:
        blocks.append(TextBlock(text=response.summary))
    if reasons := [f"{one.name}: {one.explanation}" for one in groups if one.explanation]:
        blocks.append(TextBlock(text=_bullets(reasons), title="Reasons"))
    blocks += [_issues_block(one) for one in groups if one.issues]
    if response.notes:
        blocks.append(TextBlock(text=_bullets(response.notes), title="Discarded parts of the reply"))
    if response.suggestions:
        blocks.append(TextBlock(text=_bullets(response.suggestions), title="Suggestions"))
    return blocks


def _bullets(texts: Sequence[str]) -> str:
    return "\n".join(f"- {one}" for one in texts)


def _bar(share: float | None) -> str:
    """Return the score as a bar of ASCII characters; empty if there is no score."""
    filled = round(_BAR * (share or 0.0))
    return "" if share is None else "#" * filled + "-" * (_BAR - filled)


def _issues_block(group: CritiqueGroup) -> TableBlock:
    """Return the issues of a criterion, the most severe first.

    Location and suggestion are printed below the description. As separate columns, they would end up in
    separate tables on a narrow terminal, where it would be unclear which issue a suggestion belongs to.
    """
    rows = []
    for one in group.issues:
        parts = (one.description, one.location, one.suggestion and f"Suggestion: {one.suggestion}")
        rows.append((one.severity, "\n".join(filter(None, parts))))
    return TableBlock(title=f"Issues: {group.name}", columns=("severity", "issue"), rows=tuple(rows))
