"""Protocols for the runs and datasets that metrics accept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from autorubric.dataset import TruthRule
from autorubric.errors import ArgumentError
from autorubric.rubric import Rubric
from autorubric.types import EnsembleEvaluationReport
from autorubric.values import Json, VerdictCounts


class IdentifiedItem(Protocol):
    """An item with an optional id and a submission."""

    @property
    def id(self) -> str | None:
        """Id of the item; None if its position serves as the id."""
        ...

    @property
    def submission(self) -> Json:
        """Submission that was graded."""
        ...


class GradedItem(Protocol):
    """The grading result of an item."""

    @property
    def item_idx(self) -> int:
        """Position of the item in the graded dataset."""
        ...

    @property
    def item(self) -> IdentifiedItem:
        """Item that was graded."""
        ...

    @property
    def report(self) -> EnsembleEvaluationReport | None:
        """Report on the item; None if grading raised an error."""
        ...


@runtime_checkable
class GradedRun(Protocol):
    """A run with one result per item."""

    @property
    def item_results(self) -> Sequence[GradedItem]:
        """Results of the graded items."""
        ...


@runtime_checkable
class LabelledDataset(Protocol):
    """A dataset with rubrics and labels."""

    @property
    def items(self) -> Sequence[Any]:
        """Items of the dataset, in order."""
        ...

    def item_id(self, i: int, /) -> str:
        """Return the id of item `i`."""
        ...

    def get_item_rubric(self, i: int, /) -> Rubric:
        """Return the rubric of item `i`."""
        ...

    def item_truth(self, i: int, /) -> Mapping[str, Json] | None:
        """Return the labels of item `i` by criterion name; None if it has no labels."""
        ...

    def item_ratings(self, i: int, /) -> Mapping[str, Mapping[str, Json]]:
        """Return the ratings of item `i` by rater and criterion name."""
        ...


@runtime_checkable
class RuledDataset(LabelledDataset, Protocol):
    """A dataset that combines the labels of several raters by a truth rule."""

    def with_truth(self, rule: TruthRule, /) -> LabelledDataset:
        """Return a copy of the dataset that combines labels by `rule`."""
        ...


def with_truth_rule(dataset: LabelledDataset, rule: TruthRule | None) -> LabelledDataset:
    """Return the dataset with a truth rule for combining labels; unchanged if `rule` is None.

    Raises:
        ArgumentError: If the dataset does not support truth rules, or the rule is unknown.
    """
    if rule is None:
        return dataset
    if not isinstance(dataset, RuledDataset):
        raise ArgumentError(
            f"truth={rule!r} needs a RubricDataset; {type(dataset).__name__} has no with_truth method"
        )
    return dataset.with_truth(rule)


@runtime_checkable
class OwnedRun(GradedRun, Protocol):
    """A run with a reference to the dataset that it graded."""

    @property
    def dataset(self) -> LabelledDataset:
        """Dataset that was graded."""
        ...


@runtime_checkable
class CountedRun(OwnedRun, Protocol):
    """A run with counts of its verdicts."""

    @property
    def verdicts(self) -> VerdictCounts:
        """Verdict counts over all items."""
        ...


@runtime_checkable
class FingerprintedRun(OwnedRun, Protocol):
    """A run that records the settings, other than items and rubric, on which its decisions depend."""

    @property
    def fingerprint(self) -> Mapping[str, Json]:
        """Judges by id, prompts, sampling, few-shot examples, checks, aggregation and judge weights."""
        ...
