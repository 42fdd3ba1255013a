"""Ratings on scales with anchors."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from autorubric import CriterionGrader, LikertCriterion, LikertItem, Rubric
from autorubric.criteria import BoundInt, TextField
from autorubric.criteria.base import criterion_from_dict, criterion_to_dict
from autorubric.errors import ReplyError
from tests.doubles import TableJudge, in_loop

HELPFULNESS = LikertCriterion(
    name="helpfulness",
    description="How helpful is the response?",
    scale=[
        LikertItem(val=1, description="Not helpful at all"),
        LikertItem(val=2, description="Slightly helpful"),
        LikertItem(val=3, description="Moderately helpful"),
        LikertItem(val=4, description="Very helpful"),
        LikertItem(val=5, description="Extremely helpful"),
    ],
)
ENDS = [LikertItem(val=1, description="Not helpful"), LikertItem(val=5, description="Very helpful")]


class TestLikertCriterion:
    """The test class that the plan gives."""

    def test_evaluation_schema_generated_in_model_post_init(self) -> None:
        likert = LikertCriterion(name="helpfulness", description="Rate helpfulness", scale=ENDS)
        assert likert.evaluation_schema is not None
        assert issubclass(likert.evaluation_schema, BaseModel)

    def test_evaluation_schema_has_criterion_name(self) -> None:
        likert = LikertCriterion(name="helpfulness", description="...", scale=ENDS)
        eval_instance: Any = likert.evaluation_schema(rating=4, explanation="Good")
        assert eval_instance.criterion_name == "helpfulness"

    def test_batch_evaluation_schema_generated(self) -> None:
        likert = LikertCriterion(name="helpfulness", description="...", scale=ENDS)
        assert likert.batch_evaluation_schema is not None
        assert issubclass(likert.batch_evaluation_schema, BaseModel)

    def test_rating_constraints_enforced(self) -> None:
        likert = LikertCriterion(
            name="test",
            description="...",
            scale=[LikertItem(val=1, description="Low"), LikertItem(val=5, description="High")],
        )
        eval_valid: Any = likert.evaluation_schema(rating=3, explanation="OK")
        assert eval_valid.rating == 3
        with pytest.raises(ValidationError):
            likert.evaluation_schema(rating=10, explanation="Too high")

    def test_render_includes_scale(self) -> None:
        likert = LikertCriterion(name="helpfulness", description="Rate helpfulness", scale=ENDS)
        rendered = likert.render()
        assert "Rate helpfulness" in rendered
        assert "1: Not helpful" in rendered
        assert "5: Very helpful" in rendered

    def test_criterion_is_immutable(self) -> None:
        likert = LikertCriterion(name="test", description="...", scale=ENDS)
        with pytest.raises(ValidationError):
            likert.name = "changed"  # type: ignore[misc]


def test_a_range_without_anchors() -> None:
    """`rating=BoundInt(...)` stands for a scale without words."""
    likert = LikertCriterion(
        name="helpfulness", rating=BoundInt(min_val=1, max_val=5), explanation=TextField()
    )
    evaluation: Any = likert.evaluation_schema(rating=4, explanation="Good")
    assert (evaluation.criterion_name, evaluation.rating, evaluation.explanation) == (
        "helpfulness",
        4,
        "Good",
    )
    assert "Rating scale: 1 to 5" in likert.render()
    assert criterion_from_dict(json.loads(json.dumps(criterion_to_dict(likert)))) == likert


def test_all_whole_numbers_between_the_anchors_are_answers() -> None:
    """The listed items are anchors; what lies between them can be chosen."""
    likert = LikertCriterion(name="test", scale=ENDS)
    assert [(a.code, a.value) for a in likert.answers()] == [
        (1, 0.0),
        (2, 0.25),
        (3, 0.5),
        (4, 0.75),
        (5, 1.0),
    ]
    answer = likert.read({"rating": 2, "explanation": "meh"})
    assert (answer.code, answer.value, answer.label, answer.index, answer.reason) == (2, 0.25, "2", 1, "meh")
    assert likert.rating == BoundInt(min_val=1, max_val=5)


@pytest.mark.parametrize("reply", [0, 6, 2.5, True, "high", None, {"explanation": "none"}, [3]])
def test_what_is_no_rating_is_refused(reply: object) -> None:
    """Numbers off the scale, fractions, booleans and words are ReplyErrors."""
    with pytest.raises(ReplyError, match="helpfulness"):
        HELPFULNESS.read(reply)


def test_a_rating_may_be_a_numeral() -> None:
    """Files of labels hold texts."""
    assert HELPFULNESS.read("4").code == HELPFULNESS.read(4.0).code == HELPFULNESS.read("\u200b4").code == 4


def test_the_scale_is_sorted_and_written_without_its_range() -> None:
    """The order given does not matter; a range that repeats the scale is not written."""
    turned = LikertCriterion(name="test", scale=ENDS[::-1])
    assert turned == LikertCriterion(name="test", scale=ENDS)
    written = criterion_to_dict(turned)
    assert written["type"] == "likert"
    assert "rating" not in written
    assert criterion_from_dict(written) == turned
    told = LikertCriterion(name="t", scale=ENDS, rating=BoundInt(min_val=1, max_val=5, description="stars"))
    assert criterion_from_dict(json.loads(json.dumps(criterion_to_dict(told)))) == told
    assert "rating (a whole number from 1 to 5: stars)" in told.instruction()


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({}, "a scale is missing; set scale"),
        ({"scale": []}, "a scale is missing; set scale"),
        ({"scale": ENDS[:1]}, "at least two values; got only 1"),
        (
            {"scale": [*ENDS, LikertItem(val=5, description="Again")]},
            "scale values must be unique; repeated: 5",
        ),
        (
            {"scale": ENDS, "rating": BoundInt(min_val=1, max_val=7)},
            "is 1 to 7, but the scale ranges from 1 to 5",
        ),
        ({"rating": {"min_val": 5, "max_val": 1}}, "min_val 5 must be less than max_val 1"),
        ({"rating": {"min_val": 0, "max_val": 10**6}}, "has too many points"),
    ],
)
def test_bad_scales_are_refused(fields: dict[str, Any], fault: str) -> None:
    """Each gives one clear error."""
    with pytest.raises(ValidationError, match=fault) as caught:
        LikertCriterion(name="test", **fields)
    assert caught.value.error_count() == 1


@in_loop
async def test_a_panel_takes_the_nearest_point() -> None:
    """The mean of the ratings goes to the nearest point, a tie to the conservative one."""
    rubric = Rubric([HELPFULNESS])
    panel = [TableJudge({"helpfulness": rating}, str(rating)) for rating in (2, 3, 5)]
    report = (await CriterionGrader(judges=panel).grade("text", rubric)).report[0]
    assert (report.final_answer, report.score_value) == (3, 0.5)
    assert report.final_multi_choice_verdict is not None
    assert report.final_multi_choice_verdict.selected_label == "3"
    assert report.final_multi_choice_verdict.aggregated_value == pytest.approx(7 / 12)
    tied = (await CriterionGrader(judges=panel[:2]).grade("text", rubric)).report[0]
    assert (tied.final_answer, tied.tie) == (2, True)
    median = CriterionGrader(judges=panel, ordinal_aggregation="max")
    assert (await median.grade("text", rubric)).report[0].final_answer == 5
