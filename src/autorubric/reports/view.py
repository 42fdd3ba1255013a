"""Interfaces of the runs that a report is made of, and a run whose results are read only once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import numpy as np

from autorubric.criteria.values import VerdictCounts
from autorubric.errors import TokenUsage
from autorubric.metrics.core.item_scores import TRUTH, LabelledDataset, Rater, SupportsGradedItem
from autorubric.metrics.core.read_votes import read_votes
from autorubric.metrics.core.scales import Array
from autorubric.metrics.core.votes_table import VotesTable, distinct_names
from autorubric.scoring.reports import verdicts_by_judge
from autorubric.support.objects import Json


class ReportedDataset(LabelledDataset, Protocol):
    """Interface of a dataset that a report uses."""

    def subset(self, positions: Iterable[int], /) -> ReportedDataset: ...

    @property
    def name(self) -> str | None: ...

    def get_item_prompt(self, i: int, /) -> str | None: ...

    def get_item_reference_submission(self, i: int, /) -> str | None: ...


class ReportedItem(SupportsGradedItem, Protocol):
    """Interface of an item's result that a report uses."""

    @property
    def duration_seconds(self) -> float: ...

    @property
    def error(self) -> str | None: ...


class RunView(Protocol):
    """Interface for a run that can be reported, such as an `EvalResult`.

    Attributes:
        dataset: The graded dataset.
        item_results: One result per item.
        experiment_name: Name of the run.
        started_at: Start time.
        completed_at: End time.
        fingerprint: Settings of the judges and of vote aggregation.
        notices: Warnings for the reader.
        total_token_usage: Total number of tokens used; None if no tokens were counted.
        total_completion_cost: Total cost in US dollars of the votes whose cost is known; None if none is.
    """

    @property
    def dataset(self) -> ReportedDataset: ...

    @property
    def item_results(self) -> Sequence[ReportedItem]: ...

    @property
    def experiment_name(self) -> str: ...

    @property
    def started_at(self) -> datetime: ...

    @property
    def completed_at(self) -> datetime: ...

    @property
    def fingerprint(self) -> Mapping[str, Json]: ...

    @property
    def notices(self) -> Sequence[str]: ...

    @property
    def total_token_usage(self) -> TokenUsage | None: ...

    @property
    def total_completion_cost(self) -> float | None: ...


@dataclass(frozen=True)
class ReadRun:
    """A run whose results were read once, with its table of votes."""

    view: RunView
    dataset: ReportedDataset
    item_results: Sequence[ReportedItem]  # In the dataset's order.
    table: VotesTable
    names: tuple[str, ...]  # A unique name for each criterion of the table.

    @classmethod
    def of(cls, view: RunView) -> ReadRun:
        """Read the results of a run, which is slow for a stored run."""
        results = _Results(list(view.item_results))
        # Items of a stored run are read from its folder on every access.
        dataset = view.dataset.subset(range(len(view.dataset.items)))
        table = read_votes(results, dataset)
        return cls(view, dataset, results.item_results, table, distinct_names(table.criteria))

    def verdicts(self) -> VerdictCounts:
        """Count all verdicts; an item that could not be graded counts as one lost verdict per criterion."""
        return VerdictCounts.sum(
            one.report.verdicts if one.report is not None else self._lost_verdicts(one)
            for one in self.item_results
        )

    def _lost_verdicts(self, item: ReportedItem) -> VerdictCounts:
        n_criteria = len(self.dataset.get_item_rubric(item.item_idx))
        return VerdictCounts(asked=n_criteria, lost=n_criteria, lost_cause=item.error)

    def judge_verdicts(self) -> dict[str, VerdictCounts]:
        """Count the verdicts of each judge, by judge id."""
        return verdicts_by_judge(one.report for one in self.item_results if one.report is not None)

    @property
    def has_truth(self) -> bool:
        """Whether there are any labels."""
        return TRUTH in self.table.raters

    def rows_of(self, rater: Rater) -> Array:
        """Return the rows of a rater's decisions or labels in the table; empty if there is no such rater."""
        if rater not in self.table.raters:
            return np.zeros(0, dtype=np.int64)
        return self.table.rows_of(rater)

    def keys(self, rows: Array) -> Array:
        """Return the number of the cell (a criterion of an item) of each row of the table."""
        return np.asarray(
            self.table.item[rows] * max(len(self.table.criteria), 1) + self.table.criterion[rows]
        )

    def words(self, row: int) -> str | None:
        """Return the answer in a row of the table, with numbers rounded."""
        label, number = self.table.label[row], self.table.number[row]
        return f"{number:g}" if label is not None and label == str(number) else label

    def by_cell(self, rater: Rater) -> dict[int, int]:
        """Return the rows of a rater's decisions or labels, by cell number."""
        rows = self.rows_of(rater)
        return dict(zip(self.keys(rows).tolist(), rows.tolist(), strict=True))


@dataclass(frozen=True)
class _Results:
    item_results: list[ReportedItem]
