"""How a benchmark tells its figures."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path


def markdown(lines: Iterable[Sequence[str]]) -> str:
    """A markdown table of these lines, head and rule among them."""
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def tell(table: str, found: object, file: Path | None) -> None:
    """Prints the table and, as JSON, the figures and what they were measured on; that to a file too."""
    text = json.dumps({"machine": machine(), "figures": found}, indent=2)
    print(table, text, sep="\n\n")
    if file is not None:
        file.write_text(text + "\n", encoding="utf-8")


def machine() -> dict[str, object]:
    """What a machine is named by: cores, memory, Python, and whether uvloop is installed."""
    try:
        import uvloop  # noqa: F401 - whether it is there
    except ImportError:
        fast = False
    else:
        fast = True
    gib = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    return {"cores": os.cpu_count(), "memory_gib": gib, "python": platform.python_version(), "uvloop": fast}
