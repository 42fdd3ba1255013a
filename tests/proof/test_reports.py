"""Reports on the real data sets, opened in Chromium; a picture of every view is kept to be looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from autorubric import RecordedJudge, RubricDataset
from autorubric.judges import FunctionJudge, Judge
from tests.proof.real_data import llm_rubric, pairs, paperbench, run, summhay, ttcw
from tests.reports.conftest import Browser

pytestmark = pytest.mark.shared_data

VIEWS = {
    "overview": ("#/", "Items to check first"),
    "items": ("#/items", " items"),
    "heat": ("#/heat", "wrong answer"),
    "item": ("#/item/1", "All items"),
    "criteria": ("#/criteria", "Discrimination"),
    "criterion": ("#/criteria/0", "Most confusing items"),
    "judges": ("#/judges", "Bias"),
}
PHONE = ("overview", "item")
OF_THE_SET = {
    "paperbench": ("#/heat", "each item has its own"),
    "summhay": ("#/heat", "each item has its own"),
    "llmbar": ("#/heat", "second is better"),
    "ragchecker": ("#/item/1", "label b by 1"),
}
"""What must be seen on some sets."""


class RealSet(NamedTuple):
    """A data set, who judged it, and how many of its items make a report that is soon written."""

    read: Callable[[Path], RubricDataset]
    judges: Callable[[Path], Sequence[Judge]]
    n_items: int


def panel(path: Path) -> Sequence[Judge]:
    """All models of a set."""
    return RecordedJudge.panel_from_csv(path, rater_type="llm")


def in_both_orders(path: Path) -> Sequence[Judge]:
    """Three of the models that compared pairs in either order."""
    return [
        RecordedJudge.from_csv(path, orders={"ab": f"{who}@ab", "ba": f"{who}@ba"}, judge_id=who)
        for who in ("GPT-4/Vanilla", "GPT-4/CoT", "ChatGPT-0301/Vanilla")
    ]


def beside_a_person(path: Path) -> Sequence[Judge]:
    """The person who made the labels, and one who is content with everything."""
    return [
        RecordedJudge.from_csv(path, "human"),
        FunctionJudge(function=lambda request: "MET", judge_id="content"),
    ]


SETS = {
    "ttcw": RealSet(
        ttcw,
        lambda path: RecordedJudge.panel_from_csv(
            path, rater_type="llm", labels={"Yes": "MET", "No": "UNMET"}
        ),
        16,
    ),
    "summhay": RealSet(summhay, panel, 20),
    "llm_rubric": RealSet(llm_rubric, panel, 30),
    "llmbar": RealSet(pairs, in_both_orders, 40),
    "ragchecker": RealSet(lambda folder: pairs(folder, margin=2, one_order=True), panel, 40),
    "paperbench": RealSet(paperbench, beside_a_person, 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_a_report_on_real_data_opens(browser: Browser, shared_data: Path, tmp_path: Path, name: str) -> None:
    """Every view is drawn without an error, wide and narrow, and figures that the labels allow are there."""
    found = SETS[name]
    dataset = found.read(shared_data / name)
    step = -(-len(dataset) // found.n_items)
    dataset = dataset.subset(range(0, len(dataset), step))
    result = run(dataset, found.judges(shared_data / name / "labels.csv"), tmp_path)
    page_file = tmp_path / f"{name}.html"
    result.to_html(page_file)

    def look(page: Any, views: Sequence[str], size: str) -> None:
        for view in views:
            address, words = VIEWS[view]
            page.evaluate("address => { location.hash = address; }", address)
            page.get_by_text(words).first.wait_for(state="attached")
            page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
            assert page.locator("h1").count() == 1, view
            page.screenshot(path=browser.screenshots / f"{name}-{view}-{size}.png")

    def look_wide(page: Any) -> None:
        tiles = page.locator(".tile").all_inner_texts()
        assert not [words for words in tiles if "this scale does not have it" in words]
        look(page, list(VIEWS), "wide")
        if name in OF_THE_SET:
            address, words = OF_THE_SET[name]
            page.evaluate("address => { location.hash = address; }", address)
            page.get_by_text(words).first.wait_for(state="attached")

    browser.look(page_file.as_uri() + "#/", look_wide)
    browser.look(page_file.as_uri() + "#/", lambda page: look(page, PHONE, "phone"), size=(360, 740))
