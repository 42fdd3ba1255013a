"""Kill and resume runs a thousand times: `python -m benchmarks.kills`."""

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
    """Return the figures as a Markdown table."""
    where = ", ".join(f"{count} {place}" for place, count in sorted(tally.died.items()))
    rows = [
        ("kills", f"{tally.kills} ({where})"),
        (f"runs of {CALLS} calls, {PARALLEL} at a time", f"{tally.runs}"),
        ("votes stored at a kill, summed over kills", f"{tally.votes}"),
        ("… lost", f"{tally.lost}"),
        ("… requested again", f"{tally.asked_again}"),
        ("… stored twice", f"{tally.doubled}"),
        ("calls repeated, in flight at a kill", f"{tally.repeated} of {tally.calls}"),
        ("… maximum after one kill", f"{tally.most_repeated}"),
        ("results that differ from an uninterrupted run", f"{tally.unequal}"),
        ("files left behind", f"{tally.leftovers}"),
    ]
    return "\n".join(
        f"| {what} | {figure} |" for what, figure in [("of a run", "count"), ("---", "--:"), *rows]
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="seed of the times of the kills (default 0)")
    parser.add_argument("--json", type=Path, help="file to which the figures are also written")
    given = parser.parse_args(argv)
    clock = time.perf_counter()
    tally = kill_runs(
        given.kills, given.seed, report=lambda line: print(f"\r{line}", end="", file=sys.stderr)
    )
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
