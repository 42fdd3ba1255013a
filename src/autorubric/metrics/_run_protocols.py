"""Protocols of the runs and datasets that metrics accept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from autorubric.dataset import TruthRule
from autorubric.errors import ArgumentError
from autorubric.rubric import Rubric
from autorubric.types import EnsembleEvaluationReport
from autorubric.values import Json, VerdictCounts


class IdentifiedItem(Protocol):
    """An item with an id."""

    @property
    def id(self) -> str | None:
        """The id; None if the position is used as the id."""
        ...

    @property
    def submission(self) -> Json:
        """The submission that was graded."""
        ...


class GradedItem(Protocol):
    """The result of an item."""

    @property
    def item_idx(self) -> int:
        """Position of the item in the graded dataset."""
        ...

    @property
    def item(self) -> IdentifiedItem:
        """The item that was graded."""
        ...

    @property
    def report(self) -> EnsembleEvaluationReport | None:
        """The report; None if grading raised."""
        ...


@runtime_checkable
class GradedRun(Protocol):
    """A run with one result per item."""

    @property
    def item_results(self) -> Sequence[GradedItem]:
        """The results of the items."""
        ...


@runtime_checkable
class LabelledDataset(Protocol):
    """A dataset with rubrics and labels."""

    @property
    def items(self) -> Sequence[Any]:
        """The items, in order."""
        ...

    def item_id(self, i: int, /) -> str:
        """Return the item's id."""
        ...

    def get_item_rubric(self, i: int, /) -> Rubric:
        """Return the item's rubric."""
        ...

    def item_truth(self, i: int, /) -> Mapping[str, Json] | None:
        """Return the item's labels by criterion name."""
        ...

    def item_ratings(self, i: int, /) -> Mapping[str, Mapping[str, Json]]:
        """Return the item's labels by rater and criterion name."""
        ...


@runtime_checkable
class RuledDataset(LabelledDataset, Protocol):
    """A dataset that combines the labels of several raters by a rule."""

    def with_truth(self, rule: TruthRule, /) -> LabelledDataset:
        """Return the dataset with another rule."""
        ...


def with_truth_rule(dataset: LabelledDataset, rule: TruthRule | None) -> LabelledDataset:
    """Return the dataset with a rule for combining labels; unchanged if the rule is None.

    Raises:
        ArgumentError: If the dataset does not support rules, or the rule is unknown.
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
    """A run that holds the dataset it graded."""

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
    """A run that records what its decisions depend on, in addition to items and rubric."""

    @property
    def fingerprint(self) -> Mapping[str, Json]:
        """Judges by id, prompts, sampling, few-shot examples, checks, aggregation and judge weights."""
        ...
