"""Executes every notebook of a folder in a fresh kernel; a cell that raises fails the run."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient


def main(folder: Path) -> None:
    """Runs the notebooks of `folder`, in the order of their names."""
    for path in sorted(folder.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        with tempfile.TemporaryDirectory() as scratch:
            NotebookClient(notebook, timeout=600, resources={"metadata": {"path": scratch}}).execute()
        sys.stdout.write(f"{path.name}: {len(notebook.cells)} cells ran\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
