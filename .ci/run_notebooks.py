"""Execute every notebook of a folder, and compare its printed outputs with the stored ones.

A cell that raises, another output, or more than a minute fails the run. `--write` stores the outputs instead.
"""

from __future__ import annotations

import re
import resource
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

MOST_SECONDS = 60.0
"""What a notebook may take."""


_VARIES = re.compile(r"^.*(seconds|latency|/tmp/).*$", re.MULTILINE)
"""Lines whose text differs between runs."""


def main(folder: Path, most: float = MOST_SECONDS, *, write: bool = False) -> int:
    """Run the notebooks of `folder` in the order of their names; return 1 if one fails."""
    failed = []
    for path in sorted(folder.glob("*.ipynb")):
        stored = nbformat.read(path, as_version=4)
        made, seconds, processor = _run(path)
        sys.stdout.write(f"{path.name}: {seconds:.1f} s, {processor:.1f} s of the processor\n")
        # A busy machine adds to the one, several threads to the other; a slow notebook has both.
        if min(seconds, processor) > most:
            failed.append(f"{path.name} takes more than {most:g} s")
        if write:
            nbformat.write(made, path)
        failed += [f"{path.name}: {one}" for one in ([] if write else _differences(stored, made))]
    sys.stdout.writelines(f"{one}\n" for one in failed)
    return int(bool(failed))


def _differences(stored: nbformat.NotebookNode, made: nbformat.NotebookNode) -> list[str]:
    """The cells whose printed text is not the stored one."""
    pairs = zip(stored.cells, made.cells, strict=True)
    return [
        f"cell {at} prints\n{_printed(now)}\nand has stored\n{_printed(before)}"
        for at, (before, now) in enumerate(pairs)
        if _printed(before) != _printed(now)
    ]


def _printed(cell: nbformat.NotebookNode) -> str:
    streams = (
        one.text for one in cell.get("outputs", []) if one.output_type == "stream" and one.name == "stdout"
    )
    return _VARIES.sub("", "".join(streams)).strip()


def _run(path: Path) -> tuple[nbformat.NotebookNode, float, float]:
    """The executed notebook, and seconds by the clock and of the processor that it and its kernel took."""
    notebook = nbformat.read(path, as_version=4)
    begun, before = time.perf_counter(), _processor()
    with tempfile.TemporaryDirectory() as scratch:
        resources = {"metadata": {"path": scratch}}
        NotebookClient(notebook, timeout=600, resources=resources, record_timing=False).execute()
    return notebook, time.perf_counter() - begun, _processor() - before


def _processor() -> float:
    """Seconds of the processor that ended processes of this one took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), write="--write" in sys.argv[2:]))
