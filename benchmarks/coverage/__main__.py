"""Coverage of 95 % intervals as a Markdown table: `python -m benchmarks.coverage`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks.coverage._simulations import ALL, COMPARED, SIMULATIONS, Cell, cells
from benchmarks.coverage._tally import FLOOR, LEVEL, Tally, markdown, tally


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--replicates", type=int, default=4000, help="replicates per cell (default 4000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--workers", type=int, default=2, help="number of processes; 1 runs in the main process"
    )
    parser.add_argument("--only", nargs="+", choices=list(ALL), help="simulations to run")
    parser.add_argument("--compared", action="store_true", help="intervals that are not the default")
    parser.add_argument("--sizes", nargs="+", type=int, help="sizes to simulate")
    parser.add_argument("--json", type=Path, help="file to which the counts are also written")
    return parser.parse_args(argv)


def _simulate(wanted: Sequence[Cell], replicates: int, seed: int, workers: int) -> list[Tally]:
    count = partial(tally, replicates=replicates, seed=seed)
    if workers <= 1:
        return [count(cell) for cell in wanted]
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(count, wanted))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the simulations; return 1 if a default interval covers too little in a cell."""
    given = _arguments(argv)
    names = given.only or (COMPARED if given.compared else SIMULATIONS)
    wanted = [cell for cell in cells(names) if not given.sizes or cell.n in given.sizes]
    tallies = _simulate(wanted, given.replicates, given.seed, given.workers)
    print(markdown(tallies))
    if given.json:
        found = [one.to_dict() for one in tallies]
        given.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    short = [one for one in tallies if one.coverage < FLOOR]
    wrong = [one for one in short if one.coverage_of_given < FLOOR]
    defaults = [one for one in wrong if one.cell.simulation in SIMULATIONS]
    print(
        f"\n{len(tallies)} cells of {given.replicates} replicates, seed {given.seed}, nominal {LEVEL:.0%}. "
        f"Below {FLOOR:.0%}: {len(short)}, of which {len(short) - len(wrong)} by refusals alone."
    )
    return 1 if defaults else 0


if __name__ == "__main__":
    sys.exit(main())
