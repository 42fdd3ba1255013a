"""The entry points that pyproject.toml declares, visible whatever the installed copy knows of them."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def write_entry_points(folder: Path) -> Path:
    """Writes the metadata of a distribution with them; a folder to put on the path.

    An editable install keeps the entry points of the day on which it was made.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in points.items())]
    metadata = folder / "autorubric_declared-0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "entry_points.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: autorubric-declared\nVersion: 0\n", encoding="utf-8"
    )
    return folder
