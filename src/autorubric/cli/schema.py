"""`autorubric schema`."""

from __future__ import annotations

import autorubric
from autorubric.cli._output import Exit, guarded, print_json


@guarded
def schema() -> Exit:
    """Print the JSON schema of rubric files, for editors.

    \b
    Example:
      autorubric schema > rubric.schema.json
    """
    print_json(autorubric.Rubric.json_schema())
    return Exit.DONE
