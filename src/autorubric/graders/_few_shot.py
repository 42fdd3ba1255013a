"""Few-shot examples from training data: the same for all items, except that no item is its own example."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from autorubric.dataset import RubricDataset
from autorubric.errors import ArgumentError
from autorubric.graders._seeds import derive_seed
from autorubric.prompts import Example
from autorubric.reporting import GradingTask
from autorubric.values import Submission


class FewShotConfig(BaseModel):
    """Settings for selecting few-shot examples.

    Attributes:
        n_examples: Number of examples for each criterion.
        balance_verdicts: Whether to alternate between answers, so that all are shown about equally often.
        include_reason: Whether to show the reasons in the training data. Reasons for comparisons are never
            shown, because they can name candidates that judges see only as letters.
        seed: Seed of the random selection; None means 0.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    n_examples: int = Field(default=3, ge=1)
    balance_verdicts: bool = True
    include_reason: bool = False
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class _Labelled:
    item_id: str
    submission: Submission
    text: str
    label: str
    reason: str


class ExamplePool:
    """A pool of few-shot examples by criterion name, in the order in which they are used.

    Raises:
        ArgumentError: If the training data has no labelled text.
    """

    def __init__(self, training_data: RubricDataset, config: FewShotConfig) -> None:
        self.config = config
        self._shuffled = {
            name: _shuffled(labelled, name, config) for name, labelled in _by_criterion(training_data).items()
        }
        if not self._shuffled:
            raise ArgumentError(
                f"training_data has {len(training_data)} items, but no labelled text; pass items with a "
                "submission and ground_truth or ratings"
            )

    @property
    def criteria(self) -> tuple[str, ...]:
        """Names of the criteria with examples."""
        return tuple(self._shuffled)

    @property
    def digest(self) -> str:
        """SHA-256 of all examples that may be shown: texts, labels and, if shown, reasons."""
        digest = hashlib.sha256()
        for name, labelled in sorted(self._shuffled.items()):
            for found in labelled:
                shown = [name, found.item_id, found.text, found.label]
                digest.update(json.dumps([*shown, self._reason(found)]).encode("ascii"))
        return digest.hexdigest()

    def _reason(self, found: _Labelled) -> str:
        return found.reason if self.config.include_reason else ""

    def examples(self, criterion_name: str, task: GradingTask) -> tuple[Example, ...]:
        """Return the first examples of a criterion, excluding those with the item's id or text."""
        others = [
            found
            for found in self._shuffled.get(criterion_name, ())
            if not _same_texts(found.submission, task.submission)
            and not (task.item_id and found.item_id == task.item_id)
        ]
        # Labels alternate after the item itself is excluded; otherwise its label would lack one example.
        taken = _taking_turns(others) if self.config.balance_verdicts else others
        return tuple(
            Example(text=found.text, answer=found.label, reason=self._reason(found))
            for found in itertools.islice(taken, self.config.n_examples)
        )


def _bare(submission: Submission) -> set[str]:
    """Return the submission's texts with normalized white space and case."""
    texts = submission.candidates.values() or [submission.text or ""]
    return {" ".join(text.split()).casefold() for text in texts}


def _by_criterion(training_data: RubricDataset) -> dict[str, list[_Labelled]]:
    pool: dict[str, list[_Labelled]] = {}
    for position, item in enumerate(training_data.items):
        submission = Submission.parse(item.submission)
        truth = training_data.item_truth(position)
        if submission.text is None or truth is None:
            continue
        for criterion in training_data.get_item_rubric(position):
            answer = criterion.facing(submission).parse_truth(truth.get(criterion.name or ""))
            text, label = (None, None) if answer is None else criterion.example(submission, answer)
            if text is None or label is None:
                continue
            reason = "" if criterion.level == "ranking" else item.reasons.get(criterion.name or "", "")
            labelled = _Labelled(training_data.item_id(position), submission, text, label, reason)
            pool.setdefault(criterion.name or "", []).append(labelled)
    return pool


def _same_texts(one: Submission, other: Submission) -> bool:
    return _bare(one) == _bare(other)


def _shuffled(labelled: Sequence[_Labelled], name: str, config: FewShotConfig) -> list[_Labelled]:
    shuffled = list(labelled)
    random.Random(derive_seed(config.seed or 0, "few-shot", name)).shuffle(shuffled)
    return shuffled


def _taking_turns(labelled: Sequence[_Labelled]) -> Iterator[_Labelled]:
    """Yield one example of each label in turn until none is left."""
    by_label: dict[str, list[_Labelled]] = {}
    for found in labelled:
        by_label.setdefault(found.label, []).append(found)
    for turn in itertools.zip_longest(*(by_label[label] for label in sorted(by_label))):
        yield from (found for found in turn if found is not None)
