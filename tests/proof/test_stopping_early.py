"""Early stopping on recorded panels of real judges: the full panel's verdicts from fewer votes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from autorubric import Criterion, CriterionGrader, RecordedJudge, Rubric
from autorubric.graders import GradingTask
from autorubric.values import Submission
from tests.conftest import SHARED_DATA
from tests.proof.real_data import cells

pytestmark = pytest.mark.shared_data


@pytest.mark.parametrize("aggregation", ["majority", "unanimous", "any"])
def test_recorded_panels_decide_the_same(aggregation: Any) -> None:
    """Every cell that the judges of TTCW voted on, whichever aggregation."""
    path = SHARED_DATA / "ttcw" / "labels.csv"
    judges: Any = RecordedJudge.panel_from_csv(path, labels={"Yes": "MET", "No": "UNMET"})
    labels = [cell for rater in cells("ttcw").values() for cell in rater]
    items = sorted({item for item, _ in labels})
    rubric = Rubric([Criterion(name=name, requirement=name) for name in sorted({name for _, name in labels})])
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
