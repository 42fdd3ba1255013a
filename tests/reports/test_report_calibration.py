"""The reliability diagrams of a report, in Chromium."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from autorubric import Criterion, CriterionGrader, DataItem, JudgeReply, Rubric, RubricDataset, evaluate_sync
from autorubric.judges import JudgeRequest
from autorubric.metrics import judge_report
from tests.attacks.hostile import TEXTS
from tests.reports.conftest import Browser

NAME = f"clear {TEXTS['html']}"


def sure(request: JudgeRequest) -> JudgeReply:
    """A judge that is surer of texts with larger numbers."""
    share = int(request.submission.text or 0) / 40
    return JudgeReply(answer=None, probabilities={"MET": share, "UNMET": 1 - share})


@pytest.mark.slow
def test_each_bin_is_a_dot_in_the_diagram(browser: Browser, tmp_path: Path) -> None:
    """The page of judges draws one diagram, with a dot and its figures for each bin, and no other text."""
    rng = random.Random(0)
    items = [
        DataItem(submission=str(at), ground_truth={NAME: "MET" if rng.random() < at / 40 else "UNMET"})
        for at in range(41)
    ]
    rubric = Rubric([Criterion(name=NAME, requirement="It is clear.")])
    dataset = RubricDataset(name="d", rubric=rubric, items=items)
    run = evaluate_sync(
        dataset, CriterionGrader(judges=[sure]), show_progress=False, experiments_dir=tmp_path
    )
    run.to_html(tmp_path / "page.html")
    curve = judge_report(run).per_judge["sure"].probabilities[NAME].curve

    def look(page: Any) -> None:
        page.get_by_text("Calibration of probabilities").wait_for()
        assert page.locator(".diagrams figure").count() == 1
        assert page.locator(".diagrams .dot").count() == len(curve.bins) > 5
        first = page.locator(".diagrams g title").first.text_content()
        assert first.startswith(f"mean forecast {curve.bins[0].forecast:.2f}, rate ")
        page.screenshot(path=browser.screenshots / "calibration.png", full_page=True)

    browser.look((tmp_path / "page.html").as_uri() + "#/judges", look)
