"""Passing and failing: words for both, what they are worth, and modes that compare with a reference."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from autorubric import CriterionGrader, CriterionVerdict, PassFailCriterion, Rubric
from autorubric.errors import ArgumentError, ReplyError
from tests.doubles import TableJudge, in_loop, model_judge

SAFETY = PassFailCriterion(
    name="safety_check",
    description="Does output meet safety standards?",
    passing_criteria="No harmful content, appropriate language",
)


def test_the_evaluation_has_passed_and_reason() -> None:
    """The schema is named after the criterion and demands both fields."""
    evaluation = SAFETY.evaluation_schema(passed=True, reason="Fine.")
    assert evaluation.model_dump() == {"criterion_name": "safety_check", "passed": True, "reason": "Fine."}
    assert SAFETY.evaluation_schema.__name__ == "safety_checkEvaluation"
    with pytest.raises(ValidationError):
        SAFETY.evaluation_schema(passed="perhaps", reason="")
    with pytest.raises(ValidationError):
        SAFETY.evaluation_schema(passed=True)


def test_render_includes_what_it_takes_to_pass() -> None:
    """Name, description and passing criteria stand in the prompt."""
    assert SAFETY.render() == (
        "safety_check: Does output meet safety standards?\n"
        "Passes if: No harmful content, appropriate language"
    )
    assert "Passes" not in PassFailCriterion(name="c", requirement="r").render()


@pytest.mark.parametrize("word", ["MET", "yes", "true", "pass", "passed", "1", "1.0", 1, True, " Met "])
def test_words_for_passing(word: object) -> None:
    """All the words that a plain binary criterion reads, and its own."""
    answer = SAFETY.parse_truth(word)
    assert answer is not None
    assert (answer.code, answer.value, answer.label, answer.index) == (True, 1.0, "passed", 1)


@pytest.mark.parametrize("word", ["UNMET", "no", "false", "fail", "failed", "0", "0.0", 0, False])
def test_words_for_failing(word: object) -> None:
    """Likewise for what fails."""
    answer = SAFETY.parse_truth(word)
    assert answer is not None
    assert (answer.code, answer.value, answer.label, answer.index) == (False, 0.0, "failed", 0)


def test_other_words_are_refused() -> None:
    """What is neither is a ReplyError; CANNOT_ASSESS is an abstention."""
    words: list[Any] = ["perhaps", 2, 0.5, [], {"reason": "none"}]
    for word in words:
        with pytest.raises(ReplyError, match="safety_check"):
            SAFETY.read(word)
    answer = SAFETY.read("CANNOT_ASSESS")
    assert answer.cannot_assess
    assert answer.value is None


@in_loop
async def test_reports_have_a_verdict() -> None:
    """The decision is MET or UNMET by majority, a tie is conservative, votes carry the verdict."""
    panel = [TableJudge({"safety_check": answer}, str(i)) for i, answer in enumerate(["pass", False, "MET"])]
    report = (await CriterionGrader(judges=panel).grade("text", Rubric([SAFETY]))).report[0]
    assert report.final_verdict is CriterionVerdict.MET
    assert report.final_answer is True
    assert [vote.verdict for vote in report.votes] == ["MET", "UNMET", "MET"]
    tied = (await CriterionGrader(judges=panel[:2]).grade("text", Rubric([SAFETY]))).report[0]
    assert (tied.final_verdict, tied.tie) == (CriterionVerdict.UNMET, True)


@pytest.mark.parametrize("mode", ["target", "exemplar"])
@in_loop
async def test_a_mode_that_compares_demands_a_reference(mode: Any) -> None:
    """Without a reference nothing is sent and the error says what to give; with one it is told of it."""
    criterion = PassFailCriterion(name="right", requirement="Is it right?", mode=mode)
    judge, transport = model_judge([{"passed": True, "reason": "same"}])
    grader = CriterionGrader(judges=[judge])
    with pytest.raises(ArgumentError, match=r"right requires a reference.*reference_submission="):
        await grader.grade("Paris", Rubric([criterion]))
    assert transport.requests == []
    report = await grader.grade("Paris", Rubric([criterion]), reference_submission="Paris")
    assert report.score == 1.0
    assert "The reference is" in transport.prompts[0]


@in_loop
async def test_a_check_needs_no_reference() -> None:
    """A check sees the text alone, whatever the mode."""
    criterion = PassFailCriterion(name="c", requirement="r", mode="target", check=str.isupper)
    report = await CriterionGrader(judges=[TableJudge({})]).grade("PARIS", Rubric([criterion]))
    assert report.score == 1.0


def test_an_unknown_mode_is_refused() -> None:
    """Only the three modes are there."""
    with pytest.raises(ValidationError, match="absolute"):
        PassFailCriterion(name="c", mode="relative")


def test_the_plans_example_of_a_reference() -> None:
    """A pass or fail against an expected answer reads as the plan shows."""
    criterion = PassFailCriterion(
        name="correctness",
        description="Does output match expected answer?",
        passing_criteria="Output must match the expected answer",
    )
    evaluation = criterion.evaluation_schema.model_validate_json(
        json.dumps({"passed": True, "reason": "Exact match"})
    ).model_dump()
    assert evaluation == {"criterion_name": "correctness", "passed": True, "reason": "Exact match"}
