"""`autorubric tools`."""

from __future__ import annotations

from typing import Annotated

import typer

from autorubric.cli._output import Exit, guarded, print_json
from autorubric.errors import ArgumentError

Style = Annotated[
    str,
    typer.Option("--format", metavar="F", help="Whose function definitions: openai or anthropic."),
]


@guarded
def tools(style: Style = "openai") -> Exit:
    """Print the function definition of critique.evaluate, for tool calls by models.

    What a model then calls it with is what `autorubric.critique_evaluate` takes.

    \b
    Example:
      autorubric tools --format anthropic > critique_evaluate.json

    Exit codes: 0 done, 2 faulty command line.
    """
    # Late, since `--help` should not wait for it.
    from autorubric.tool import anthropic_definition, openai_definition

    definitions = {"openai": openai_definition, "anthropic": anthropic_definition}
    if style not in definitions:
        raise ArgumentError(f"--format {style!r}: give {' or '.join(definitions)}")
    print_json(definitions[style]())
    return Exit.DONE
