"""The tools for agents: `autorubric critique-text`, `tools` and `mcp`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from autorubric import cli
from autorubric.apps.tool.request import CritiqueRequest
from autorubric.apps.tool.response import CritiqueResponse
from autorubric.cli.app import Exit, file_error_text, guarded, notice
from autorubric.cli.options import JsonFlag, argument, flag, names_of, option, values_of
from autorubric.cli.output import print_blocks, print_json
from autorubric.errors import AutorubricError
from autorubric.reports.critique import CritiqueGroup, critique_groups
from autorubric.support.blocks import Block, ScalarBlock, TableBlock, TextBlock

_BAR: Final = 10
"""Number of characters of a full bar."""

Content = Annotated[Path, argument("FILE", "File to critique; - reads standard input.")]
Criteria = Annotated[
    str,
    option(
        "--criteria",
        "A,B",
        "Comma-separated criteria: correctness, completeness, quality, security, performance, style, "
        "safety, or your own names. Alternatively, a rubric file.",
    ),
]
Config = Annotated[
    Path | None,
    option("--config", "F", "Provider table (YAML, TOML or JSON file).  [env var: AUTORUBRIC_PROVIDERS]"),
]
RequiredScore = Annotated[
    str | None,
    option(
        "--fail-under",
        "X",
        "Exit with code 1 if the overall score is below X: a number, letter or pass, by --scale.",
    ),
]
CritiqueTimeout = Annotated[float, option("--timeout", "S", "Time limit in seconds.", show_default=True)]


_DEFAULTS: Final = CritiqueRequest.model_construct(content="", criteria=())


def _list(field: str) -> str:
    """Return the values of an argument of the tool as a list in words."""
    return names_of(values_of(CritiqueRequest, field))


@dataclass(frozen=True, kw_only=True)
class RequestOptions:
    """Arguments of the tool, with their names."""

    provider: Annotated[
        str,
        option(
            "--provider", "P", "Provider: auto, local_fm, gpt4, claude or custom:<id>.", show_default=True
        ),
    ] = _DEFAULTS.provider
    scoring_scale: Annotated[
        str, option("--scale", "S", f"Scoring scale: {_list('scoring_scale')}.", show_default=True)
    ] = _DEFAULTS.scoring_scale
    evaluation_mode: Annotated[
        str, option("--mode", "M", f"Level of detail: {_list('evaluation_mode')}.", show_default=True)
    ] = _DEFAULTS.evaluation_mode
    content_type: Annotated[
        str, option("--type", "T", f"Type of content: {_list('content_type')}.", show_default=True)
    ] = _DEFAULTS.content_type
    context: Annotated[str | None, option("--context", "TEXT", "Additional context.")] = None
    workspace_root: Annotated[
        Path | None,
        option(
            "--workspace-root",
            "DIR",
            "Workspace folder; the rubric file and all file locations of issues must be inside it.",
        ),
    ] = None
    max_issues: Annotated[
        int, option("--max-issues", "N", "Maximum number of issues per criterion.", show_default=True)
    ] = _DEFAULTS.max_issues
    dry_run: Annotated[bool, flag("--dry-run", "Show the planned request without sending it.")] = False


@guarded
def critique_text(
    file: Content,
    criteria: Criteria,
    config: Config = None,
    *,
    options: RequestOptions,
    timeout: CritiqueTimeout = 30.0,
    fail_under: RequiredScore = None,
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
    root = options.workspace_root
    request = {
        **vars(options),
        "criteria": [name for name in criteria.split(",") if name.strip()],
        "workspace_root": None if root is None else str(root),
    }
    try:
        response, is_below = cli.tool_calls.evaluate_file(file, request, config, timeout, fail_under)
    except (AutorubricError, OSError) as error:
        if as_json:
            text = file_error_text(error) if isinstance(error, OSError) else str(error)
            print_json({"ok": False, "error": text, "provider": None})
        raise
    if as_json:
        print_json(response.to_dict())
    elif response.ok:
        print_blocks(_blocks(response))
    for name, why in response.fallback_from.items():
        notice(f"Warning: {name} could not evaluate ({why}); {response.provider} was used instead")
    return _report_exit(response, is_below)


def _report_exit(response: CritiqueResponse, is_below: bool) -> Exit:
    if not response.ok:
        notice(f"Error: {response.error}")
        return Exit.UNJUDGED
    if response.dry_run:
        return Exit.DONE
    if response.overall_score is None or any(one.score is None for one in response.criteria_scores):
        notice("Warning: at least one criterion could not be assessed")
        return Exit.UNJUDGED
    return Exit.BELOW if is_below else Exit.DONE


def _blocks(response: CritiqueResponse) -> list[Block]:
    if response.dry_run:
        figures = (
            ("provider", response.provider),
            ("criteria", ", ".join(response.criteria)),
            ("prompt size in bytes", response.prompt_size),
        )
        return [TextBlock(text=response.one_line()), ScalarBlock(figures=figures)]
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
    """Return the issues of a criterion, the most severe first."""
    # On a narrow terminal, separate columns for location and suggestion would end up in separate tables.
    rows = []
    for one in group.issues:
        parts = (one.description, one.location, one.suggestion and f"Suggestion: {one.suggestion}")
        rows.append((one.severity, "\n".join(filter(None, parts))))
    return TableBlock(title=f"Issues: {group.name}", columns=("severity", "issue"), rows=tuple(rows))


Style = Annotated[
    Literal["openai", "anthropic"],
    option("--format", "F", "Format of the function definitions: openai or anthropic.", show_default=True),
]
Name = Annotated[
    str,
    option(
        "--tool", "T", "Tool: critique_evaluate, grade, compute_metrics, or all (a list).", show_default=True
    ),
]


@guarded
def tools(style: Style = "openai", name: Name = "critique_evaluate") -> Exit:
    """Print the function definition of a tool that models can call.

    To execute a model's tool call, use `autorubric.integrations.call_tool`.

    \b
    Examples:
      autorubric tools --format anthropic > critique_evaluate.json
      autorubric tools --tool all > tools.json

    Exit codes: 0 success, 2 invalid command line.
    """
    definitions = cli.tool_calls.tool_definitions(style, name)
    print_json(definitions if name == "all" else definitions[0])
    return Exit.DONE


TOKEN_VARIABLE = "AUTORUBRIC_MCP_TOKEN"

Http = Annotated[bool, flag("--http", "Serve over HTTP at /mcp instead of stdio.")]
Host = Annotated[str, option("--host", "H", "With --http: address to listen on.", show_default=True)]
Port = Annotated[
    int, option("--port", "N", "With --http: port; 0 for any free port.", min=0, max=65535, show_default=True)
]
Root = Annotated[
    Path, option("--root", "DIR", "Folder that must contain every file named by agents.", show_default=True)
]
Timeout = Annotated[float, option("--timeout", "S", "Time limit per call, in seconds.", show_default=True)]


@guarded
def mcp(
    config: Config = None,
    http: Http = False,
    host: Host = "127.0.0.1",
    port: Port = 8765,
    root: Root = Path(),
    timeout: Timeout = 30.0,
) -> Exit:
    """Serve critique_evaluate, grade and compute_metrics to agents over MCP.

    Requires the autorubric[mcp] extra. If the environment variable AUTORUBRIC_MCP_TOKEN is set, clients must
    send its value as `Authorization: Bearer …`. The variable is required for addresses other than loopback.

    \b
    Examples:
      autorubric mcp --config providers.yaml
      autorubric mcp --config providers.yaml --http --port 8765

    Exit codes: 0 success, 2 invalid command line or file, 130 interrupted.
    """
    address = (host, port, os.environ.get(TOKEN_VARIABLE) or None) if http else None
    cli.tool_calls.serve_tools(config, root, timeout, address)
    return Exit.DONE
