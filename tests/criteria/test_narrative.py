"""Feedback in words, which enters no score."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from autorubric import CannotAssessConfig, CannotAssessStrategy, CriterionGrader, NarrativeCriterion, Rubric
from autorubric.errors import ReplyError
from tests.doubles import TableJudge, binary, in_loop

DETAILED = NarrativeCriterion(
    name="detailed_feedback",
    description="Provide detailed feedback",
    sections={
        "strengths": "What works well",
        "weaknesses": "What needs improvement",
        "suggestions": "Actionable recommendations",
    },
)
SIMPLE = NarrativeCriterion(name="feedback", description="Provide feedback")


def test_the_evaluation_has_a_text_for_each_section() -> None:
    """Or one text, `narrative`."""
    evaluation: Any = DETAILED.evaluation_schema(strengths="s", weaknesses="w", suggestions="a")
    assert (evaluation.strengths, evaluation.criterion_name) == ("s", "detailed_feedback")
    simple: Any = SIMPLE.evaluation_schema(narrative="Well done.")
    assert simple.narrative == "Well done."
    with pytest.raises(ValidationError):
        DETAILED.evaluation_schema(strengths="s")


def test_render_names_the_sections() -> None:
    """Only where there are any."""
    assert "- weaknesses: What needs improvement" in DETAILED.render()
    assert SIMPLE.render() == "feedback: Provide feedback"


def test_a_text_has_no_value() -> None:
    """It is read as it is, and measures nothing."""
    answer = SIMPLE.read("Well done.")
    assert (answer.code, answer.value) == ("Well done.", None)
    assert SIMPLE.parse_truth("CANNOT_ASSESS") is not None
    assert SIMPLE.read("CANNOT_ASSESS").cannot_assess
    assert not SIMPLE.measures
    with pytest.raises(ReplyError):
        DETAILED.read("one text")
    with pytest.raises(ReplyError):
        SIMPLE.read(7)


@pytest.mark.parametrize(
    ("sections", "fault"),
    [
        ({}, "sections must not be empty"),
        ({"reason": "r"}, "conflicts with the field"),
        ({"dict": "d"}, "conflicts with the attribute"),
        ({"a b": "x"}, "must consist of letters"),
    ],
)
def test_bad_sections_are_refused(sections: dict[str, str], fault: str) -> None:
    """Each gives one clear error."""
    with pytest.raises(ValidationError, match=fault):
        NarrativeCriterion(name="c", sections=sections)


@pytest.mark.parametrize("weight", [0.0, 1.0, 1e6, -5.0])
@in_loop
async def test_it_never_weighs(weight: float) -> None:
    """Whatever its weight, the score is that of the other criteria."""
    feedback = NarrativeCriterion(name="feedback", weight=weight)
    rubric = Rubric([binary("a", 1.0), binary("b", 3.0), feedback])
    judge = TableJudge({"a": "UNMET", "b": "MET", "feedback": "Fine."})
    report = await CriterionGrader(judges=[judge]).grade("text", rubric)
    assert (report.score, report.raw_score, report.error) == (0.75, 3.0, None)
    assert report.report[2].final_answer == "Fine."
    assert report.judge_scores == {"table": 0.75}
    assert rubric.total_positive_weight == 4.0


@pytest.mark.parametrize("strategy", list(CannotAssessStrategy))
@in_loop
async def test_missing_feedback_never_weighs_either(strategy: CannotAssessStrategy) -> None:
    """Abstaining from it, or failing to write it, changes no score under any policy."""
    rubric = Rubric([binary("a", 1.0), SIMPLE])
    for lost in (None, ReplyError("no JSON")):
        judge = TableJudge({"a": "MET", "feedback": lost})
        grader = CriterionGrader(judges=[judge], cannot_assess_config=CannotAssessConfig(strategy=strategy))
        report = await grader.grade("text", rubric)
        assert (report.score, report.raw_score) == (1.0, 1.0)


@in_loop
async def test_feedback_alone_gives_no_score() -> None:
    """A rubric of texts has nothing to score, and says so."""
    report = await CriterionGrader(judges=[TableJudge({"feedback": "Fine."})]).grade("text", Rubric([SIMPLE]))
    assert report.score is None
    assert report.error == "no score: feedback (no value)"


@in_loop
async def test_a_panels_texts_are_all_kept() -> None:
    """Different texts are no disagreement; the decision shows the first, the votes all of them."""
    panel = [TableJudge({"feedback": text, "a": "MET"}, text) for text in ("One.", "Two.")]
    report = await CriterionGrader(judges=panel).grade("text", Rubric([binary("a"), SIMPLE]))
    feedback = report.report[1]
    assert feedback.final_answer == "One."
    assert [vote.answer for vote in feedback.votes] == ["One.", "Two."]
    assert feedback.agreement is None
    assert report.mean_agreement == 1.0


def test_a_text_may_say_that_something_cannot_be_assessed() -> None:
    """A stored text stays one, whatever it says; only a reply that says nothing else is an abstention."""
    criterion = NarrativeCriterion(name="n", requirement="r")
    stored = criterion.parse_truth("Cannot assess")
    assert stored is not None
    assert (stored.cannot_assess, stored.code) == (False, "Cannot assess")
