"""`python -m benchmarks.coverage`: prints the coverage of 95 % intervals as a markdown table."""

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
    parser.add_argument("--replicates", type=int, default=4000, help="replicates a cell (default 4000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="processes; 1 runs in this one")
    parser.add_argument("--only", nargs="+", choices=list(ALL), help="these simulations only")
    parser.add_argument("--compared", action="store_true", help="intervals that are no default instead")
    parser.add_argument("--sizes", nargs="+", type=int, help="these n only")
    parser.add_argument("--json", type=Path, help="write the counts to this file too")
    return parser.parse_args(argv)


def _simulate(wanted: Sequence[Cell], replicates: int, seed: int, workers: int) -> list[Tally]:
    count = partial(tally, replicates=replicates, seed=seed)
    if workers <= 1:
        return [count(cell) for cell in wanted]
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(count, wanted))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the simulations; 1 where intervals that are a default cover too little in some cell."""
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
