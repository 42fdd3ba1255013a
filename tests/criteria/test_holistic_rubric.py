"""Holistic rubrics: levels by name and index, which must agree."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from autorubric import CriterionGrader, HolisticRubricCriterion, Rubric, RubricLevel
from autorubric.errors import ReplyError
from tests.doubles import TableJudge, in_loop

LEVELS = [
    RubricLevel(name="Beginning", index=1, description="Well below standards"),
    RubricLevel(name="Developing", index=2, description="Approaching standards"),
    RubricLevel(name="Proficient", index=3, description="Meets standards"),
    RubricLevel(name="Exemplary", index=4, description="Exceeds standards"),
]
OVERALL = HolisticRubricCriterion(
    name="overall_quality", description="Overall response quality", levels=LEVELS
)


def test_the_evaluation_has_level_index_and_explanation() -> None:
    """Name and index must be those of one level."""
    evaluation = OVERALL.evaluation_schema(level="Proficient", level_index=3, explanation="meets them")
    assert evaluation.model_dump() == {
        "criterion_name": "overall_quality",
        "level": "Proficient",
        "level_index": 3,
        "explanation": "meets them",
    }
    for wrong in ({"level": "Proficient", "level_index": 2}, {"level": "Good", "level_index": 3}):
        with pytest.raises(ValidationError):
            OVERALL.evaluation_schema(explanation="", **wrong)


def test_level_and_index_that_contradict_are_refused() -> None:
    """The message says which index the level has."""
    with pytest.raises(ReplyError, match="level 'Proficient' has index 3, but level_index is 4"):
        OVERALL.read({"level": "Proficient", "level_index": 4, "explanation": "?"})


@pytest.mark.parametrize(
    "reply",
    [
        "Proficient",
        " proficient ",
        3,
        "3",
        3.0,
        {"level": "PROFICIENT", "level_index": 3, "explanation": ""},
        {"level": "Proficient", "explanation": ""},
        {"level_index": 3, "explanation": ""},
    ],
)
def test_a_level_by_name_or_index(reply: object) -> None:
    """Either will do; the answer is the level's name at its place."""
    answer = OVERALL.read(reply)
    assert (answer.code, answer.label, answer.index) == ("Proficient", "Proficient", 2)
    assert answer.value == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    "reply", [0, 5, "Good", 2.5, None, [], {"explanation": "none"}, {"level": ["Proficient"]}]
)
def test_what_is_no_level_is_refused(reply: object) -> None:
    """Unknown names and indices are ReplyErrors."""
    with pytest.raises(ReplyError, match="overall_quality"):
        OVERALL.read(reply)


@pytest.mark.parametrize("reply", [None, {"level": None}, {"explanation": "x"}, {"level_index": None}])
def test_a_missing_level_is_not_the_level_none(reply: object) -> None:
    """JSON null and an absent key are no answer, whatever the levels are called."""
    levels = [
        RubricLevel(name=name, index=index, description="") for index, name in enumerate(["None", "Some"])
    ]
    criterion = HolisticRubricCriterion(name="none", levels=levels)
    assert criterion.read({"level": "none"}).code == "None"
    with pytest.raises(ReplyError, match="none: level"):
        criterion.read(reply)


def test_cannot_assess_is_an_abstention() -> None:
    """In words or in an object, with the reason wherever it stands."""
    assert OVERALL.read("CANNOT_ASSESS").cannot_assess
    answer = OVERALL.read({"cannot_assess": True, "level": "Beginning", "explanation": "no text"})
    assert (answer.cannot_assess, answer.value, answer.reason) == (True, None, "no text")


def test_render_shows_all_levels() -> None:
    """In the order of their indices, whatever the order given."""
    turned = HolisticRubricCriterion(
        name="overall_quality", description="Overall response quality", levels=LEVELS[::-1]
    )
    assert turned == OVERALL
    assert turned.render() == (
        "overall_quality: Overall response quality\nLevels:\n"
        "1: Beginning - Well below standards\n2: Developing - Approaching standards\n"
        "3: Proficient - Meets standards\n4: Exemplary - Exceeds standards"
    )


@pytest.mark.parametrize(
    ("indices", "names", "fault"),
    [
        ([1, 2, 4], "abc", r"must be consecutive integers; got \[1, 2, 4\]"),
        ([1, 2, 2], "abc", r"must be consecutive integers; got \[1, 2, 2\]"),
        ([1, 2, 3], ["a", "b", "A "], "level names must be unique; repeated: 'a'"),
        ([1], "a", "at least two entries; got 1"),
        ([], "", "at least two entries; got 0"),
    ],
)
def test_bad_levels_are_refused(indices: list[int], names: Any, fault: str) -> None:
    """Gaps, repetitions and too few levels give one clear error each."""
    levels = [RubricLevel(name=n, index=i, description="d") for n, i in zip(names, indices, strict=True)]
    with pytest.raises(ValidationError, match=fault) as caught:
        HolisticRubricCriterion(name="c", levels=levels)
    assert caught.value.error_count() == 1


@in_loop
async def test_a_panel_takes_the_nearest_level() -> None:
    """The mean goes to the nearest level; votes carry name and place."""
    panel = [TableJudge({"overall_quality": level}, str(level)) for level in (2, "Proficient", 4)]
    report = (await CriterionGrader(judges=panel).grade("text", Rubric([OVERALL]))).report[0]
    assert report.final_answer == "Proficient"
    assert [(vote.selected_label, vote.selected_index) for vote in report.votes] == [
        ("Developing", 1),
        ("Proficient", 2),
        ("Exemplary", 3),
    ]


def test_a_level_is_not_called_as_the_index_of_another() -> None:
    """A label of 2 would mean both."""
    levels = [
        RubricLevel(name="2", index=1, description="low"),
        RubricLevel(name="x", index=2, description="h"),
    ]
    with pytest.raises(ValidationError, match="a reply of 2 would be ambiguous"):
        HolisticRubricCriterion(name="c", levels=tuple(levels))
