"""The fragments of the changelog, and what a release makes of them."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FRAGMENTS = sorted((ROOT / "changelog.d").iterdir())


@pytest.mark.parametrize("path", FRAGMENTS, ids=lambda path: path.name)
def test_a_fragment_is_one_entry(path: Path) -> None:
    """A fragment is a Markdown file named in small letters, with one entry of a list and nothing else."""
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*\.md", path.name)
    first, *more = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    assert re.match(r"- \S", first)
    assert all(re.match(r"  \S", line) for line in more)
    assert path.read_text(encoding="utf-8").endswith(".\n")


def test_a_release_appends_the_fragments() -> None:
    """Fragments become the last entries of what is unreleased; older versions stay as they are."""
    assembled = runpy.run_path(str(ROOT / ".ci" / "changelog.py"))["assembled"]
    old = "# Changelog\n\n## Unreleased\n\n- A.\n\n## 0.1\n\n- Z.\n"
    assert assembled(old, ["- B.\n", "- C.\n"]) == old.replace("- A.\n", "- A.\n- B.\n- C.\n")
    assert assembled("## Unreleased\n\n- A.\n", ["- B.\n"]) == "## Unreleased\n\n- A.\n- B.\n"
    with pytest.raises(SystemExit, match="no line '## Unreleased'"):
        assembled("# Changelog\n", [])
