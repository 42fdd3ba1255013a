"""Memory and time of critique passes: `python -m benchmarks.critique`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_FIGURES = ("drafts", "kind", "seconds", "drafts_per_second", "process_mb", "traced_mb", "file_mb")


def main() -> None:
    """Run each size in a separate process and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--json", type=Path, help="file to which the figures are also written")
    chosen = parser.parse_args()
    print("| drafts | pass | seconds | drafts per second | process MB | allocated MB | records MB |")
    print("| --: | --- | --: | --: | --: | --: | --: |")
    found = []
    for size in chosen.sizes:
        with tempfile.TemporaryDirectory() as folder:
            # Resuming a complete pass reads the whole file and makes no call.
            for kind in ("fresh", "resumed"):
                figures = measure(size, Path(folder), resume=kind == "resumed")
                found.append({"drafts": size, "kind": kind, **figures})
                print("| " + " | ".join(_shown(found[-1][name]) for name in _FIGURES) + " |", flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def measure(size: int, folder: Path, *, resume: bool) -> dict[str, Any]:
    """Return the figures of one pass in a separate process."""
    call = [sys.executable, "-m", "benchmarks.critique._pass", str(size), str(folder), str(int(resume))]
    done = subprocess.run(call, capture_output=True, encoding="utf-8", check=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def _shown(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:.1f}"


if __name__ == "__main__":
    main()
