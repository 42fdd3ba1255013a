"""Time of the import, the help and the pytest plugin, next to baselines: `python -m benchmarks.imports`.

Exits with status 1 if a case takes longer than allowed.
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
from benchmarks._output import markdown, print_results

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


# Other plugins are disabled: they take much longer than ours may, and their times vary.
_PYTEST = """
import importlib.metadata as metadata, os, sys
os.chdir({folder!r})
metadata.distributions = lambda: {found}
import pytest
code = pytest.main(["-q", "-p", "no:cacheprovider", "--strict-markers", {given}])
sys.exit(0 if code == pytest.ExitCode.NO_TESTS_COLLECTED else 1)
"""


class Case(NamedTuple):
    """A program, its baseline, and how much longer it may take."""

    title: str
    code: str
    bare_title: str
    bare: str
    most_ms: float | None


def cases(folder: Path) -> list[Case]:
    """Return all cases; `folder` is empty and receives their files."""
    metadata = _write_wheel_metadata(folder / "installed")
    empty = folder / "empty"
    empty.mkdir()
    # An own configuration, so that none of a parent folder applies.
    (empty / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    plugin = f"[metadata.Distribution.at({str(metadata)!r})]"
    with_plugin = _PYTEST.format(folder=str(empty), found=plugin, given="")
    blocked = _PYTEST.format(folder=str(empty), found=plugin, given="'-p', 'no:autorubric'")
    without = _PYTEST.format(folder=str(empty), found="[]", given="")
    return [
        Case("import autorubric", "import autorubric", "python alone", "pass", None),
        Case("autorubric --help", _HELP, "two commands in bare typer", _TYPER, 80.0),
        Case("pytest without tests, plugin loaded", with_plugin, "the same, plugin blocked", blocked, 5.0),
        # As for any distribution with a plugin, pytest reads the list of its files.
        Case("pytest without tests, plugin blocked", blocked, "the same, not installed", without, None),
    ]


def _write_wheel_metadata(folder: Path) -> Path:
    """Write the metadata of an installed wheel: pytest reads entry points and the list of files."""
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


def measure(case: Case, repetitions: int, folder: Path) -> dict[str, Any]:
    """Return median milliseconds of fresh processes that alternate between baseline and library.

    Byte code is kept in the folder, as in an installed package, including pytest's.
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
    """Return the number of modules that the program loads."""
    counting = "import atexit, sys; atexit.register(lambda: print(len(sys.modules), file=sys.stderr))\n"
    done = subprocess.run(
        [sys.executable, "-c", counting + code], check=True, capture_output=True, encoding="utf-8"
    )
    return int(done.stderr.split()[-1])


def table(found: Sequence[dict[str, Any]]) -> str:
    """Return the figures as a Markdown table."""
    heads = (
        *("case", "wall ms", "CPU ms", "modules", "baseline", "wall ms", "CPU ms"),
        *("CPU ratio", "CPU ms above", "at most"),
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
    """Measure all cases."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.imports", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=11, help="number of repetitions (default 11)")
    parser.add_argument("--json", type=Path, help="file to which the figures are also written")
    given = parser.parse_args(argv)
    with TemporaryDirectory() as folder:
        found = [measure(case, given.repetitions, Path(folder)) for case in cases(Path(folder))]
    print_results(table(found), found, given.json)
    return int(any(one["most_ms"] is not None and one["above_ms"] > one["most_ms"] for one in found))


if __name__ == "__main__":
    sys.exit(main())
