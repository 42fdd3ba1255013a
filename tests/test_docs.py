"""Every Python example in the README and the documentation runs, offline."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from autorubric import metrics
from tests.entry_points import write_entry_points

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_WITH_EXAMPLES = [page for page in PAGES if _EXAMPLE.search(page.read_text(encoding="utf-8"))]
_LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
_METRIC = re.compile(r"^::: autorubric\.metrics\.(\w+)$", re.MULTILINE)


@pytest.mark.parametrize("page", _WITH_EXAMPLES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run(page: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The examples of a page run one after the other in one process."""
    declared = write_entry_points(tmp_path_factory.mktemp("declared"))
    path = os.pathsep.join(filter(None, [str(declared), os.environ.get("PYTHONPATH")]))
    program = "\n".join(_EXAMPLE.findall(page.read_text(encoding="utf-8")))
    ended = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:__main__", "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Relative links of a page name files that are there."""
    for target in _LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_reference_lists_the_metrics() -> None:
    """The API page has every public name of `autorubric.metrics`, each once, and no other of it."""
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    assert sorted(_METRIC.findall(page)) == sorted(metrics.__all__)
