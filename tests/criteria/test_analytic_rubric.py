"""Analytic rubrics: dimensions, the overall score that is computed, and panels by dimension."""

from __future__ import annotations

import pickle
import random
from typing import Any

import pytest
from pydantic import ValidationError

from autorubric import AnalyticRubricCriterion, CriterionGrader, Rubric, RubricDimension
from autorubric.criteria import Submission
from autorubric.errors import ReplyError
from tests.doubles import TableJudge, in_loop

ESSAY = AnalyticRubricCriterion(
    name="essay_quality",
    description="Evaluate essay quality",
    dimensions={
        "content": RubricDimension(
            description="Quality and relevance of content",
            min_score=1,
            max_score=5,
            levels=["Poor", "Fair", "Good", "Very Good", "Excellent"],
        ),
        "organization": RubricDimension(description="Structure and flow", min_score=1, max_score=5),
    },
)
UNEVEN = AnalyticRubricCriterion(
    name="uneven",
    dimensions={
        "form": RubricDimension(description="Form", min_score=0, max_score=10, weight=1.0),
        "depth": RubricDimension(description="Depth", min_score=1, max_score=3, weight=3.0),
    },
)


def scores(content: int, organization: int) -> dict[str, object]:
    return {
        "content_score": content,
        "content_explanation": "c",
        "organization_score": organization,
        "organization_explanation": "o",
    }


def test_the_evaluation_has_score_and_explanation_for_each_dimension() -> None:
    """The overall score is the weighted mean of the scores, in their own units."""
    evaluation: Any = ESSAY.evaluation_schema(**scores(4, 3))
    assert evaluation.overall_score == 3.5
    uneven: Any = UNEVEN.evaluation_schema(
        form_score=10, form_explanation="", depth_score=2, depth_explanation=""
    )
    assert uneven.overall_score == (10 + 3 * 2) / 4
    for wrong in (scores(6, 3), scores(0, 3), {"content_score": 3}):
        with pytest.raises(ValidationError):
            ESSAY.evaluation_schema(**wrong)


@pytest.mark.parametrize("claimed", [5.0, -3, "excellent", None, [1]])
def test_an_overall_score_that_is_given_is_not_taken(claimed: object) -> None:
    """Whatever a reply claims, it is computed; a model is not even asked for it."""
    answer = ESSAY.read({**scores(4, 3), "overall_score": claimed})
    assert answer.code == {"content_score": 4, "organization_score": 3, "overall_score": 3.5}
    assert "overall_score" not in ESSAY.wire_schema["properties"]


def test_the_value_is_the_weighted_mean_of_the_places() -> None:
    """Dimensions of different ranges count by where the score stands in them."""
    assert ESSAY.read(scores(4, 3)).value == pytest.approx((0.75 + 0.5) / 2)
    answer = UNEVEN.parse_truth({"form": 10, "depth": 2})
    assert answer is not None
    assert answer.value == pytest.approx((1.0 + 3 * 0.5) / 4)
    assert ESSAY.read(scores(4, 3)).reason == "content: c; organization: o"


def test_an_explanation_is_asked_for_before_its_score() -> None:
    """Dimension by dimension."""
    assert list(ESSAY.wire_schema["properties"]) == [
        "content_explanation",
        "content_score",
        "organization_explanation",
        "organization_score",
        "cannot_assess",
    ]


def test_render_shows_ranges_and_levels() -> None:
    """All dimensions with their ranges, and the names of the scores where there are any."""
    text = ESSAY.render()
    assert "- content (1 to 5): Quality and relevance of content" in text
    assert "  1: Poor\n  2: Fair\n  3: Good\n  4: Very Good\n  5: Excellent" in text
    assert text.endswith("- organization (1 to 5): Structure and flow")
    turned = [ESSAY.render(ESSAY.show(Submission(text="t"), random.Random(seed))) for seed in range(8)]
    assert text in turned
    assert len(set(turned)) == 2


def test_labels_by_key_by_field_or_overall() -> None:
    """Scores by key, an evaluation's fields, or the overall score where all ranges are one."""
    by_key, by_field = ESSAY.parse_truth({"content": 4, "organization": 3}), ESSAY.parse_truth(scores(4, 3))
    assert by_key is not None and by_field is not None
    assert (by_key.code, by_key.value) == (by_field.code, by_field.value)
    overall = ESSAY.parse_truth(3.5)
    assert overall is not None
    assert (overall.value, overall.label) == (0.625, "3.5")
    assert ESSAY.part_answers(overall) == (None, None)
    assert ESSAY.parse_truth(None) is None


