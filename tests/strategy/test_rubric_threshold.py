"""A rubric with a threshold as verify and as cost."""

from __future__ import annotations

from typing import Any

import pytest

from autorubric import Criterion, CriterionGrader, JudgeSpec, Rubric
from autorubric.apps.strategy import RubricThreshold
from autorubric.apps.strategy.criteria import RubricEvaluation
from autorubric.errors import ArgumentError
from autorubric.grading import Grader, GraderDescription
from autorubric.judges import JudgeRequest
from tests.doubles import in_loop
from tests.strategy.drafts import run
from tests.strategy.judges import LOST, SampleJudge


def rubric() -> Rubric:
    """Two criteria and a penalty."""
    return Rubric(
        [
            Criterion(name="short", requirement="It is short.", weight=6),
            Criterion(name="kind", requirement="It is kind.", weight=4),
            Criterion(name="rude", requirement="It is rude.", weight=-2),
        ]
    )


def reader(request: Any) -> str:
    """Judges by words."""
    text = request.submission.text
    found = {"short": len(text) < 10, "kind": "kind" in text, "rude": "rude" in text}
    return "MET" if found[request.criterion.name] else "UNMET"


@in_loop
async def test_a_rubric_with_a_threshold_verifies_and_costs() -> None:
    """A score that is reached passes; the better one costs less."""
    good = RubricThreshold(rubric(), CriterionGrader(judges=[reader]), 0.6)
    assert await good.verify("kind") is True
    assert await good.compute("kind") == 0.0
    result = await run(["long and rude?", "brief", "kind"], verify=good, cost=good)
    assert (result.winner, result.cost) == ("kind", 0.0)
    assert [one.verified for one in result.candidates] == [False, True, True]
    assert [one.cost for one in result.candidates] == [None, pytest.approx(0.4), 0.0]
    failed = await run(["a long rude text"], verify=good)
    assert [str(hint) for hint in failed.candidates[0].hints] == [
        "rubric (score 0.00, 0.60 needed)",
        "short (0 of 1 samples passed)",
        "kind (0 of 1 samples passed)",
        "rude (0 of 1 samples passed)",
    ]


@in_loop
async def test_a_rubric_that_cannot_be_judged_is_an_error() -> None:
    """Lost judges are neither a low score nor a high cost."""
    lost = RubricThreshold(rubric(), CriterionGrader(judges=[SampleJudge([LOST])]), 0.5)
    for result in (await run(["text"], verify=lost), await run(["text"], cost=lost)):
        assert result.winner is None
        assert "could not be judged" in result.errors[0].error


@in_loop
async def test_a_rubric_is_graded_again_with_fresh_samples() -> None:
    """Each regrading has sample indices of its own; the mean is reported."""
    judge = SampleJudge(["MET", "MET", "MET", "UNMET", "UNMET", "UNMET"])
    plain = Rubric([Criterion(name="good", requirement="It is good.")])
    grader = CriterionGrader(judges=[JudgeSpec(judge, samples=2)])
    result = await run(["text"], cost=RubricThreshold(plain, grader, 0.5), reevaluate=2)
    assert (result.cost, result.reevaluated_cost) == (0.0, 1.0)
    assert [request.sample for request in judge.asked] == [0, 1, 2, 3, 4, 5]
    assert result.reevaluation is not None
    (evaluation,) = result.reevaluation.evaluations
    assert isinstance(evaluation, RubricEvaluation)
    assert len(evaluation.reports) == 2


@in_loop
async def test_a_rubric_that_was_judged_in_part_is_flagged() -> None:
    """A criterion that was assumed or left out is no hint, and its score no reevaluated cost."""

    def partly(request: JudgeRequest) -> str:
        return "?" if request.criterion.name == "kind" else reader(request)

    partial = RubricThreshold(rubric(), CriterionGrader(judges=[partly]), 0.5)
    result = await run(["brief"], cost=partial, reevaluate=1)
    assert result.cost == pytest.approx(0.4)
    assert result.fallback_used is True
    assert result.reevaluated_cost is None
    (failed,) = (await run(["a long text"], verify=partial)).candidates
    assert [hint.criterion for hint in failed.hints] == ["rubric", "short"]


@in_loop
async def test_any_grader_will_do() -> None:
    """A grader of somebody's own is asked through grade."""
    inner = CriterionGrader(judges=[reader])

    class Own(Grader):
        async def judge(self, task: Any, *, stored: Any = None, listener: Any = None) -> Any:
            return await inner.judge(task)

        def aggregate(self, task: Any, votes: Any) -> Any:
            return inner.aggregate(task, votes)

        def describe(self) -> GraderDescription:
            return inner.describe()

    result = await run(["kind"], cost=RubricThreshold(rubric(), Own(), 0.5), reevaluate=2)
    assert (result.cost, result.reevaluated_cost) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"rubric": [1]}, "rubric must be a Rubric"),
        ({"grader": reader}, "grader must be a CriterionGrader"),
        ({"min_score": "high"}, "min_score must be a finite number; got 'high'"),
        ({"min_score": 70}, "min_score must be from 0 to 1"),
    ],
)
def test_thresholds_that_cannot_work_are_refused_when_made(options: dict[str, Any], told: str) -> None:
    """Each is an ArgumentError that says what will do."""
    given = {"rubric": rubric(), "grader": CriterionGrader(judges=[reader]), "min_score": 0.5, **options}
    with pytest.raises(ArgumentError, match=told):
        RubricThreshold(**given)


@in_loop
async def test_a_rubric_that_is_reached_is_no_hint() -> None:
    """Where a function asks for more than the rubric, it is the function that failed."""
    good = RubricThreshold(rubric(), CriterionGrader(judges=[reader]), 0.6)

    async def both(candidate: str) -> bool:
        return await good.verify(candidate) and candidate.isupper()

    (candidate,) = (await run(["kind"], verify=both)).candidates
    assert [str(hint) for hint in candidate.hints] == ["both"]
    assert candidate.verification[0].fallback_used is False
