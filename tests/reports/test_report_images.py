"""Images and parts of transcripts on the page of an item."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from autorubric import CriterionGrader, DataItem, JudgeReply, RubricDataset
from autorubric.criteria import image_part
from autorubric.judges import JudgeRequest
from tests.reports.conftest import Browser
from tests.runs.runs import run, small_rubric
from tests.test_images import png, text


def test_images_are_shown_under_the_policy_of_the_page(browser: Browser, tmp_path: Path) -> None:
    """An image in the item is drawn, one at an address is named and not loaded, and the part is stated."""

    def judge(request: JudgeRequest) -> JudgeReply:
        return replace(JudgeReply(answer="UNMET"), truncated=True, shown="turns 1-3 of 9")

    parts = [text("Look:"), image_part(png()), image_part("https://images.invalid/<b>.png")]
    item = DataItem(submission=parts, prompt=[image_part(png(1))])
    dataset = RubricDataset(rubric=small_rubric(), items=[item])
    result = run(tmp_path, None, dataset, grader=CriterionGrader(judges=[judge]))
    result.to_html(tmp_path / "page.html")

    def look(page: Any) -> None:
        page.wait_for_selector("img.shown")
        images = "[...document.querySelectorAll('img.shown')].map(one => [one.alt, one.naturalWidth])"
        assert page.evaluate(images) == [["image 1", 1], ["query image 3", 1]]
        words = page.locator(".texts").inner_text()
        assert "Look:\n[image 1]\n[image 2]" in words
        assert "https://images.invalid/<b>.png" in words
        assert "judged on turns 1-3 of 9" in page.locator(".vote").first.inner_text()

    browser.look((tmp_path / "page.html").as_uri() + "#/item/0", look)
