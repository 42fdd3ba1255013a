"""What a report needs of a run, whoever made it, and the run as it is read once for all parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import numpy as np

from autorubric.metrics._audit._decided import distinct_names
from autorubric.metrics._item_scores import PANEL, TRUTH, Rater
from autorubric.metrics._read_votes import read_votes
from autorubric.metrics._resampling import Array
from autorubric.metrics._run_protocols import GradedItem, LabelledDataset
from autorubric.metrics._votes_table import VotesTable
from autorubric.types import verdicts_by_judge
from autorubric.values import Json, TokenUsage, VerdictCounts


class ReportedDataset(LabelledDataset, Protocol):
    """What a report needs of a dataset."""

    def subset(self, positions: Iterable[int], /) -> ReportedDataset:
        """The dataset of some items, with the ids that they have here, all in memory."""
        ...

    @property
    def name(self) -> str | None:
        """Its name."""
        ...

    def get_item_prompt(self, i: int, /) -> str | None:
        """What the item's submission answers."""
        ...

    def get_item_reference_submission(self, i: int, /) -> str | None:
        """The item's model answer."""
        ...


class ReportedItem(GradedItem, Protocol):
    """What a report needs of an item's result."""

    @property
    def duration_seconds(self) -> float:
        """Seconds that grading took."""
        ...

    @property
    def error(self) -> str | None:
        """Why there is no score."""
        ...


class RunView(Protocol):
    """What a report needs of a run; an `EvalResult` is one."""

    @property
    def dataset(self) -> ReportedDataset:
        """The dataset that was graded."""
        ...

    @property
    def item_results(self) -> Sequence[ReportedItem]:
        """One result an item."""
        ...

    @property
    def experiment_name(self) -> str:
        """The run's name."""
        ...

    @property
    def started_at(self) -> datetime:
        """When it started."""
        ...

    @property
    def completed_at(self) -> datetime:
        """When it ended."""
        ...

    @property
    def fingerprint(self) -> Mapping[str, Json]:
        """Settings of the judges and of how votes are combined."""
        ...

    @property
    def notices(self) -> Sequence[str]:
        """What the reader should know."""
        ...

    @property
    def total_token_usage(self) -> TokenUsage | None:
        """Tokens of all items; None where none was counted."""
        ...

    @property
    def total_completion_cost(self) -> float | None:
        """US dollars of all votes whose cost is known; None where none is."""
        ...


@dataclass(frozen=True)
class ReadRun:
    """A run whose results were read once, and its votes table.

    Attributes:
        view: The run.
        dataset: What it graded.
        item_results: Its results, in the dataset's order.
        table: Votes, decisions and labels.
        names: A name for each criterion of the table, no two alike.
    """

    view: RunView
    dataset: ReportedDataset
    item_results: Sequence[ReportedItem]
    table: VotesTable
    names: tuple[str, ...]

    @classmethod
    def of(cls, view: RunView) -> ReadRun:
        """Reads the results of a run; making a stored report takes longer than all that follows."""
        results = _Results(list(view.item_results))
        # Items of a stored run are read from its folder each time that they are asked for.
        dataset = view.dataset.subset(range(len(view.dataset.items)))
        table = read_votes(results, dataset)
        return cls(view, dataset, results.item_results, table, distinct_names(table.criteria))

    def verdicts(self) -> VerdictCounts:
        """Counts of all verdicts; an item whose grading raised has lost one for each criterion."""
        return VerdictCounts.sum(
            one.report.verdicts
            if one.report is not None
            else _unjudged(self.dataset, one.item_idx, one.error)
            for one in self.item_results
        )

    def judge_verdicts(self) -> dict[str, VerdictCounts]:
        """Counts of the verdicts of each judge, by judge id."""
        return verdicts_by_judge(one.report for one in self.item_results if one.report is not None)

    @property
    def has_truth(self) -> bool:
        """Whether anything is labelled."""
        return TRUTH in self.table.raters

    def rows_of(self, rater: Rater) -> Array:
        """Places in the table of a rater's decisions or labels; none where there is no such rater."""
        if rater not in self.table.raters:
            return np.zeros(0, dtype=np.int64)
        return self.table.rows_of(rater)

    def keys(self, rows: Array) -> Array:
        """A number for the cell, an item's criterion, of each of these rows of the table."""
        return np.asarray(
            self.table.item[rows] * max(len(self.table.criteria), 1) + self.table.criterion[rows]
        )

    def words(self, row: int) -> str | None:
        """The answer in a row of the table, a number without all the digits that it was computed with."""
        label, number = self.table.label[row], self.table.number[row]
        return f"{number:g}" if label is not None and label == str(number) else label

    def by_cell(self, rater: Rater) -> dict[int, int]:
        """The row of a rater's decision or label by the number of its cell."""
        rows = self.rows_of(rater)
        return dict(zip(self.keys(rows).tolist(), rows.tolist(), strict=True))


def _unjudged(dataset: ReportedDataset, position: int, error: str | None) -> VerdictCounts:
    n_criteria = len(dataset.get_item_rubric(position))
    return VerdictCounts(asked=n_criteria, lost=n_criteria, lost_cause=error)


@dataclass(frozen=True)
class _Results:
    item_results: list[ReportedItem]


__all__ = ["PANEL", "TRUTH", "ReadRun", "ReportedDataset", "ReportedItem", "RunView"]
