"""Checklists: items, what is missing, shares, and panels that decide item by item."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from autorubric import ChecklistCriterion, CriterionGrader, DataItem, Rubric, RubricDataset, evaluate_sync
from autorubric.criteria import Submission
from autorubric.errors import ArgumentError, ReplyError
from tests.doubles import TableJudge, in_loop

CODE_QUALITY = ChecklistCriterion(
    name="code_quality",
    description="Check code quality requirements",
    items={
        "has_docstring": "Function has a docstring",
        "handles_errors": "Includes error handling",
        "has_tests": "Includes unit tests",
        "follows_style": "Follows PEP 8 style guide",
    },
)
KEYS = list(CODE_QUALITY.items)
HALF = {"has_docstring": True, "handles_errors": True, "has_tests": False, "follows_style": False}


def ticks(*there: str) -> dict[str, bool]:
    return {key: key in there for key in KEYS}


def test_the_evaluation_has_a_bool_for_each_item() -> None:
    """What is missing follows from the answers."""
    evaluation: Any = CODE_QUALITY.evaluation_schema(**HALF)
    assert evaluation.missing_items == ["has_tests", "follows_style"]
    assert evaluation.has_docstring is True
    with pytest.raises(ValidationError):
        CODE_QUALITY.evaluation_schema(has_docstring=True)


def test_missing_items_that_are_given_must_agree() -> None:
    """Their order does not matter; a contradiction is refused."""
    answer = CODE_QUALITY.read({**HALF, "missing_items": ["follows_style", "has_tests"]})
    assert answer.code == {**HALF, "missing_items": ["has_tests", "follows_style"]}
    for missing in ([], ["has_tests"], ["has_docstring", "has_tests"]):
        with pytest.raises(ReplyError, match=r"missing_items is .* but the answers say"):
            CODE_QUALITY.read({**HALF, "missing_items": missing})


def test_the_value_is_the_share_that_is_there() -> None:
    """Half of the items, half the value; the reason of a reply is kept."""
    answer = CODE_QUALITY.read({**HALF, "reason": "no tests"})
    assert (answer.value, answer.reason) == (0.5, "no tests")
    assert CODE_QUALITY.read(dict.fromkeys(KEYS, "yes")).value == 1.0


def test_render_lists_the_items_in_the_order_shown() -> None:
    """Every item with its text; shuffled where there is a generator."""
    text = CODE_QUALITY.render()
    assert all(f"- {key}: {told}" in text for key, told in CODE_QUALITY.items.items())
    shown = CODE_QUALITY.show(Submission(text="t"), random.Random(3))
    assert sorted(shown.order) == [0, 1, 2, 3]
    assert shown.order != (0, 1, 2, 3)
    assert CODE_QUALITY.render(shown) != text


def test_labels_may_be_the_keys_that_are_there_or_a_share() -> None:
    """A list names what is there; a number is the share alone and says nothing on single items."""
    listed = CODE_QUALITY.parse_truth(["has_docstring", "handles_errors"])
    assert listed == CODE_QUALITY.parse_truth(HALF)
    share = CODE_QUALITY.parse_truth(0.5)
    assert share is not None
    assert (share.value, share.label) == (0.5, "0.5")
    assert CODE_QUALITY.part_answers(share) == (None,) * 4


@pytest.mark.parametrize(
    "label", [1.5, True, "half", ["has_docs"], {"has_tests": True}, {**HALF, "has_tests": 7}]
)
def test_other_labels_are_refused(label: object) -> None:
    """Unknown keys, items without an answer, and shares out of range."""
    with pytest.raises(ReplyError, match="code_quality"):
        CODE_QUALITY.parse_truth(label)


@pytest.mark.parametrize("key", ["missing_items", "criterion_name", "cannot_assess", "reason", "id"])
def test_keys_that_collide_are_refused(key: str) -> None:
    """A key may not be a field that evaluations or replies have already."""
    with pytest.raises(ValidationError, match=f"the key '{key}' conflicts with the field") as caught:
        ChecklistCriterion(name="c", items={key: "text"})
    assert caught.value.error_count() == 1


@pytest.mark.parametrize(
    ("items", "fault"),
    [
        ({}, "items must not be empty"),
        ({"_private": "t"}, "starts with an underscore"),
        ({"has tests": "t"}, "must consist of letters"),
        ({"1st": "t"}, "must consist of letters"),
        ({"": "t"}, "must consist of letters"),
        ({"class": "t"}, "is a reserved word of Python"),
        ({"copy": "t"}, "conflicts with the attribute 'copy'"),
        ({"json": "t"}, "conflicts with the attribute 'json'"),
        ({"schema": "t"}, "conflicts with the attribute 'schema'"),
        ({"model_dump": "t"}, "conflicts with the attribute 'model_dump'"),
    ],
)
def test_keys_that_cannot_be_fields_are_refused(items: dict[str, str], fault: str) -> None:
    """Each gives one clear error."""
    with pytest.raises(ValidationError, match=fault) as caught:
        ChecklistCriterion(name="c", items=items)
    assert caught.value.error_count() == 1


def test_keys_like_model_answers_are_fine(recwarn: pytest.WarningsRecorder) -> None:
    """A key may begin with model_ as long as it shadows nothing."""
    criterion = ChecklistCriterion(name="c", items={"model_answer": "It gives a model answer"})
    assert criterion.read({"model_answer": True}).value == 1.0
    assert not recwarn.list


@in_loop
async def test_a_panel_decides_item_by_item() -> None:
    """Each item by majority; the decision may be an evaluation that nobody gave."""
    given = [ticks("has_docstring", "has_tests"), ticks("has_tests", "follows_style"), ticks("has_docstring")]
    panel = [TableJudge({"code_quality": one}, str(i)) for i, one in enumerate(given)]
    report = await CriterionGrader(judges=panel).grade("text", Rubric([CODE_QUALITY]))
    decided = report.report[0]
    assert decided.final_answer == {
        **ticks("has_docstring", "has_tests"),
        "missing_items": ["handles_errors", "follows_style"],
    }
    assert (decided.score_value, report.score, decided.tie) == (0.5, 0.5, False)
    # Twelve single answers, of which three differ from what was decided.
    assert decided.agreement == pytest.approx(9 / 12)


@pytest.mark.parametrize(("weight", "there"), [(1.0, "has_tests"), (-1.0, "has_tests has_docstring")])
@in_loop
async def test_tied_items_are_conservative(weight: float, there: str) -> None:
    """An item on which a panel is split counts as missing; as there where it is a fault."""
    criterion = CODE_QUALITY.model_copy(update={"weight": weight})
    panel = [
        TableJudge({"code_quality": one}, str(i))
        for i, one in enumerate([ticks("has_tests"), ticks("has_tests", "has_docstring")])
    ]
    decided = (await CriterionGrader(judges=panel).grade("text", Rubric([criterion]))).report[0]
    assert decided.tie
    assert decided.decision.value == len(there.split()) / 4


@in_loop
async def test_an_unreadable_vote_counts_as_all_missing() -> None:
    """Under the default policy an unreadable reply is the worst answer to each item."""
    panel = [
        TableJudge({"code_quality": ticks("has_tests")}, "a"),
        TableJudge({"code_quality": ReplyError("no JSON")}, "b"),
        TableJudge({"code_quality": ticks("has_tests")}, "c"),
    ]
    decided = (await CriterionGrader(judges=panel).grade("text", Rubric([CODE_QUALITY]))).report[0]
    assert decided.decision.value == 0.25
    split = (await CriterionGrader(judges=panel[:2]).grade("text", Rubric([CODE_QUALITY]))).report[0]
    assert (split.decision.value, split.tie) == (0.0, True)


@in_loop
async def test_votes_on_the_share_alone_are_averaged() -> None:
    """Where a vote says nothing on single items, the shares are combined as numbers."""
    whole = CODE_QUALITY.parse_truth(1.0)
    panel = [TableJudge({"code_quality": HALF}, "a"), TableJudge({"code_quality": whole}, "b")]
    decided = (await CriterionGrader(judges=panel).grade("text", Rubric([CODE_QUALITY]))).report[0]
    assert decided.decision.value == 0.75
    assert decided.agreement == 0.0


@in_loop
async def test_items_are_combined_as_the_criterion_says() -> None:
    """Its own aggregation is that of its items; one that a binary level has not is refused."""
    given = [ticks("has_tests"), ticks()]
    panel = [TableJudge({"code_quality": one}, str(i)) for i, one in enumerate(given)]
    lenient = CODE_QUALITY.model_copy(update={"aggregation": "any"})
    decided = (await CriterionGrader(judges=panel).grade("text", Rubric([lenient]))).report[0]
    assert decided.decision.value == 0.25
    wrong = CODE_QUALITY.model_copy(update={"aggregation": "median"})
    with pytest.raises(ArgumentError, match=r"'code_quality': part aggregation 'median' is not available"):
        await CriterionGrader(judges=panel).grade("text", Rubric([wrong]))


def test_a_checklist_of_one_item_is_measured(tmp_path: Path) -> None:
    """It has no list of answers either, since its answers are mappings."""
    one = ChecklistCriterion(name="steps", items={"label": "It mentions a return label."})
    assert one.answers() == ()
    items = [DataItem(id="a", submission="The label is enclosed.", ground_truth={"steps": ["label"]})]
    judge = TableJudge({"steps": {"label": True}}, "a")
    run = evaluate_sync(
        RubricDataset(rubric=Rubric([one]), items=items),
        CriterionGrader(judges=[judge]),
        experiment_name="run",
        experiments_dir=tmp_path,
        show_progress=False,
    )
    whole, part = run.compute_metrics().per_criterion
    assert (whole.name, whole.criterion_type) == ("steps", "interval")
    assert (part.name, part.criterion_type, part.n_samples) == ("steps/label", "binary", 1)
