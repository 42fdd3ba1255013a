"""What figures need of runs and datasets, whoever made them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from autorubric.dataset import TruthRule
from autorubric.errors import ArgumentError
from autorubric.rubric import Rubric
from autorubric.types import EnsembleEvaluationReport
from autorubric.values import Json, VerdictCounts


class IdentifiedItem(Protocol):
    """What tells an item from others."""

    @property
    def id(self) -> str | None:
        """Its id; None where its position stands for one."""
        ...

    @property
    def submission(self) -> Json:
        """What was graded."""
        ...


class GradedItem(Protocol):
    """What the table needs of an item's result."""

    @property
    def item_idx(self) -> int:
        """Position in the dataset that was graded."""
        ...

    @property
    def item(self) -> IdentifiedItem:
        """The item that was graded."""
        ...

    @property
    def report(self) -> EnsembleEvaluationReport | None:
        """The report; None where grading raised."""
        ...


@runtime_checkable
class GradedRun(Protocol):
    """What the table needs of a run."""

    @property
    def item_results(self) -> Sequence[GradedItem]:
        """One result an item."""
        ...


@runtime_checkable
class LabelledDataset(Protocol):
    """What the table needs of a dataset."""

    @property
    def items(self) -> Sequence[Any]:
        """The items, in order."""
        ...

    def item_id(self, i: int, /) -> str:
        """The item's id."""
        ...

    def get_item_rubric(self, i: int, /) -> Rubric:
        """The item's rubric."""
        ...

    def item_truth(self, i: int, /) -> Mapping[str, Json] | None:
        """The item's labels by criterion name."""
        ...

    def item_ratings(self, i: int, /) -> Mapping[str, Mapping[str, Json]]:
        """The item's labels by rater and criterion name."""
        ...


@runtime_checkable
class RuledDataset(LabelledDataset, Protocol):
    """A dataset that makes one label of several raters' by a rule."""

    def with_truth(self, rule: TruthRule, /) -> LabelledDataset:
        """The dataset with another rule."""
        ...


def with_truth_rule(dataset: LabelledDataset, rule: TruthRule | None) -> LabelledDataset:
    """The dataset with a rule for several raters' labels; as it is without one.

    Raises:
        ArgumentError: The dataset has no rules, or there is no such rule.
    """
    if rule is None:
        return dataset
    if not isinstance(dataset, RuledDataset):
        raise ArgumentError(
            f"truth={rule!r}: {type(dataset).__name__} has no method with_truth; give a RubricDataset"
        )
    return dataset.with_truth(rule)


@runtime_checkable
class OwnedRun(GradedRun, Protocol):
    """A run that knows what it graded."""

    @property
    def dataset(self) -> LabelledDataset:
        """The dataset that was graded."""
        ...


@runtime_checkable
class CountedRun(OwnedRun, Protocol):
    """A run that counts its verdicts."""

    @property
    def verdicts(self) -> VerdictCounts:
        """Counts of the verdicts of all items."""
        ...


@runtime_checkable
class FingerprintedRun(OwnedRun, Protocol):
    """A run that says what its decisions depend on besides items and rubric."""

    @property
    def fingerprint(self) -> Mapping[str, Json]:
        """Judges by id, prompts, sampling, few-shot examples, checks, aggregation and judge weights."""
        ...
