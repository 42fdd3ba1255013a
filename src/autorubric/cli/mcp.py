"""The `autorubric mcp` command."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Annotated

import typer

from autorubric.cli._output import Exit, guarded, notice
from autorubric.cli.critique_text import Config
from autorubric.errors import ArgumentError

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
    if not 0 < timeout < math.inf:
        raise ArgumentError(f"--timeout must be a positive number of seconds; got {timeout:g}")
    from autorubric.integrations import http_address, serve_mcp
    from autorubric.integrations._mcp_calls import ToolServer
    from autorubric.tool import Workspace, provider_table

    folder = Workspace.at(str(root)).root
    address = http_address(host, port, os.environ.get(TOKEN_VARIABLE) or None) if http else None
    providers = provider_table(config)
    for one in providers.providers:
        if one.fault:
            notice(f"Warning: provider {one.name!r} is not available: {one.fault}")
    serve_mcp(ToolServer(providers=providers, root=folder, timeout=timeout), address)
    return Exit.DONE
