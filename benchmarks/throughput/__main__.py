"""Judge calls per second and CPU per call: `python -m benchmarks.throughput`."""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from autorubric import LLMConfig, RubricDataset
from benchmarks._output import markdown, print_results
from benchmarks.throughput._runs import Measurement, bare_aiohttp, bare_litellm, library
from benchmarks.throughput._server import run_server
from benchmarks.throughput._work import CRITERIA, bodies_of, config_of, dataset_of

_BARE = {"openai_compatible": ("aiohttp", bare_aiohttp), "litellm": ("litellm acompletion", bare_litellm)}


class Case(NamedTuple):
    """A case: transport, latency and number of calls."""

    transport: str
    latency_ms: float
    calls: int


def measure(case: Case, parallel: int, repetitions: int, run: Callable[..., Any]) -> dict[str, Any]:
    """Return the figures of a case: medians of repetitions that alternate between bare client and library."""
    name, bare = _BARE[case.transport]
    dataset = dataset_of(case.calls)
    calls = len(dataset.items) * CRITERIA
    with run_server(case.latency_ms) as api_base:
        config = config_of(api_base, case.transport, parallel)
        bodies = bodies_of(dataset, config)
        _warm_up(dataset, config, bodies, lambda some, c: bare(some, c, run))
        pairs = [(bare(bodies, config, run), library(dataset, config)) for _ in range(repetitions)]
    wall, cpu = _medians([one for one, _ in pairs]), _medians([two for _, two in pairs])
    return {
        "transport": case.transport,
        "bare": name,
        "latency_ms": case.latency_ms,
        "parallel": parallel,
        "calls": calls,
        "repetitions": repetitions,
        "bare_rate": calls / wall.wall,
        "rate": calls / cpu.wall,
        "rate_ratio": statistics.median(one.wall / two.wall for one, two in pairs),
        # Of the rate at which the requests in flight could be answered, which no client exceeds.
        "ideal_ratio": calls * case.latency_ms / 1000 / parallel / cpu.wall if case.latency_ms else None,
        "bare_cpu_ms": 1000 * wall.cpu / calls,
        "cpu_ms": 1000 * cpu.cpu / calls,
        "cpu_ratio": statistics.median(two.cpu / one.cpu for one, two in pairs),
        "cpu_above_ms": 1000 * statistics.median(two.cpu - one.cpu for one, two in pairs) / calls,
    }


def _warm_up(
    dataset: RubricDataset,
    config: LLMConfig,
    bodies: Sequence[bytes],
    bare: Callable[[Sequence[bytes], LLMConfig], Measurement],
) -> None:
    bare(bodies[:500], config)
    library(dataset_of(500), config)


def _medians(taken: Sequence[Measurement]) -> Measurement:
    return Measurement(
        wall=statistics.median(one.wall for one in taken), cpu=statistics.median(one.cpu for one in taken)
    )


def table(found: Sequence[dict[str, Any]]) -> str:
    """Return the figures as a Markdown table."""
    heads = (
        *("bare client", "latency ms", "calls", "bare calls/s", "calls/s", "ratio", "of the ideal"),
        *("bare CPU ms per call", "CPU ms per call", "ratio", "CPU ms above bare"),
    )
    lines = [heads, ("---", *["--:"] * (len(heads) - 1))]
    for one in found:
        shown = (
            *(one["bare"], f"{one['latency_ms']:g}", f"{one['calls']:,}"),
            *(f"{one['bare_rate']:,.0f}", f"{one['rate']:,.0f}", f"{one['rate_ratio']:.3f}"),
            "–" if one["ideal_ratio"] is None else f"{one['ideal_ratio']:.3f}",
            *(f"{one['bare_cpu_ms']:.3f}", f"{one['cpu_ms']:.3f}"),
            *(f"{one['cpu_ratio']:.2f}", f"{one['cpu_above_ms']:.3f}"),
        )
        lines.append(shown)
    return markdown(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the requested cases."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.throughput", description=__doc__)
    parser.add_argument("--transport", nargs="+", choices=list(_BARE), default=list(_BARE))
    parser.add_argument("--latency", nargs="+", type=float, default=[0.0, 200.0], help="milliseconds")
    parser.add_argument("--parallel", type=int, default=256, help="requests at a time (default 256)")
    parser.add_argument(
        "--calls", type=int, default=12_800, help="over the direct transport (default 12,800)"
    )
    parser.add_argument("--litellm-calls", type=int, default=2560, help="over litellm's (default 2,560)")
    parser.add_argument("--repetitions", type=int, default=5, help="number of repetitions (default 5)")
    parser.add_argument("--json", type=Path, help="file to which the figures are also written")
    given = parser.parse_args(argv)
    sizes = {"openai_compatible": given.calls, "litellm": given.litellm_calls}
    found = [
        measure(Case(transport, latency, sizes[transport]), given.parallel, given.repetitions, asyncio.run)
        for transport in given.transport
        for latency in given.latency
    ]
    print_results(table(found), found, given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
