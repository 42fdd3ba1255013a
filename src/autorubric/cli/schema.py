"""The `autorubric schema` command."""

from __future__ import annotations

from typing import Annotated

import typer

import autorubric
from autorubric.cli._output import Exit, guarded, print_json

OfRunFile = Annotated[bool, typer.Option("--run", help="Print the schema of run files (autorubric.yaml).")]


@guarded
def schema(run: OfRunFile = False) -> Exit:
    """Print the JSON schema of rubric files or run files, for editors.

    \b
    Examples:
      autorubric schema > rubric.schema.json
      autorubric schema --run > run.schema.json
    """
    if run:
        from autorubric.run_file import run_file_schema

        print_json(run_file_schema())
    else:
        print_json(autorubric.Rubric.json_schema())
    return Exit.DONE
