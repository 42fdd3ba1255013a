"""Few-shot examples."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from pydantic import ValidationError

from autorubric.criteria import ComparativeCriterion, Submission
from autorubric.datasets import DataItem, RubricDataset
from autorubric.errors import ArgumentError
from autorubric.grading import CriterionGrader, FewShotConfig, GradingTask
from autorubric.judges.prompts import Example
from autorubric.rubric import Rubric
from tests.doubles import TableJudge, binary, choice, model_judge

RUBRIC = Rubric([binary("a"), choice("scale")])


def item(position: int, **fields: Any) -> DataItem:
    """Every fourth item is UNMET; the scale is labelled on even ones."""
    label = "UNMET" if position % 4 == 0 else "MET"
    scale = ("poor", "fair", "good")[position % 3] if position % 2 == 0 else None
    given = {
        "id": f"i{position}",
        "submission": f"text {position}",
        "ground_truth": [label, scale],
        "reasons": {"a": f"reason {position}"},
    }
    return DataItem(**{**given, **fields})


def training(count: int = 24, **changed: Any) -> RubricDataset:
    items = [item(position, **(changed if position == 1 else {})) for position in range(count)]
    return RubricDataset(rubric=RUBRIC, items=items)


def examples(
    text: str = "new", item_id: str = "new", name: str = "a", data: RubricDataset | None = None, **config: Any
) -> tuple[Example, ...]:
    """What a judge is shown of a criterion."""
    grader = CriterionGrader(
        judges=[TableJudge({})], training_data=data or training(), few_shot_config=FewShotConfig(**config)
    )
    calls = grader.plan(GradingTask(submission=Submission(text=text), rubric=RUBRIC, item_id=item_id))
    return next(call.request.examples for call in calls if call.request.criterion.name == name)


def test_examples_are_balanced_over_verdicts() -> None:
    """Answers take turns as long as each has examples left, though most items are MET."""
    assert Counter(example.answer for example in examples(n_examples=6)) == {"MET": 3, "UNMET": 3}
    assert Counter(example.answer for example in examples(name="scale", n_examples=6)) == {
        "poor": 2,
        "fair": 2,
        "good": 2,
    }
    spent = Counter(example.answer for example in examples(n_examples=20))
    assert spent == {"UNMET": 6, "MET": 14}


def test_examples_may_be_unbalanced() -> None:
    """Then they are as the draw has them."""
    drawn = Counter(example.answer for example in examples(n_examples=24, balance_verdicts=False))
    assert drawn == {"MET": 18, "UNMET": 6}


@pytest.mark.parametrize("position", range(24))
def test_an_item_is_never_its_own_example(position: int) -> None:
    """Neither by id nor by text, and its label is no example short for it."""
    by_id = examples(item_id=f"i{position}", n_examples=8)
    by_text = examples(text=f"text {position}", n_examples=8)
    for shown in (by_id, by_text):
        assert f"text {position}" not in {example.text for example in shown}
        assert Counter(example.answer for example in shown) == {"MET": 4, "UNMET": 4}


def test_examples_are_stable_over_items() -> None:
    """Items that are no examples themselves share them, so that judges are measured by one yardstick."""
    assert examples(text="one", item_id="x") == examples(text="two", item_id="y")


def test_the_seed_draws() -> None:
    """The same seed the same examples, another one others; None is 0."""
    assert examples(seed=1) == examples(seed=1)
    assert examples(seed=1) != examples(seed=2)
    assert examples(seed=None) == examples(seed=0)


def test_reasons_are_shown_where_wanted() -> None:
    """By default they are not."""
    assert {example.reason for example in examples()} == {""}
    for example in examples(include_reason=True):
        assert example.reason == example.text.replace("text", "reason")


def test_reasons_of_comparisons_are_not_shown() -> None:
    """They may name the candidates, which judges know by letters alone."""
    rubric = Rubric([ComparativeCriterion(name="better", requirement="Is better.")])
    items = [
        {
            "submission": {"gpt": f"one {i}", "claude": f"two {i}"},
            "ground_truth": ["gpt"],
            "reasons": {"better": "gpt is"},
        }
        for i in range(4)
    ]
    grader = CriterionGrader(
        judges=[TableJudge({})],
        training_data=RubricDataset(rubric=rubric, items=items),
        few_shot_config=FewShotConfig(include_reason=True),
    )
    task = GradingTask(submission=Submission.parse({"x": "three", "y": "four"}), rubric=rubric, item_id="new")
    shown = grader.plan(task)[0].request.examples
    assert {example.reason for example in shown} == {""}
    assert "gpt" not in str(shown)


def test_unlabelled_items_and_items_without_text_are_no_examples() -> None:
    """A criterion nobody labelled has none, and a missing text cannot be shown."""
    data = RubricDataset(
        rubric=RUBRIC,
        items=[
            DataItem(submission="labelled", ground_truth=["MET", None]),
            DataItem(submission="not labelled"),
            DataItem(submission=None, ground_truth=["MET", "good"]),
        ],
    )
    assert [example.text for example in examples(data=data)] == ["labelled"]
    assert examples(data=data, name="scale") == ()


def test_examples_reach_the_model() -> None:
    """Texts and labels stand in the request."""
    judge, transport = model_judge([{"reason": "r", "verdict": "MET"}])
    grader = CriterionGrader(judges=[judge], training_data=training())
    Rubric([binary("a")]).grade_sync("new", grader)
    assert transport.prompts[0].count("Judged: ") == 3
    assert "\ntext " in transport.prompts[0]


def test_training_data_without_labels_is_an_error() -> None:
    """Few-shot grading does not turn into zero-shot grading unseen."""
    for data in (
        RubricDataset(rubric=RUBRIC),
        RubricDataset(rubric=RUBRIC, items=[DataItem(submission="text")]),
    ):
        with pytest.raises(ArgumentError, match="no labelled text; pass items"):
            CriterionGrader(judges=[TableJudge({})], training_data=data)
    with pytest.raises(ArgumentError, match="few_shot_config requires training_data"):
        CriterionGrader(judges=[TableJudge({})], few_shot_config=FewShotConfig())


@pytest.mark.parametrize("wrong", [{"n_examples": 0}, {"examples": 3}])
def test_bad_configs_are_refused(wrong: dict[str, Any]) -> None:
    """At least one example, and no unknown fields."""
    with pytest.raises(ValidationError):
        FewShotConfig(**wrong)


def described(data: RubricDataset, **config: Any) -> str:
    grader = CriterionGrader(
        judges=[TableJudge({})], training_data=data, few_shot_config=FewShotConfig(**config)
    )
    return json.dumps(grader.describe().asking["few_shot"], sort_keys=True)


def test_the_description_follows_what_may_be_shown() -> None:
    """Texts, labels and the draw count; reasons count where they are shown."""
    plain = described(training())
    assert described(training()) == plain
    assert described(training(submission="else")) != plain
    assert described(training(ground_truth=["UNMET", None])) != plain
    assert described(training(), n_examples=4) != plain
    assert described(training(), seed=4) != plain
    other_reason = training(reasons={"a": "else"})
    assert described(other_reason) == plain
    assert described(other_reason, include_reason=True) != described(training(), include_reason=True)
