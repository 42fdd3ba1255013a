"""Time of the import and of the help, beside bare ones: `python -m benchmarks.imports`."""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks._told import markdown, tell

_TYPER = """
import typer
app = typer.Typer(help="One command and nothing in it.")
@app.command()
def grade(path: str, judge: str = "one", samples: int = 1) -> None:
    "Grades nothing."
@app.command()
def show(path: str) -> None:
    "Shows nothing."
app(["--help"])
"""
_HELP = "import sys; sys.argv = ['autorubric', '--help']; from autorubric.cli import main; main()"


class Case(NamedTuple):
    """A program, and the bare one that it is measured beside."""

    title: str
    code: str
    bare_title: str
    bare: str


CASES = (
    Case("import autorubric", "import autorubric", "python alone", "pass"),
    Case("autorubric --help", _HELP, "two commands in bare typer", _TYPER),
)


class _Taken(NamedTuple):
    wall: float
    cpu: float


def measured(case: Case, repetitions: int) -> dict[str, Any]:
    """Medians in milliseconds of fresh processes, the bare one and the library's in turn."""
    pairs = [(_once(case.bare), _once(case.code)) for _ in range(repetitions + 1)][1:]
    bare = _Taken(*(statistics.median(one[place] for one, _ in pairs) for place in (0, 1)))
    own = _Taken(*(statistics.median(one[place] for _, one in pairs) for place in (0, 1)))
    return {
        "case": case.title,
        "bare": case.bare_title,
        "repetitions": repetitions,
        "wall_ms": 1000 * own.wall,
        "cpu_ms": 1000 * own.cpu,
        "bare_wall_ms": 1000 * bare.wall,
        "bare_cpu_ms": 1000 * bare.cpu,
        "ratio": statistics.median(two.cpu / one.cpu for one, two in pairs),
        "above_ms": 1000 * statistics.median(two.cpu - one.cpu for one, two in pairs),
        "modules": _modules(case.code),
    }


def _once(code: str) -> _Taken:
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return _Taken(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _modules(code: str) -> int:
    """How many modules the program loads."""
    counting = "import atexit, sys; atexit.register(lambda: print(len(sys.modules), file=sys.stderr))\n"
    done = subprocess.run(
        [sys.executable, "-c", counting + code], check=True, capture_output=True, encoding="utf-8"
    )
    return int(done.stderr.split()[-1])


def table(found: Sequence[dict[str, Any]]) -> str:
    """The figures as a markdown table."""
    heads = (
        *("case", "wall ms", "CPU ms", "modules", "beside", "wall ms", "CPU ms"),
        *("times as much CPU", "CPU ms above"),
    )
    lines = [heads, ("---", "--:", "--:", "--:", "---", *["--:"] * 4)]
    for one in found:
        lines.append(
            (
                *(one["case"], f"{one['wall_ms']:.0f}", f"{one['cpu_ms']:.0f}", str(one["modules"])),
                *(one["bare"], f"{one['bare_wall_ms']:.0f}", f"{one['bare_cpu_ms']:.0f}"),
                *(f"{one['ratio']:.2f}", f"{one['above_ms']:.0f}"),
            )
        )
    return markdown(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Measures all cases."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.imports", description=__doc__)
    parser.add_argument(
        "--repetitions", type=int, default=11, help="of which the median is taken (default 11)"
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    given = parser.parse_args(argv)
    found = [measured(case, given.repetitions) for case in CASES]
    tell(table(found), found, given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
