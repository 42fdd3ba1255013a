"""Programs: imports, commands on a small run, and the memory of a votes table."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.reading._cases import write_run

_LIBRARIES: Final = "import numpy, pandas, scipy.special"
_METRICS: Final = "import autorubric.metrics as metrics; [getattr(metrics, name) for name in metrics.__all__]"
_COMMAND: Final = "import sys; sys.argv = ['autorubric', {words}]; from autorubric.cli import main; main()"


_MEMORY: Final = """
import json, sys
from pathlib import Path
import autorubric.metrics, numpy, pandas
from autorubric import EvalResult
from autorubric.metrics.core.read_votes import read_votes
from benchmarks.memory._run import peak
before = peak()
{read}
print(peak() - before)
"""


class Program(NamedTuple):
    """A program, and the wanted ratio of its CPU time to that of three imports."""

    title: str
    code: str
    goal: float


def measure_programs(folder: Path, repetitions: int) -> list[dict[str, Any]]:
    """Return median CPU seconds from process start, of each program and of its baseline in turn."""
    run = write_run(folder, "small", 200, "xyz")
    page = folder / "small.html"

    def command(*words: str) -> str:
        return _COMMAND.format(words=", ".join(map(repr, words)))

    programs = [
        Program("import autorubric.metrics, all names", _METRICS, 1.25),
        Program("autorubric metrics, 200 items", command("metrics", str(run)), 1.35),
        Program("autorubric show, 200 items", command("show", str(run)), 0.65),
        Program("autorubric report, 200 items", command("report", str(run), "--out", str(page)), 1.5),
    ]
    found = []
    for one in programs:
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(repetitions + 1):
            for code, seconds in zip((one.code, _LIBRARIES), times, strict=True):
                seconds.append(_cpu_of(code))
        # The first run compiles byte code.
        ours, bare = (statistics.median(seconds[1:]) for seconds in times)
        figures = {"cpu_s": ours, "bare": f"python: {_LIBRARIES}", "bare_cpu_s": bare, "ratio": ours / bare}
        found.append({"case": one.title, **figures, "goal": one.goal})
    return found


def measure_memory(run: Path) -> dict[str, Any]:
    """Return the peak MiB above start of reading a run's votes table, and of keeping the parsed lines."""
    (run / "votes.snapshot").unlink(missing_ok=True)
    votes = str(run / "votes.jsonl")
    read = f"result = EvalResult.from_experiment({str(run)!r}); read_votes(result, result.dataset)"
    bare = f"kept = [json.loads(line) for line in Path({votes!r}).open('rb')]"
    ours, theirs = (float(_run(_MEMORY.format(read=code)).stdout) for code in (read, bare))
    return {
        "case": "votes table, without a snapshot: peak MiB above start",
        "peak_mib": ours,
        "bare": "json.loads of each line of votes.jsonl, all kept",
        "bare_peak_mib": theirs,
        "ratio": ours / theirs,
        "goal": 0.25,
    }


def _run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, encoding="utf-8")


def _cpu_of(code: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _run(code)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
