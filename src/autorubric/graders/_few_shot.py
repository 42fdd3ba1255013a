"""Few-shot examples: judged texts from training data, the same for every item but never the item itself."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from autorubric.dataset import RubricDataset
from autorubric.graders._base import GradingTask
from autorubric.graders._seeds import derive_seed
from autorubric.prompts import Example
from autorubric.values import Submission


class FewShotConfig(BaseModel):
    """How examples are drawn.

    Attributes:
        n_examples: Examples for each criterion.
        balance_verdicts: Whether the answers take turns, so that no answer is shown more often than needed.
        include_reason: Whether the training data's reasons are shown.
        seed: Seed of the draw; None is 0.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    n_examples: int = Field(default=3, ge=1)
    balance_verdicts: bool = True
    include_reason: bool = False
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class _Labelled:
    item_id: str
    text: str
    label: str
    reason: str


class ExamplePool:
    """Examples by criterion name, in the order in which they are taken."""

    def __init__(self, training_data: RubricDataset, config: FewShotConfig) -> None:
        self.config = config
        self._ordered = {
            name: _in_order(labelled, name, config) for name, labelled in _by_criterion(training_data).items()
        }

    def examples(self, criterion_name: str, task: GradingTask) -> tuple[Example, ...]:
        """The first examples of a criterion that are not the item itself, by id or by text."""
        others = (
            found
            for found in self._ordered.get(criterion_name, ())
            if found.text != task.submission.text and not (task.item_id and found.item_id == task.item_id)
        )
        taken = [found for found, _ in zip(others, range(self.config.n_examples), strict=False)]
        return tuple(
            Example(
                text=found.text,
                answer=found.label,
                reason=found.reason if self.config.include_reason else "",
            )
            for found in taken
        )


def _by_criterion(training_data: RubricDataset) -> dict[str, list[_Labelled]]:
    pool: dict[str, list[_Labelled]] = {}
    for position, item in enumerate(training_data.items):
        text = Submission.parse(item.submission).text
        truth = training_data.item_truth(position)
        if text is None or truth is None:
            continue
        for criterion in training_data.get_item_rubric(position):
            answer = criterion.parse_truth(truth.get(criterion.name or ""))
            if answer is None or answer.label is None:
                continue
            reason = (item.reasons or {}).get(criterion.name or "", "")
            labelled = _Labelled(training_data.item_id(position), text, answer.label, reason)
            pool.setdefault(criterion.name or "", []).append(labelled)
    return pool


def _in_order(labelled: Sequence[_Labelled], name: str, config: FewShotConfig) -> list[_Labelled]:
    shuffled = list(labelled)
    random.Random(derive_seed(config.seed or 0, "few-shot", name)).shuffle(shuffled)
    return list(_taking_turns(shuffled)) if config.balance_verdicts else shuffled


def _taking_turns(labelled: Sequence[_Labelled]) -> Iterator[_Labelled]:
    by_label: dict[str, list[_Labelled]] = {}
    for found in labelled:
        by_label.setdefault(found.label, []).append(found)
    for turn in range(max(len(group) for group in by_label.values())):
        for label in sorted(by_label):
            if turn < len(by_label[label]):
                yield by_label[label][turn]
