"""Every kind of criterion and every figure has a reference page with a formula, a picture and its limits."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from autorubric import metrics
from autorubric.criteria.base import registered_kinds
from tests.pages import examples

DOCS = Path(__file__).resolve().parents[1] / "docs"
REFERENCE = DOCS / "reference"
NO_FIGURES = {
    "aggregate_scores",
    "inter_rater_reliability",
    "mean_opinion_score",
    "metric",
    "median_opinion_score",
    "agreement",
    "calibrate_probabilities",
    "compare_run",
    "compute_metrics",
    "human_agreement",
    "judge_report",
    "reliability",
    "scale_of",
    "spec",
    "spreadsheet_safe",
    "votes_table",
}
"""What brings figures together, and what is none."""
SECTIONS = {
    "kinds": ("Formula", "Picture", "Example", "When to use it", "When not to use it", "See also"),
    "metrics": ("Formula", "Picture", "Example", "When it is undefined", "When not to use it", "Source"),
}
_PICTURE = re.compile(r"^!\[(.+)\]\((\S+)\)$", re.MULTILINE)
_PAGES = [
    page for folder in SECTIONS for page in sorted((REFERENCE / folder).glob("*.md")) if page.stem != "index"
]


def _named(folder: str) -> set[str]:
    return {page.stem for page in _PAGES if page.parent.name == folder}


def test_each_kind_has_a_page() -> None:
    """The library's own kinds and the plain one; kinds that tests or packages register need none."""
    own = {
        tag for tag, kind in registered_kinds().items() if kind.__module__.startswith("autorubric.criteria.")
    }
    assert _named("kinds") == {"plain", *own}


def test_each_figure_has_a_page() -> None:
    """Public lower-case names of `autorubric.metrics`; a function with two names has a page under its own."""
    names = [name for name in {*metrics.__all__, "sample_size"} - NO_FIGURES if name[0].islower()]
    assert _named("metrics") == {getattr(metrics, name).__name__.rpartition(".")[2] for name in names}
    assert set(metrics.__all__) >= NO_FIGURES


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_page_is_whole(page: Path) -> None:
    """A page has its sections in order, an example with its output, and its own picture with a text."""
    folder, text = page.parent.name, page.read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    assert tuple(re.findall(r"^## (.+)$", prose, re.MULTILINE)) == SECTIONS[folder]
    assert any(one.language == "python" and one.output for one in examples(page))
    ((words, target),) = _PICTURE.findall(text)
    assert len(words) > 15
    assert (page.parent / target).resolve() == DOCS / "assets" / folder / f"{page.stem}.svg"


@pytest.mark.parametrize("folder", SECTIONS)
def test_index_and_navigation_name_each_page(folder: str) -> None:
    """Nobody need guess the address of a page."""
    index = (REFERENCE / folder / "index.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\((\w+)\.md\)", index)) == _named(folder)
    navigation = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    assert set(re.findall(rf"reference/{folder}/(\w+)\.md", navigation)) == {"index", *_named(folder)}


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    """The script that draws the pictures; importing it draws none."""
    pytest.importorskip("matplotlib", reason="the extra plots is not installed")
    found = importlib.util.spec_from_file_location("docs_pictures", DOCS / "pictures.py")
    assert found is not None and found.loader is not None
    script = importlib.util.module_from_spec(found)
    found.loader.exec_module(script)
    return script


def _files() -> set[str]:
    return {f"{folder}/{path.stem}" for folder in SECTIONS for path in (DOCS / "assets" / folder).iterdir()}


def test_script_draws_the_pictures_of_the_pages(pictures: ModuleType) -> None:
    """One picture for each page, no page without, and no file that nothing draws."""
    assert set(pictures.PICTURES) == _files() == {f"{page.parent.name}/{page.stem}" for page in _PAGES}


def test_pictures_are_small() -> None:
    """A page of text does not wait for its picture, and no picture holds a date."""
    for folder in SECTIONS:
        for path in (DOCS / "assets" / folder).glob("*.svg"):
            assert path.stat().st_size < 25_000, path.name
            assert "<dc:date>" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["kinds/likert", "metrics/cohen_kappa", "metrics/corrected_rate"])
def test_picture_is_drawn_alike_again(pictures: ModuleType, name: str, tmp_path: Path) -> None:
    """The same script on the same machine writes the same bytes."""
    first = pictures.written(name, tmp_path / "first").read_bytes()
    assert pictures.written(name, tmp_path / "second").read_bytes() == first
