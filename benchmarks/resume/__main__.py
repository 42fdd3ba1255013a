"""Seconds from process start to a stored run's result: `python -m benchmarks.resume`."""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks._output import markdown, print_results
from benchmarks.memory._run import graded, write_dataset

_BARE = """
import json, sys
with open(sys.argv[1] + "/run/items.jsonl", "rb") as lines:
    print(sum(json.loads(line)["score"] for line in lines), flush=True)
"""
_OPEN = """
import sys
from autorubric import EvalResult
print(EvalResult.from_experiment(sys.argv[1] + "/run").total_items, flush=True)
"""
_VERIFY = """
import json, statistics, sys, time
from pathlib import Path
from autorubric import EvalResult
from autorubric.support.read import file_sha256
from autorubric.support.record_log import crc_of, is_intact, log_lines

run = Path(sys.argv[1]) / "run"
mark = json.loads((run / "manifest.json").read_text(encoding="utf-8"))["mark"]
lines = [(raw, offset) for _, offset, raw in log_lines(run / "items.jsonl", 0)]

def verify():
    file_sha256(run / "dataset.jsonl")
    crc_of(run / "votes.jsonl", (run / "votes.jsonl").stat().st_size)
    assert all(is_intact(*line, mark) for line in lines)

def open_run():
    EvalResult.from_experiment(run)

def seconds_of(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start

open_run()
rounds = [(seconds_of(verify), seconds_of(open_run)) for _ in range(int(sys.argv[2]))]
print(*map(statistics.median, zip(*rounds)), flush=True)
"""
_RESUME = """
import sys
from autorubric import CriterionGrader, RubricDataset, evaluate_sync
from benchmarks.memory._run import judge
result = evaluate_sync(RubricDataset.stream(sys.argv[2]), CriterionGrader(judges=[judge]),
                       experiment_name="run", experiments_dir=sys.argv[1], show_progress=False)
print(result.total_items, flush=True)
"""

_CODES = {"bare": _BARE, "open": _OPEN, "resume": _RESUME}


def measure(items: int, repetitions: int) -> dict[str, Any]:
    """Return median seconds to read the lines, to open the run, and to resume it.

    The run is resumed on the unchanged dataset, and then with the items in another order. What the checksums
    take of opening it is measured in a process that has loaded the library.
    """
    with tempfile.TemporaryDirectory() as folder:
        dataset = Path(folder) / "items.jsonl"
        write_dataset(dataset, items)
        graded(dataset, Path(folder), "")
        votes = (Path(folder) / "run" / "votes.jsonl").stat().st_size
        rounds = [
            [_time_process(code, folder, str(dataset)) for code in _CODES.values()]
            for _ in range(1 + repetitions)
        ]
        orders = [_reversed_copy(dataset), dataset]
        moved = [_time_process(_RESUME, folder, str(orders[number % 2])) for number in range(1 + repetitions)]
        # The first round writes the byte code that an installed package has, so it does not count.
        taken = [[*one, other] for one, other in zip(rounds, moved, strict=True)][1:]
        if (Path(folder) / "run" / "votes.jsonl").stat().st_size != votes:
            raise SystemExit("resuming a finished run repeated a call")
        verify = [sys.executable, "-c", _VERIFY, folder, str(max(3, repetitions))]
        ended = subprocess.run(verify, capture_output=True, encoding="utf-8", check=True)
        verify_s, loaded_s = map(float, ended.stdout.split())
    found: dict[str, Any] = {"items": items, "verify_s": verify_s, "open_loaded_s": loaded_s}
    for name, column in zip([*_CODES, "moved"], zip(*taken, strict=True), strict=True):
        for unit, seconds in zip(("s", "ended_s", "cpu_s"), zip(*column, strict=True), strict=True):
            found[f"{name}_{unit}"] = statistics.median(seconds)
    return found


def _reversed_copy(dataset: Path) -> Path:
    """Write a copy of the dataset with its items in reverse order."""
    copy = dataset.with_name("reversed.jsonl")
    header, *lines = dataset.read_text(encoding="utf-8").splitlines(keepends=True)
    random.Random(0).shuffle(lines)
    copy.write_text("".join([header, *lines]), encoding="utf-8")
    return copy


def _time_process(code: str, *given: str) -> tuple[float, float, float]:
    """Return wall seconds until the result is printed and until the process has ended, and CPU seconds."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = f"{given[0]}/byte-code"
    before, start = os.times(), time.perf_counter()
    command = [sys.executable, "-c", code, *given]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        process.stdout.readline()
        printed = time.perf_counter() - start
    if process.returncode:
        raise SystemExit(f"a process of the benchmark ended with {process.returncode}")
    after, ended = os.times(), time.perf_counter() - start
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return printed, ended, cpu


def table(found: Sequence[dict[str, Any]]) -> str:
    """Return the figures as a Markdown table."""
    heads = (
        *("reading the lines s", "opening s", "ended s", "of the CPU", "resuming s", "ended s", "of the CPU"),
        *("in another order s", "of the CPU", "library loaded: opening s", "checksums s"),
    )
    names = (
        *("bare_s", "open_s", "open_ended_s", "open_cpu_s", "resume_s", "resume_ended_s", "resume_cpu_s"),
        *("moved_s", "moved_cpu_s", "open_loaded_s", "verify_s"),
    )
    lines: list[tuple[str, ...]] = [("items", *heads), ("--:",) * (1 + len(heads))]
    lines += [(f"{one['items']:,}", *(f"{one[name]:.2f}" for name in names)) for one in found]
    return markdown(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the requested runs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.resume", description=__doc__)
    parser.add_argument("--items", nargs="+", type=int, default=[5000, 100_000])
    parser.add_argument("--repetitions", type=int, default=5, help="number of repetitions (default 5)")
    parser.add_argument("--json", type=Path, help="file to which the figures are also written")
    given = parser.parse_args(argv)
    found = [measure(items, given.repetitions) for items in given.items]
    print_results(table(found), found, given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