@pytest.mark.parametrize("label", [0, 6, True, "good", {"content": 4}, {"content": 4, "organization": 9}])
def test_other_labels_are_refused(label: object) -> None:
    """Scores out of range, and dimensions without one."""
    with pytest.raises(ReplyError, match="essay_quality"):
        ESSAY.parse_truth(label)


def test_an_overall_label_needs_one_range() -> None:
    """Of dimensions with different ranges an overall score says nothing."""
    with pytest.raises(ReplyError):
        UNEVEN.parse_truth(2)


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"min_score": 5, "max_score": 1}, "min_score 5 must be less than max_score 1"),
        ({"min_score": 1, "max_score": 1}, "min_score 1 must be less than max_score 1"),
        ({"levels": ["a", "b"]}, "2 levels for the 3 scores from 1 to 3"),
        ({"levels": ["a", "b", "a"]}, "level names must be unique"),
        ({"max_score": 5000}, "at most 1001 scores; got 5000"),
        ({"weight": 0.0}, "greater than 0"),
    ],
)
def test_bad_dimensions_are_refused(fields: dict[str, Any], fault: str) -> None:
    """Each gives one clear error."""
    with pytest.raises(ValidationError, match=fault) as caught:
        RubricDimension(**{"description": "d", "min_score": 1, "max_score": 3, **fields})
    assert caught.value.error_count() == 1


@pytest.mark.parametrize(
    ("key", "fault"),
    [
        ("overall", "conflicts with the field 'overall_score'"),
        ("_content", "starts with an underscore"),
        ("good content", "must consist of letters"),
    ],
)
def test_bad_keys_are_refused(key: str, fault: str) -> None:
    """A key's fields may not collide with those that are there."""
    with pytest.raises(ValidationError, match=fault):
        AnalyticRubricCriterion(name="c", dimensions={key: ESSAY.dimensions["content"]})


def test_no_dimensions_are_refused() -> None:
    """At least one is needed."""
    with pytest.raises(ValidationError, match="dimensions must not be empty"):
        AnalyticRubricCriterion(name="c", dimensions={})


@in_loop
async def test_a_panel_decides_dimension_by_dimension() -> None:
    """Each dimension by the nearest score to the mean; the overall score follows."""
    given = [scores(5, 1), scores(4, 2), scores(4, 5)]
    panel = [TableJudge({"essay_quality": one}, str(i)) for i, one in enumerate(given)]
    report = await CriterionGrader(judges=panel).grade("text", Rubric([ESSAY]))
    decided = report.report[0]
    assert decided.final_answer == {"content_score": 4, "organization_score": 3, "overall_score": 3.5}
    assert report.score == pytest.approx((0.75 + 0.5) / 2)
    assert decided.agreement == pytest.approx(2 / 6)
    lowest = CriterionGrader(judges=panel, ordinal_aggregation="min")
    assert (await lowest.grade("text", Rubric([ESSAY]))).report[0].final_answer["overall_score"] == 2.5


def test_changed_weights_ask_no_judge_again() -> None:
    """What a vote depends on is not what a dimension counts."""
    fields = {key: one.model_copy(update={"weight": 2.0}) for key, one in UNEVEN.dimensions.items()}
    assert AnalyticRubricCriterion(name="uneven", dimensions=fields).vote_fields() == UNEVEN.vote_fields()


def test_a_key_may_not_be_a_field_of_another() -> None:
    """`x` makes `x_score`; a dimension of that name would be taken for it."""
    dimension = RubricDimension(description="d", min_score=1, max_score=3)
    with pytest.raises(ValidationError, match="'x_score' conflicts with an evaluation field"):
        AnalyticRubricCriterion(name="c", dimensions={"x": dimension, "x_score": dimension})


def test_dimensions_do_not_change() -> None:
    """A criterion is a value: it has a hash, and what is in it stays."""
    one = AnalyticRubricCriterion(
        name="c", dimensions={"x": RubricDimension(description="d", min_score=1, max_score=3)}
    )
    with pytest.raises(TypeError, match="criteria are immutable"):
        one.dimensions.pop("x")
    assert hash(one) == hash(one.model_copy())
    assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301 - our own bytes
