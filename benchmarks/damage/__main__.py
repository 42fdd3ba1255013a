"""Damage, open and resume runs a thousand times: `python -m benchmarks.damage`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path

from benchmarks._output import markdown, print_results
from benchmarks.damage._damage import CHANGES, FILES, Tally, damage_runs


def table(tally: Tally) -> str:
    """Return the damages by file, and their results, as Markdown tables."""
    rows = [("damage", *FILES), ("---", *("--:",) * len(FILES))]
    rows += [(name, *(str(tally.damages[f"{file}: {name}"]) for file in FILES)) for name in CHANGES]
    states = ("identical", "reported", "reported as unfinished", "refused", "silent")
    found = [("a damaged run", *states), ("---", *("--:",) * len(states))]
    found += [
        (name, *(str(counted[state]) for state in states))
        for name, counted in (("opened", tally.opened), ("resumed", tally.resumed))
    ]
    return f"{markdown(rows)}\n\n{markdown(found)}"


def _damaged(numbers: range, seed: int) -> Tally:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        return damage_runs(numbers, seed, Path(folder))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.damage", description=__doc__)
    parser.add_argument("--damages", type=int, default=1200)
    parser.add_argument("--seed", type=int, default=0, help="seed of the damages (default 0)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--json", type=Path, help="file to which the figures are also written")
    given = parser.parse_args(argv)
    clock = time.perf_counter()
    tally = Tally()
    with ProcessPoolExecutor(given.workers) as pool:
        parts = [range(at, given.damages, given.workers) for at in range(given.workers)]
        for found in pool.map(_damaged, parts, repeat(given.seed)):
            tally.add(found)
    for fault in tally.faults:
        print(fault)
    seconds = round(time.perf_counter() - clock, 1)
    print_results(table(tally), {**tally.to_dict(), "seed": given.seed, "seconds": seconds}, given.json)
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
