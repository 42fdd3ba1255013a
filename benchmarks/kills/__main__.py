"""Kills a run a thousand times and goes on with it: `python -m benchmarks.kills`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.kills._kills import Tally, kill_runs
from benchmarks.kills._run import CALLS, PARALLEL


def table(tally: Tally) -> str:
    """The figures as a markdown table."""
    where = ", ".join(f"{count} {place}" for place, count in sorted(tally.died.items()))
    rows = [
        ("kills", f"{tally.kills} ({where})"),
        (f"runs of {CALLS} calls, {PARALLEL} at a time", f"{tally.runs}"),
        ("votes stored at a kill, all together", f"{tally.votes}"),
        ("… lost", f"{tally.lost}"),
        ("… asked for again", f"{tally.asked_again}"),
        ("… stored twice", f"{tally.doubled}"),
        ("calls repeated, in flight at a kill", f"{tally.repeated} of {tally.calls}"),
        ("… at most after one kill", f"{tally.most_repeated}"),
        ("results unlike an uninterrupted run's", f"{tally.unequal}"),
        ("files left behind", f"{tally.leftovers}"),
    ]
    return "\n".join(
        f"| {what} | {figure} |" for what, figure in [("of a run", "count"), ("---", "--:"), *rows]
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Kills so often; 1 where anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills (default 0)")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    given = parser.parse_args(argv)
    clock = time.perf_counter()
    tally = kill_runs(given.kills, given.seed, told=lambda line: print(f"\r{line}", end="", file=sys.stderr))
    print(file=sys.stderr)
    print(table(tally))
    for fault in tally.faults:
        print(fault)
    if given.json:
        found = {**tally.to_dict(), "seed": given.seed, "seconds": round(time.perf_counter() - clock, 1)}
        given.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
