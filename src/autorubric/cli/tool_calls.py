"""Calls of the tools for agents; loaded late, since it needs the judges."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from autorubric.apps.tool.audit import log_refusal
from autorubric.apps.tool.evaluate import anthropic_definition, critique_evaluate_sync, openai_definition
from autorubric.apps.tool.providers import provider_table
from autorubric.apps.tool.request import read_request
from autorubric.apps.tool.response import CritiqueResponse
from autorubric.apps.tool.task import rubric_of
from autorubric.apps.tool.workspace import Workspace
from autorubric.cli.app import notice
from autorubric.cli.output import read_input
from autorubric.errors import ArgumentError, AutorubricError
from autorubric.integrations.mcp_tools import TOOLS, ToolServer, tool_named
from autorubric.integrations.optional import http_address, serve_mcp

_LETTERS: Final = ("A", "B", "C", "D", "F")
_MOST: Final = {"0-10": 10, "0-100": 100}
"""Highest score of each numeric scale."""


def _demand_timeout(timeout: float) -> None:
    if not 0 < timeout < math.inf:
        raise ArgumentError(f"--timeout must be a positive number of seconds; got {timeout:g}")


def evaluate_file(
    file: Path, arguments: Mapping[str, Any], config: Path | None, timeout: float, fail_under: str | None
) -> tuple[CritiqueResponse, bool]:
    """Return the response and whether its score is below `fail_under`."""
    table = provider_table(config)
    request = None
    # Errors in the command line or its files are reported before any call.
    try:
        least = _required_score(fail_under, arguments["scoring_scale"])
        _demand_timeout(timeout)
        request = read_request({**arguments, "content": read_input(file)})
        table.route(request.provider, "text", ())
        root = None if request.workspace_root is None else Workspace.at(request.workspace_root)
        rubric_of(request.criteria, root)
    except (AutorubricError, OSError):
        log_refusal(table, request)
        raise
    response = critique_evaluate_sync(request, providers=table, timeout=timeout)
    score = response.overall_score
    return response, least is not None and score is not None and _rank(score) < least


def _required_score(value: str | None, scale: str) -> float | None:
    """Return the required score, ranked by `_rank`; None if no score is required."""
    if value is None:
        return None
    if scale == "letter" and value.upper() in _LETTERS:
        return _rank(value.upper())
    if scale == "pass-fail" and value.lower() == "pass":
        return _rank("pass")
    if scale not in ("letter", "pass-fail"):
        with contextlib.suppress(ValueError):
            if 0 <= (number := float(value)) <= _MOST.get(scale, math.inf):
                return number
    numbers = f"a number from 0 to {_MOST[scale]}" if scale in _MOST else "a value of the scale"
    wanted = {"letter": f"one of {', '.join(_LETTERS)}", "pass-fail": "pass"}.get(scale, numbers)
    raise ArgumentError(f"--fail-under {value!r}: with --scale {scale}, it must be {wanted}")


def _rank(score: float | str) -> float:
    """Return a score as a number; higher is better."""
    if isinstance(score, str):
        return float(-_LETTERS.index(score)) if score in _LETTERS else float(score == "pass")
    return float(score)


def tool_definitions(style: Literal["openai", "anthropic"], name: str) -> list[dict[str, Any]]:
    """Return the function definitions of a tool, or of all tools."""
    define = openai_definition if style == "openai" else anthropic_definition
    chosen = TOOLS if name == "all" else (tool_named(name),)
    return [define(one.name, one.description, one.input_schema) for one in chosen]


def serve_tools(
    config: Path | None, root: Path, timeout: float, http: tuple[str, int, str | None] | None
) -> None:
    """Serve the tools over MCP: at an HTTP host and port with a token, or over stdio."""
    _demand_timeout(timeout)
    folder = Workspace.at(str(root)).root
    address = None if http is None else http_address(*http)
    providers = provider_table(config)
    for one in providers.providers:
        if one.fault:
            notice(f"Warning: provider {one.name!r} is not available: {one.fault}")
    serve_mcp(ToolServer(providers=providers, root=folder, timeout=timeout), address)
