"""Executes every notebook of a folder; a cell that raises, or more than a minute, fails the run."""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

MOST_SECONDS = 60.0
"""What a notebook may take."""


def main(folder: Path, most: float = MOST_SECONDS) -> int:
    """Runs the notebooks of `folder`, in the order of their names; 1 where one takes longer than `most`."""
    slow = []
    for path in sorted(folder.glob("*.ipynb")):
        seconds, processor = _run(path)
        sys.stdout.write(f"{path.name}: {seconds:.1f} s, {processor:.1f} s of the processor\n")
        # A busy machine adds to the one, several threads to the other; a slow notebook has both.
        if min(seconds, processor) > most:
            slow.append(path.name)
    if slow:
        sys.stdout.write(f"more than {most:g} s: {', '.join(slow)}\n")
    return int(bool(slow))


def _run(path: Path) -> tuple[float, float]:
    """Seconds by the clock, and of the processor, that the notebook and its kernel took."""
    notebook = nbformat.read(path, as_version=4)
    begun, before = time.perf_counter(), _processor()
    with tempfile.TemporaryDirectory() as scratch:
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": scratch}}).execute()
    return time.perf_counter() - begun, _processor() - before


def _processor() -> float:
    """Seconds of the processor that ended processes of this one took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
