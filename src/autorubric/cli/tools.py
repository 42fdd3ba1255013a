"""`autorubric tools` and `autorubric mcp`: print or serve the tools for agents."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from autorubric.cli.command import Exit, guarded
from autorubric.cli.critique_text import Config
from autorubric.cli.options import flag, option
from autorubric.cli.output import print_json

Style = Annotated[
    str,
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
    # Late, since it loads the judges.
    from autorubric.cli.tool_calls import tool_definitions

    definitions = tool_definitions(style, name)
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
    # Late, since it loads the judges.
    from autorubric.cli.tool_calls import serve_tools

    address = (host, port, os.environ.get(TOKEN_VARIABLE) or None) if http else None
    serve_tools(config, root, timeout, address)
    return Exit.DONE
