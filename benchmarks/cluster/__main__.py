"""Judge calls per second with two Ray workers, next to a local run: `python -m benchmarks.cluster`."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from autorubric import RubricDataset, evaluate_sync
from benchmarks._output import markdown, print_results
from benchmarks.throughput._server import run_server
from benchmarks.throughput._work import CRITERIA, config_of, dataset_of, grader_of

_WORKERS = 2
_ITEMS_AT_A_TIME = 128


def rate(dataset: RubricDataset, api_base: str, parallel: int, executor: str, **limits: Any) -> float:
    """Return calls per second from the first stored vote to the end, without starting processes."""
    grader = grader_of(config_of(api_base, "openai_compatible", parallel))
    with tempfile.TemporaryDirectory() as folder, _first_byte(Path(folder) / "run" / "votes.jsonl") as began:
        evaluate_sync(
            dataset,
            grader,
            executor=executor,
            experiment_name="run",
            experiments_dir=folder,
            max_concurrent_items=_ITEMS_AT_A_TIME,
            show_progress=False,
            **limits,
        )
        ended = time.perf_counter()
    return len(dataset) * CRITERIA / (ended - began())


@contextmanager
def _first_byte(file: Path) -> Iterator[Callable[[], float]]:
    """Wait until a file is no longer empty."""
    seen: list[float] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.005):
            if file.exists() and file.stat().st_size:
                seen.append(time.perf_counter())
                return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield lambda: seen[0]
    finally:
        over.set()
        thread.join()


def measure(latency_ms: float, calls: int, parallel: int, repetitions: int, **limits: Any) -> dict[str, Any]:
    """Return medians of repetitions that alternate between local and Ray."""
    dataset = dataset_of(calls)
    with run_server(latency_ms) as api_base:
        pairs = [
            tuple(rate(dataset, api_base, parallel, name, **limits) for name in ("local", "ray"))
            for _ in range(repetitions)
        ]
    return {
        "latency_ms": latency_ms,
        "parallel": parallel,
        "calls": len(dataset) * CRITERIA,
        "repetitions": repetitions,
        "max_calls": limits.get("max_calls"),
        "local_rate": statistics.median(local for local, _ in pairs),
        "ray_rate": statistics.median(there for _, there in pairs),
        "ratio": statistics.median(there / local for local, there in pairs),
    }


def table(found: Sequence[dict[str, Any]]) -> str:
    """Return the figures as a Markdown table."""
    heads = ("latency ms", "budget", "calls", "local calls/s", "calls/s over Ray", "share of local")
    lines: list[tuple[str, ...]] = [heads, ("--:",) * len(heads)]
    lines += [
        (
            *(f"{one['latency_ms']:g}", "max_calls" if one["max_calls"] else "none", f"{one['calls']:,}"),
            *(f"{one['local_rate']:,.0f}", f"{one['ray_rate']:,.0f}", f"{one['ratio']:.2f}"),
        )
        for one in found
    ]
    return markdown(lines)


@contextmanager
def cluster() -> Iterator[None]:
    """Start Ray's local cluster with two CPUs."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    ray.init(address="local", num_cpus=_WORKERS, include_dashboard=False, log_to_driver=False)
    try:
        yield
    finally:
        ray.shutdown()


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the requested latencies, without and with a budget."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("--latency", nargs="+", type=float, default=[0.0, 50.0], help="milliseconds")
    parser.add_argument("--parallel", type=int, default=256, help="requests at a time (default 256)")
    parser.add_argument("--calls", type=int, default=6400, help="default 6,400")
    parser.add_argument("--repetitions", type=int, default=3, help="number of repetitions (default 3)")
    parser.add_argument("--json", type=Path, help="file to which the figures are also written")
    given = parser.parse_args(argv)
    with cluster():
        found = [
            measure(latency, given.calls, given.parallel, given.repetitions, **limits)
            for latency in given.latency
            for limits in ({}, {"max_calls": 2 * given.calls})
        ]
    print_results(table(found), found, given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
