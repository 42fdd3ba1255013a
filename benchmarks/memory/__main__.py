"""Peak memory of a run, by items: `python -m benchmarks.memory`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from benchmarks._output import markdown, print_results
from benchmarks.throughput._server import run_server


def measure(judge: str, items: int, how: str = "streamed") -> dict[str, Any]:
    """Return the figures of a run with five criteria, and of a bare client with as many calls.

    Args:
        judge: `model` or `function`.
        items: How many.
        how: `streamed` or `parquet`, 64 requests at a time; `loaded` into memory, 256 at a time.
    """
    with run_server(0.0) if judge == "model" else nullcontext("") as api_base:
        found = _child(how, items, api_base)
        bare = _child("bare", items, api_base) if api_base else None
    return {
        "judge": judge,
        "how": how,
        "items": items,
        "peak_mib": found["peak_mib"],
        "above_imports_kib_an_item": 1024 * (found["peak_mib"] - found["before_mib"]) / items,
        "bare_peak_mib": bare["peak_mib"] if bare else None,
        "seconds": found["seconds"],
    }


def _child(what: str, items: int, api_base: str) -> dict[str, float]:
    call = [sys.executable, "-m", "benchmarks.memory._run", what, str(items), api_base]
    ended = subprocess.run(call, capture_output=True, encoding="utf-8", check=True)
    found: dict[str, float] = json.loads(ended.stdout)
    return found


def table(found: Sequence[dict[str, Any]]) -> str:
    """Return the figures as a Markdown table."""
    lines = [
        ("judge", "dataset", "items", "peak MiB", "bare client's MiB", "times the smallest run", "seconds"),
        ("---", "---", *["--:"] * 5),
    ]
    for one in found:
        first = next(other for other in found if (other["judge"], other["how"]) == (one["judge"], one["how"]))
        bare = "" if one["bare_peak_mib"] is None else f"{one['bare_peak_mib']:.1f}"
        lines.append(
            (
                one["judge"],
                one["how"],
                f"{one['items']:,}",
                f"{one['peak_mib']:.1f}",
                bare,
                f"{one['peak_mib'] / first['peak_mib']:.3f}",
                f"{one['seconds']:.0f}",
            )
        )
    return markdown(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the requested runs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument(
        "--function", nargs="*", type=int, default=[10_000, 100_000], help="items for a function"
    )
    parser.add_argument("--model", nargs="*", type=int, default=[500, 5000], help="items for a model")
    parser.add_argument("--loaded", nargs="*", type=int, default=[5000], help="items, dataset in memory")
    parser.add_argument("--parquet", nargs="*", type=int, default=[5000], help="items, Parquet")
    parser.add_argument("--json", type=Path, help="file to which the figures are also written")
    given = parser.parse_args(argv)
    found = [measure("model", items) for items in given.model]
    found += [measure("model", items, "loaded") for items in given.loaded]
    found += [measure("model", items, "parquet") for items in given.parquet]
    found += [measure("function", items) for items in given.function]
    print_results(table(found), found, given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
