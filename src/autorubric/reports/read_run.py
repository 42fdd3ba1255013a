"""A run as a report reads it: its table of votes, and its results, of which the votes are not kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

import numpy as np

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.values import VerdictCounts
from autorubric.datasets.dataset import RubricDataset
from autorubric.errors import TokenUsage
from autorubric.metrics.core.item_scores import TRUTH, Rater, SupportsGradedItem
from autorubric.metrics.core.read_votes import read_votes
from autorubric.metrics.core.scales import Array
from autorubric.metrics.core.votes_table import VotesTable, distinct_names
from autorubric.scoring.reports import EnsembleEvaluationReport
from autorubric.scoring.votes import JudgeVote
from autorubric.support.objects import Json


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
        verdicts: Counts of all verdicts by outcome.
        total_token_usage: Total number of tokens used; None if no tokens were counted.
        total_completion_cost: Total cost in US dollars of the votes whose cost is known; None if none is.
    """

    @property
    def dataset(self) -> RubricDataset: ...
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
    def verdicts(self) -> VerdictCounts: ...
    @property
    def total_token_usage(self) -> TokenUsage | None: ...
    @property
    def total_completion_cost(self) -> float | None: ...


@dataclass(frozen=True)
class VotedRun:
    """A run with its table of votes, whose results have not been read."""

    view: RunView
    dataset: RubricDataset
    table: VotesTable
    names: tuple[str, ...]  # A unique name for each criterion of the table.

    @classmethod
    def of(cls, view: RunView) -> VotedRun:
        """Read the votes of a run."""
        # Items of a stored run are read from its folder on every access.
        dataset = view.dataset.subset(range(len(view.dataset.items)))
        table = read_votes(view, view.dataset) if _is_own(view) else read_votes(view, dataset)
        return cls(view, dataset, table, distinct_names(table.criteria))

    def graded(self) -> Iterator[tuple[int, Any]]:
        """Yield position and item of each result, in the dataset's order, without reading stored results."""
        if _is_own(self.view):
            stored: Any = self.view.item_results
            yield from ((at, self.dataset.items[at]) for at in stored.positions)
        else:
            yield from ((one.item_idx, one.item) for one in self.view.item_results)

    @property
    def has_truth(self) -> bool:
        """Whether there are any labels."""
        return TRUTH in self.table.raters

    def words(self, row: int) -> str | None:
        """Return the answer in a row of the table, with numbers rounded."""
        label, number = self.table.label[row], self.table.number[row]
        return f"{number:g}" if label is not None and label == str(number) else label

    def labels_of(self, rows: Array) -> Array:
        """Return the row of the label of the cell of each row; -1 if there is no label."""
        labels = self.by_cell(TRUTH)
        return np.array([labels.get(key, -1) for key in self.table.cell_keys(rows).tolist()], dtype=np.int64)

    def by_cell(self, rater: Rater) -> dict[int, int]:
        """Return the rows of a rater's decisions or labels, by cell number."""
        rows = self.table.rows_of(rater)
        return dict(zip(self.table.cell_keys(rows).tolist(), rows.tolist(), strict=True))


def _is_own(view: RunView) -> bool:
    """Return whether the results are stored, and are about the run's current dataset."""
    return getattr(view.item_results, "dataset", None) is view.dataset


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadItem:
    """The result of an item without its votes, which are not kept because they take much memory."""

    item_idx: int
    item: Any
    duration_seconds: float
    error: str | None
    report: EnsembleEvaluationReport | None  # Without reports on criteria.


@dataclass(slots=True)
class JudgeTotals:
    """Counts, costs and durations of a judge's votes."""

    votes: int = 0  # without those that were not asked for
    costs: list[float] = field(default_factory=list)  # US dollars of each vote whose cost is known
    tokens: int | None = None  # None if no tokens were counted
    waits: list[float] = field(default_factory=list)  # seconds
    models: set[str] = field(default_factory=set)
    verdicts: list[VerdictCounts] = field(default_factory=list)

    def add(self, vote: JudgeVote) -> None:
        self.votes += vote.status != "not_asked"
        if vote.completion_cost is not None:
            self.costs.append(vote.completion_cost)
        if vote.token_usage is not None:
            self.tokens = vote.token_usage.total_tokens + (self.tokens or 0)
        if vote.latency_seconds is not None:
            self.waits.append(vote.latency_seconds)
        if vote.model:
            self.models.add(vote.model)


@dataclass(frozen=True)
class ReadRun(VotedRun):
    """A run whose results were read once, one after the other."""

    item_results: list[ReadItem] = field(default_factory=list)  # In the dataset's order.
    judges: dict[str, JudgeTotals] = field(default_factory=dict)
    criteria: dict[str, BaseCriterion] = field(default_factory=dict)  # The first that was judged, by name.

    @classmethod
    def of(cls, view: RunView) -> ReadRun:
        """Read the votes and results of a run, which is slow for a stored run."""
        return cls.with_results(VotedRun.of(view))

    @classmethod
    def with_results(
        cls, run: VotedRun, observe: Callable[[ReportedItem], None] = lambda result: None
    ) -> ReadRun:
        """Read the results of a run; `observe` is called with each whole result."""
        read = cls(run.view, run.dataset, run.table, run.names)
        for one in run.view.item_results:
            observe(one)
            read._add(one)
        return read

    def _add(self, result: ReportedItem) -> None:
        report = result.report
        self.item_results.append(
            ReadItem(
                item_idx=result.item_idx,
                item=result.item,
                duration_seconds=result.duration_seconds,
                error=result.error,
                report=None if report is None else replace(report, report=[]),
            )
        )
        for one in report.report if report else ():
            self.criteria.setdefault(one.name, one.criterion)
            for judge, counts in one.judge_verdicts.items():
                self.judges.setdefault(judge, JudgeTotals()).verdicts.append(counts)
            for vote in one.votes:
                self.judges[vote.judge_id].add(vote)

    def judge_verdicts(self) -> dict[str, VerdictCounts]:
        """Count the verdicts of each judge, by judge id."""
        return {judge: VerdictCounts.sum(one.verdicts) for judge, one in self.judges.items()}
