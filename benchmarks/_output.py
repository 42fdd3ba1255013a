"""Output of benchmarks: a Markdown table and JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path


def markdown(lines: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table of the lines, which include the header and the rule."""
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def print_results(table: str, found: object, file: Path | None) -> None:
    """Print the table, and the figures with the machine as JSON, which also goes to the file."""
    text = json.dumps({"machine": machine(), "figures": found}, indent=2)
    print(table, text, sep="\n\n")
    if file is not None:
        file.write_text(text + "\n", encoding="utf-8")


def machine() -> dict[str, object]:
    """Return cores, memory, Python version, and whether uvloop is installed."""
    try:
        import uvloop  # noqa: F401 - to see whether it is installed
    except ImportError:
        fast = False
    else:
        fast = True
    gib = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    return {"cores": os.cpu_count(), "memory_gib": gib, "python": platform.python_version(), "uvloop": fast}
