"""`autorubric tools` and `autorubric mcp`: print or serve the tools for agents."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Annotated

import typer

from autorubric.cli.critique_text import Config
from autorubric.cli.output import Exit, notice, print_json, report_errors
from autorubric.errors import ArgumentError

Style = Annotated[
    str,
    typer.Option("--format", metavar="F", help="Format of the function definitions: openai or anthropic."),
]


Name = Annotated[
    str,
    typer.Option(
        "--tool", metavar="T", help="Tool: critique_evaluate, grade, compute_metrics, or all (a list)."
    ),
]


@report_errors
def tools(style: Style = "openai", name: Name = "critique_evaluate") -> Exit:
    """Print the function definition of a tool that models can call.

    To execute a model's tool call, use `autorubric.integrations.call_tool`.

    \b
    Examples:
      autorubric tools --format anthropic > critique_evaluate.json
      autorubric tools --tool all > tools.json

    Exit codes: 0 success, 2 invalid command line.
    """
    from autorubric.apps.tool.evaluate import anthropic_definition, openai_definition
    from autorubric.integrations.mcp_tools import TOOLS, tool_named

    definitions = {"openai": openai_definition, "anthropic": anthropic_definition}
    if style not in definitions:
        raise ArgumentError(f"--format must be {' or '.join(definitions)}; got {style!r}")
    chosen = TOOLS if name == "all" else (tool_named(name),)
    made = [definitions[style](one.name, one.description, one.input_schema) for one in chosen]
    print_json(made if name == "all" else made[0])
    return Exit.DONE


TOKEN_VARIABLE = "AUTORUBRIC_MCP_TOKEN"

Http = Annotated[
    bool, typer.Option("--http", help="Serve over HTTP at /mcp instead of stdio.", show_default=False)
]
Host = Annotated[str, typer.Option("--host", metavar="H", help="With --http: address to listen on.")]
Port = Annotated[
    int, typer.Option("--port", metavar="N", help="With --http: port; 0 for any free port.", min=0, max=65535)
]
Root = Annotated[
    Path, typer.Option("--root", metavar="DIR", help="Folder that must contain every file named by agents.")
]
Timeout = Annotated[float, typer.Option("--timeout", metavar="S", help="Time limit per call, in seconds.")]


@report_errors
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
    if not 0 < timeout < math.inf:
        raise ArgumentError(f"--timeout must be a positive number of seconds; got {timeout:g}")
    from autorubric.apps.tool.providers import provider_table
    from autorubric.apps.tool.workspace import Workspace
    from autorubric.integrations.mcp_tools import ToolServer
    from autorubric.integrations.optional import http_address, serve_mcp

    folder = Workspace.at(str(root)).root
    address = http_address(host, port, os.environ.get(TOKEN_VARIABLE) or None) if http else None
    providers = provider_table(config)
    for one in providers.providers:
        if one.fault:
            notice(f"Warning: provider {one.name!r} is not available: {one.fault}")
    serve_mcp(ToolServer(providers=providers, root=folder, timeout=timeout), address)
    return Exit.DONE
