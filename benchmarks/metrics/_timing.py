"""Time and memory of a call."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
import tracemalloc
from dataclasses import asdict, dataclass

from benchmarks.metrics._inputs import Sizes
from benchmarks.metrics._ours import CASES, Call


@dataclass(frozen=True, slots=True)
class Seconds:
    """Medians over repetitions.

    Attributes:
        wall: Wall time, which depends on other work on the machine.
        cpu: CPU time of all threads of this process.
    """

    wall: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Megabytes:
    """Memory of a case.

    Attributes:
        allocated: Peak that the call allocated in addition to its input.
        process: Peak size of a fresh process that builds the input and makes the call.
    """

    allocated: float
    process: float


def seconds(call: Call, repetitions: int) -> Seconds:
    """Return median times of a call, after one warm-up call."""
    call()
    walls, cpus = [], []
    for _ in range(repetitions):
        wall, cpu = time.perf_counter(), time.process_time()
        call()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return Seconds(statistics.median(walls), statistics.median(cpus))


def megabytes(name: str, sizes: Sizes) -> Megabytes:
    """Return the peak memory of a case."""
    call = CASES[name].prepare(sizes)
    call()
    tracemalloc.start()
    try:
        call()
        allocated = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return Megabytes(allocated / 1e6, _process_peak(name, sizes))


def _process_peak(name: str, sizes: Sizes) -> float:
    """Return the peak of a process that only loads the package."""
    command = [sys.executable, "-m", "benchmarks.metrics._peak", name, json.dumps(asdict(sizes))]
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run(command, env=paths, capture_output=True, text=True, check=True)
    return float(found.stdout)
