"""The `autorubric tools` command."""

from __future__ import annotations

from typing import Annotated

import typer

from autorubric.cli._output import Exit, guarded, print_json
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
    from autorubric.integrations._mcp_tools import TOOLS, tool_named
    from autorubric.tool import anthropic_definition, openai_definition

    definitions = {"openai": openai_definition, "anthropic": anthropic_definition}
    if style not in definitions:
        raise ArgumentError(f"--format must be {' or '.join(definitions)}; got {style!r}")
    chosen = TOOLS if name == "all" else (tool_named(name),)
    made = [definitions[style](one.name, one.description, one.input_schema) for one in chosen]
    print_json(made if name == "all" else made[0])
    return Exit.DONE
