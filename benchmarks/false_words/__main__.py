"""False words and coverage in worlds with known truth: `python -m benchmarks.false_words`.

Exits with status 1 if a false word is significantly more frequent than .05, or an interval covers less
than .93.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import pkgutil
import sys
import zlib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import benchmarks.false_words as package
from benchmarks._output import machine, markdown, print_results
from benchmarks.false_words._rows import Row

ALPHA, COVERED = 0.05, 0.93
CHUNK = 50


def rows() -> list[Row]:
    """Return the rows of all modules of the package, in the order of the modules' names."""
    names = sorted(one.name for one in pkgutil.iter_modules(package.__path__) if one.name[0] != "_")
    return [row for name in names for row in importlib.import_module(f"{package.__name__}.{name}").ROWS]


def draw(row: Row, seed: int, start: int, stop: int) -> list[bool | None]:
    """Return the outcomes of worlds `start` to `stop`, each with a seed of its own."""
    with threadpool_limits(1):
        return [
            row.world(np.random.default_rng([seed, zlib.crc32(row.name.encode()), at]))
            for at in range(start, stop)
        ]


def measure(row: Row, worlds: int, seed: int, pool: ProcessPoolExecutor | None) -> dict[str, object]:
    """Return the share of worlds in which the row's claim is true, and whether it is within its limit."""
    starts = range(0, worlds, CHUNK)
    stops = [min(start + CHUNK, worlds) for start in starts]
    run = partial(draw, row, seed)
    chunks = pool.map(run, starts, stops) if pool else map(run, starts, stops)
    outcomes = [one for chunk in chunks for one in chunk]
    n = sum(one is not None for one in outcomes) if row.kind == "coverage" else len(outcomes)
    share = sum(one is True for one in outcomes) / n if n else math.nan
    # With 2,000 worlds, a one-sided test at .01 allows a share of .0615.
    bound = 2.36 * math.sqrt(ALPHA * (1 - ALPHA) / worlds)
    passed = {"false word": share <= ALPHA + bound, "coverage": share >= COVERED, "power": True}[row.kind]
    return {
        "name": row.name, "claim": row.claim, "kind": row.kind, "worlds": n, "share": round(share, 4),
        "passed": passed, "seed": seed,
    }  # fmt: skip


def _save(figure: dict[str, object], file: Path) -> None:
    """Write the figures of a row among those of the other rows in the file, in the order of `rows`."""
    held = json.loads(file.read_text(encoding="utf-8"))["figures"] if file.exists() else []
    known = {one["name"]: one for one in (*held, figure)}
    figures = [known[row.name] for row in rows() if row.name in known]
    text = json.dumps({"machine": machine(), "figures": figures}, indent=2)
    file.write_text(text + "\n", encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the simulations."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.false_words", description=__doc__)
    parser.add_argument("--worlds", type=int, default=2000, help="worlds per row (default 2000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[], help="rows whose names start with these texts")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", type=Path, help="file of figures, whose other rows are kept")
    given = parser.parse_args(argv)
    chosen = [one for one in rows() if not given.only or one.name.startswith(tuple(given.only))]
    found: list[dict[str, object]] = []
    with ProcessPoolExecutor(given.processes) if given.processes > 1 else nullcontext() as pool:
        for row in chosen:
            found.append(measure(row, given.worlds, given.seed, pool))
            if given.json is not None:
                _save(found[-1], given.json)
    heads = ("row", "claim", "kind", "worlds", "share", "within its limit")
    lines = [heads, ("---", "---", "---", "--:", "--:", "---")]
    lines += [
        (str(one["name"]), str(one["claim"]), str(one["kind"]), str(one["worlds"]), f"{one['share']:.3f}",
         "yes" if one["passed"] else "NO")
        for one in found
    ]  # fmt: skip
    print_results(markdown(lines), found, None)
    return int(not all(one["passed"] for one in found))


if __name__ == "__main__":
    sys.exit(main())
