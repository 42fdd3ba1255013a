"""CPU time from stored data to figures, next to bare baselines: `python -m benchmarks.reading`.

The goals are ratios of CPU times. The last figure is a ratio of memory.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks._output import markdown, print_results
from benchmarks.reading._cases import Case, data_cases, grading_cases, run_cases, table_cases
from benchmarks.reading._programs import measure_memory, measure_programs

_HEAD = ("operation", "CPU s, or MiB", "baseline", "CPU s, or MiB", "ratio", "goal")


def measure(case: Case, repetitions: int) -> dict[str, Any]:
    """Return median CPU seconds of both, in turn, and their ratio."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repetitions):
        for call, found in zip((case.ours, case.bare), times, strict=True):
            start = time.process_time()
            call()
            found.append(time.process_time() - start)
    ours, bare = map(statistics.median, times)
    return {
        "case": case.title,
        "cpu_s": ours,
        "bare": case.bare_title,
        "bare_cpu_s": bare,
        "ratio": ours / bare if bare else None,
        "goal": case.goal,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print all cases."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reading", description=__doc__)
    parser.add_argument("--items", type=int, default=20_000, help="items of the run (5 criteria, 3 judges)")
    parser.add_argument("--rows", type=int, default=100_000, help="rows of dataset files, labels and games")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--json", type=Path, help="file to which the figures are also written")
    given = parser.parse_args(argv)
    found = []
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for cases in (
            run_cases(folder, given.items),
            grading_cases(folder, given.items),
            data_cases(folder, given.rows),
            table_cases(given.rows),
        ):
            found += [measure(case, given.repetitions) for case in cases]
        programs = measure_programs(folder, given.repetitions)
        memory = measure_memory(folder / "a")
    found += [*programs, memory]
    table = markdown([_HEAD, ("---", "--:", "---", "--:", "--:", "--:"), *map(_line, found)])
    print_results(table, found, given.json)
    return 0


def _line(one: dict[str, Any]) -> tuple[str, ...]:
    figures = [one.get(f"{whose}cpu_s", one.get(f"{whose}peak_mib")) for whose in ("", "bare_")]
    ours, bare, ratio = (f"{figure:.2f}" for figure in (*figures, one["ratio"]))
    return one["case"], ours, one["bare"], bare, ratio, f"{one['goal']:g}"


if __name__ == "__main__":
    sys.exit(main())
