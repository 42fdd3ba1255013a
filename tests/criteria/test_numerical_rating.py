"""Scores as numbers, and modes that compare with a reference."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from autorubric import CriterionGrader, JudgeSpec, NumericalRatingCriterion, Rubric
from autorubric.errors import ArgumentError, ReplyError
from tests.doubles import TableJudge, in_loop, model_judge

CLARITY = NumericalRatingCriterion(
    name="clarity", description="Rate the clarity of the response", min_value=0.0, max_value=10.0
)


def test_the_evaluation_has_score_and_explanation() -> None:
    """The score must lie in the range."""
    evaluation = CLARITY.evaluation_schema(score=7.5, explanation="Good")
    assert evaluation.model_dump() == {"criterion_name": "clarity", "score": 7.5, "explanation": "Good"}
    for score in (-0.1, 10.1, float("nan")):
        with pytest.raises(ValidationError):
            CLARITY.evaluation_schema(score=score, explanation="")


def test_render_shows_the_range() -> None:
    """The range stands below the requirement."""
    assert CLARITY.render() == "clarity: Rate the clarity of the response\nRating range: 0 to 10"


def test_the_value_is_the_place_in_the_range() -> None:
    """`(score - min) / (max - min)`, for bare numbers and evaluations."""
    criterion = NumericalRatingCriterion(name="c", min_value=-1.0, max_value=3.0)
    assert criterion.read({"score": 2, "explanation": "ok"}).value == 0.75
    answer = CLARITY.read("7.5")
    assert (answer.code, answer.value, answer.label) == (7.5, 0.75, "7.5")
    assert CLARITY.level == "interval"


@pytest.mark.parametrize("reply", [-1, 11, True, "high", float("inf"), [5], {"explanation": "none"}])
def test_what_is_no_score_is_refused(reply: object) -> None:
    """Numbers out of range, booleans and words are ReplyErrors."""
    with pytest.raises(ReplyError, match="clarity"):
        CLARITY.read(reply)


@pytest.mark.parametrize(
    ("low", "high", "fault"),
    [
        (10.0, 0.0, "min_value 10 must be less than max_value 0"),
        (1.0, 1.0, "min_value 1 must be less than max_value 1"),
        (-1e308, 1e308, "too wide for a float"),
        (0.0, float("inf"), "finite"),
    ],
)
def test_bad_ranges_are_refused(low: float, high: float, fault: str) -> None:
    """Each gives one clear error."""
    with pytest.raises(ValidationError, match=fault) as caught:
        NumericalRatingCriterion(name="c", min_value=low, max_value=high)
    assert caught.value.error_count() == 1


@pytest.mark.parametrize(
    ("method", "score"), [("mean", 6.0), ("median", 5.0), ("min", 4.0), ("max", 9.0), ("weighted_mean", 7.0)]
)
@in_loop
async def test_a_panels_score_need_not_be_anybodys(method: Any, score: float) -> None:
    """Numbers are combined as numbers, in their own units."""
    panel = [
        JudgeSpec(TableJudge({"clarity": given}, str(given)), str(given), weight=weight)
        for given, weight in ((4.0, 1.0), (5.0, 1.0), (9.0, 2.25))
    ]
    grader = CriterionGrader(judges=panel, ordinal_aggregation=method)
    report = (await grader.grade("text", Rubric([CLARITY]))).report[0]
    if method == "weighted_mean":
        score = (4 + 5 + 9 * 2.25) / 4.25
    assert report.final_answer == pytest.approx(score)
    assert report.score_value == pytest.approx(score / 10)


@pytest.mark.parametrize("mode", ["relative_to_target", "relative_to_exemplar"])
@in_loop
async def test_a_mode_changes_the_instruction_and_not_the_value(mode: Any) -> None:
    """Without a reference nothing is sent; with one the judge is told what it is, and values are the same."""
    criterion = NumericalRatingCriterion(name="near", requirement="How near is it?", mode=mode)
    judge, transport = model_judge([{"score": 5.0, "explanation": "half"}])
    grader = CriterionGrader(judges=[judge])
    with pytest.raises(ArgumentError, match="near requires a reference"):
        await grader.grade("Paris", Rubric([criterion]), item_id="i1")
    assert transport.requests == []
    report = await grader.grade("Paris", Rubric([criterion]), reference_submission="Lyon")
    assert report.score == 0.5
    assert criterion.instruction() in transport.prompts[0]
    absolute = NumericalRatingCriterion(name="near", requirement="How near is it?")
    assert criterion.instruction().endswith(absolute.instruction())
    assert criterion.wire_schema == absolute.wire_schema
    assert not absolute.needs_reference
