"""Print the peak megabytes of a process after a call: `python -m benchmarks.metrics._peak CASE SIZES`."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

from benchmarks.metrics._inputs import Sizes
from benchmarks.metrics._ours import CASES


def main(name: str, sizes: str) -> None:
    """Make the call of a case and print the peak size of the process."""
    CASES[name].prepare(Sizes(**json.loads(sizes)))()
    print(_peak() / 1e6)


def _peak() -> float:
    status = Path("/proc/self/status")
    if status.exists():
        # `ru_maxrss` is at least that of the parent process.
        (line,) = (one for one in status.read_text(encoding="utf-8").splitlines() if one.startswith("VmHWM"))
        return float(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)


if __name__ == "__main__":
    main(*sys.argv[1:])
