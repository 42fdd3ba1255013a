"""Time of the metrics next to other packages: `python -m benchmarks.metrics`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks._output import markdown, print_results
from benchmarks.metrics._baselines import BASELINES
from benchmarks.metrics._inputs import TINY, Sizes
from benchmarks.metrics._ours import CASES
from benchmarks.metrics._timing import megabytes, seconds


def measure(name: str, sizes: Sizes, repetitions: int, *, memory: bool) -> dict[str, Any]:
    """The figures of a case and of its baselines, as JSON can carry them."""
    case = CASES[name]
    own = seconds(case.prepare(sizes), repetitions)
    baselines = []
    for other in BASELINES[name]:
        share = other.share(sizes)
        taken = seconds(other.prepare(sizes), max(1, repetitions // 2))
        baselines.append(
            {
                "name": other.name,
                "wall": taken.wall / share,
                "cpu": taken.cpu / share,
                "ratio": taken.wall / share / own.wall,
                "share_timed": share,
            }
        )
    peak = megabytes(name, sizes) if memory else None
    return {
        "case": name,
        "title": case.title,
        "wall": own.wall,
        "cpu": own.cpu,
        "target": case.target,
        "allocated_mb": peak.allocated if peak else None,
        "process_mb": peak.process if peak else None,
        "target_mb": case.target_mb,
        "baselines": baselines,
    }


def table(measured: Sequence[dict[str, Any]]) -> str:
    """Return a Markdown table: seconds, megabytes, and the ratio of the other packages' time to ours."""
    heads = ("case", "target s", "wall s", "CPU s", "allocated MB", "process MB", "ratio")
    lines = [heads, ("---", *["--:"] * 5, "---")]
    for one in measured:
        others = "; ".join(f"{other['name']}: {other['ratio']:.3g} ×" for other in one["baselines"])
        numbers = (
            "–" if one[key] is None else f"{one[key]:.{digits}f}"
            for key, digits in (
                ("target", 2),
                ("wall", 4),
                ("cpu", 4),
                ("allocated_mb", 0),
                ("process_mb", 0),
            )
        )
        lines.append((one["title"], *numbers, others))
    return markdown(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the requested cases."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.metrics", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--repetitions", type=int, default=7, help="number of repetitions (default 7)")
    parser.add_argument("--tiny", action="store_true", help="small inputs, for a quick check")
    parser.add_argument("--no-memory", action="store_true", help="measure only time")
    parser.add_argument("--json", type=Path, help="file to which the figures are also written")
    given = parser.parse_args(argv)
    sizes = TINY if given.tiny else Sizes()
    measured = [measure(name, sizes, given.repetitions, memory=not given.no_memory) for name in given.only]
    print_results(table(measured), measured, given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
