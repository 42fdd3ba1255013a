"""How a benchmark tells its figures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path


def markdown(lines: Iterable[Sequence[str]]) -> str:
    """A markdown table of these lines, head and rule among them."""
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def tell(table: str, found: object, file: Path | None) -> None:
    """Prints the table, and writes the figures to a file as JSON where one is given."""
    print(table)
    if file is not None:
        file.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
