"""What a notebook shows of a rubric, a dataset, a report and results."""

from __future__ import annotations

import re
from typing import Any

import pytest

from autorubric import (
    Criterion,
    CriterionGrader,
    DataItem,
    LexicalJudge,
    Rubric,
    RubricDataset,
    evaluate_sync,
)
from autorubric.demo import demo_dataset
from autorubric.metrics import judge_report

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One object of each class that notebooks show."""
    dataset = demo_dataset().subset(range(12))
    grader = CriterionGrader(judges=[LexicalJudge()])
    folder = tmp_path_factory.mktemp("runs")
    result = evaluate_sync(dataset, grader, show_progress=False, experiments_dir=folder)
    return {
        "rubric": dataset.rubric,
        "dataset": dataset,
        "report": result.item_results[0].report,
        "result": result,
        "metrics": result.compute_metrics(),
        "judge_report": judge_report(result),
    }


@pytest.mark.parametrize("name", ["rubric", "dataset", "report", "result", "metrics", "judge_report"])
def test_each_has_a_short_card(shown: dict[str, Any], name: str) -> None:
    """A card is a table or two, balanced, without scripts, styles or addresses."""
    html = shown[name]._repr_html_()
    assert "<table>" in html
    assert len(html) < 20_000
    assert not re.search(r"<(script|style|iframe|img|a|link)\b|\son\w+=|https?:", html)
    for tag in ("div", "table", "tr", "td", "th", "p", "h4", "em"):
        assert html.count(f"<{tag}>") == html.count(f"</{tag}>")


def test_texts_are_escaped_and_cut() -> None:
    """A text of markup is text, a long one is cut, and many rows are counted."""
    rubric = Rubric([Criterion(name=f"c{at}", requirement=HOSTILE + "x" * 400) for at in range(25)])
    html = rubric._repr_html_()
    assert "<script" not in html and "<img" not in html
    assert "&lt;script&gt;" in html and "x…" in html
    assert "and 5 more rows" in html
    dataset = RubricDataset(rubric=rubric, items=[DataItem(submission=HOSTILE)])
    assert "<script" not in dataset._repr_html_()
