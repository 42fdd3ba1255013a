"""Early stopping on recorded panels of real judges: the full panel's verdicts from fewer votes."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from autorubric import Criterion, CriterionGrader, JudgeSpec, RecordedJudge, Rubric
from autorubric.criteria import Submission
from autorubric.grading import GradingTask
from tests.conftest import SHARED_DATA
from tests.proof.real_data import cells

pytestmark = pytest.mark.shared_data


@pytest.mark.parametrize("aggregation", ["majority", "unanimous", "any"])
def test_recorded_panels_decide_the_same(aggregation: Any) -> None:
    """Every cell that the judges of TTCW voted on, whichever aggregation."""
    recorded, items, rubric = _ttcw()
    judges: Any = recorded
    full = CriterionGrader(judges=judges, aggregation=aggregation)
    early = CriterionGrader(judges=judges, aggregation=aggregation, stop_when_decided=True)

    async def compare() -> int:
        saved = 0
        for item in items:
            task = GradingTask(submission=Submission(text="-"), rubric=rubric, item_id=item)
            whole = full.aggregate(task, await full.judge(task))
            stopped = early.aggregate(task, await early.judge(task))
            assert [(r.status, r.final_answer) for r in stopped.report] == [
                (r.status, r.final_answer) for r in whole.report
            ]
            assert stopped.score == whole.score
            saved += stopped.calls_saved
        return saved

    assert asyncio.run(compare()) > 0


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_any_panel_of_recorded_judges_decides_the_same(data: st.DataObject) -> None:
    """Some judges of TTCW, in any order, with any weights and under any aggregation that counts votes."""
    recorded, items, rubric = _ttcw()
    drawn = data.draw(st.lists(st.sampled_from(recorded), min_size=1, unique_by=id))
    weights = st.sampled_from([0.0, 0.1, 0.3, 1.0, 2.5])
    judges: Any = [JudgeSpec(judge, weight=data.draw(weights)) for judge in drawn]
    aggregation: Any = data.draw(st.sampled_from(["majority", "weighted", "unanimous", "any"]))
    item = data.draw(st.sampled_from(items))
    full, early = (
        rubric.grade_sync(
            "-",
            CriterionGrader(judges=judges, aggregation=aggregation, stop_when_decided=stops),
            item_id=item,
        )
        for stops in (False, True)
    )
    assert [(r.status, r.final_answer) for r in early.report] == [
        (r.status, r.final_answer) for r in full.report
    ]
    assert early.score == full.score


@cache
def _ttcw() -> tuple[list[RecordedJudge], list[str], Rubric]:
    """The judges, the items, and the criteria."""
    path = SHARED_DATA / "ttcw" / "labels.csv"
    judges = RecordedJudge.panel_from_csv(path, labels={"Yes": "MET", "No": "UNMET"})
    labels = [cell for rater in cells("ttcw").values() for cell in rater]
    names = sorted({name for _, name in labels})
    rubric = Rubric([Criterion(name=name, requirement=name) for name in names])
    return judges, sorted({item for item, _ in labels}), rubric
