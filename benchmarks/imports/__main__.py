"""Time of the import, of the help and of the pytest plugin, beside bare ones: `python -m benchmarks.imports`.

Ends with status 1 where one takes longer above the bare one than it may.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import autorubric
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


# Other plugins are hidden: they take a hundred times as long as ours may, and differ from run to run.
_PYTEST = """
import importlib.metadata as metadata, os, sys
os.chdir({folder!r})
metadata.distributions = lambda: {found}
import pytest
code = pytest.main(["-q", "-p", "no:cacheprovider", "--strict-markers", {given}])
sys.exit(0 if code == pytest.ExitCode.NO_TESTS_COLLECTED else 1)
"""


class Case(NamedTuple):
    """A program, the bare one that it is measured beside, and how much longer it may take."""

    title: str
    code: str
    bare_title: str
    bare: str
    most_ms: float | None


def cases(folder: Path) -> list[Case]:
    """All cases; `folder` is empty, and takes what they need."""
    metadata = _as_from_a_wheel(folder / "installed")
    empty = folder / "empty"
    empty.mkdir()
    # A configuration of its own, so that none above the folder counts.
    (empty / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    plugin = f"[metadata.Distribution.at({str(metadata)!r})]"
    with_plugin = _PYTEST.format(folder=str(empty), found=plugin, given="")
    blocked = _PYTEST.format(folder=str(empty), found=plugin, given="'-p', 'no:autorubric'")
    without = _PYTEST.format(folder=str(empty), found="[]", given="")
    return [
        Case("import autorubric", "import autorubric", "python alone", "pass", None),
        Case("autorubric --help", _HELP, "two commands in bare typer", _TYPER, 80.0),
        Case("pytest without tests, plugin loaded", with_plugin, "the same, plugin blocked", blocked, 5.0),
        # What pytest does for any distribution with a plugin in it: it reads the list of its files.
        Case("pytest without tests, plugin blocked", blocked, "the same, not installed", without, None),
    ]


def _as_from_a_wheel(folder: Path) -> Path:
    """Metadata as an installed wheel has them: pytest reads the entry points and the list of files."""
    root = Path(autorubric.__file__).parent
    metadata = folder / "autorubric-0.dist-info"
    metadata.mkdir(parents=True)
    points = "[pytest11]\nautorubric = autorubric.integrations.pytest_plugin\n"
    (metadata / "entry_points.txt").write_text(points, encoding="utf-8")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: autorubric\n", encoding="utf-8")
    sources = [path.relative_to(root.parent) for path in sorted(root.rglob("*.py"))]
    compiled = [path.parent / "__pycache__" / f"{path.stem}.cpython-311.pyc" for path in sources]
    lines = [f"{path.as_posix()},sha256={'0' * 43},1000" for path in [*sources, *compiled]]
    (metadata / "RECORD").write_text("\n".join(lines), encoding="utf-8")
    return metadata


class _Taken(NamedTuple):
    wall: float
    cpu: float


def measured(case: Case, repetitions: int, folder: Path) -> dict[str, Any]:
    """Medians in milliseconds of fresh processes, the bare one and the library's in turn.

    Byte code is kept in the folder, as that of an installed package is, also what pytest makes of it.
    """
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPYCACHEPREFIX"] = f"{folder}/byte-code"
    pairs = [(_once(case.bare, env), _once(case.code, env)) for _ in range(repetitions + 1)][1:]
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
        "most_ms": case.most_ms,
        "modules": _modules(case.code),
    }


def _once(code: str, env: dict[str, str]) -> _Taken:
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, env=env)
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
        *("times as much CPU", "CPU ms above", "at most"),
    )
    lines = [heads, ("---", "--:", "--:", "--:", "---", *["--:"] * 5)]
    for one in found:
        lines.append(
            (
                *(one["case"], f"{one['wall_ms']:.0f}", f"{one['cpu_ms']:.0f}", str(one["modules"])),
                *(one["bare"], f"{one['bare_wall_ms']:.0f}", f"{one['bare_cpu_ms']:.0f}"),
                *(f"{one['ratio']:.2f}", f"{one['above_ms']:.1f}"),
                "" if one["most_ms"] is None else f"{one['most_ms']:.0f}",
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
    with TemporaryDirectory() as folder:
        found = [measured(case, given.repetitions, Path(folder)) for case in cases(Path(folder))]
    tell(table(found), found, given.json)
    return int(any(one["most_ms"] is not None and one["above_ms"] > one["most_ms"] for one in found))


if __name__ == "__main__":
    sys.exit(main())
