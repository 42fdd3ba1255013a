"""Results of items, computed on access from the stored votes that are still valid."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from autorubric.criteria.values import Submission, VerdictCounts
from autorubric.datasets.dataset import RubricDataset
from autorubric.grading.base import GradingTask
from autorubric.runs.index import OpenLog, RunIndex, opened_logs
from autorubric.runs.items import ItemResult, ItemTally, outcome_of
from autorubric.runs.lines import StoredItem
from autorubric.runs.manifest import ITEMS, SNAPSHOT, VOTES
from autorubric.runs.notices import Notices
from autorubric.runs.vote_reader import (
    ReusableVotes,
    SharedReports,
    VoteCollector,
    read_all_votes,
    read_snapshot,
    write_snapshot,
)
from autorubric.scoring.report_builder import scored_report
from autorubric.scoring.votes import Votes
from autorubric.support.record_log import crc_of

if TYPE_CHECKING:
    from autorubric.scoring.reports import EnsembleCriterionReport, EnsembleEvaluationReport
    from autorubric.scoring.votes import JudgeVote


def grading_task(dataset: RubricDataset, position: int) -> GradingTask:
    """Return the grading task of one item of a dataset."""
    whole = Submission.parse(dataset.items[position].submission)
    submission, query = whole.with_prompt(dataset.item_prompt(position))
    return GradingTask(
        submission=submission,
        rubric=dataset.get_item_rubric(position),
        query=query,
        reference_submission=dataset.get_item_reference_submission(position),
        item_id=dataset.item_id(position),
    )


def answered_votes(
    votes: Mapping[str, Sequence[JudgeVote]], *, unreadable: bool = True
) -> dict[str, list[JudgeVote]]:
    """Return the votes that need not be requested again, without those that received no reply."""
    return {
        name: [vote for vote in cast if vote.status != "failed" or (unreadable and vote.unreadable)]
        for name, cast in votes.items()
    }


ViewedT = TypeVar("ViewedT", covariant=True)

Build = Callable[[GradingTask, Votes, StoredItem], "EnsembleEvaluationReport"]
"""A function that builds a report from a task, its votes and the item's line."""


class View(Sequence[ViewedT], Generic[ViewedT]):
    """A sequence that creates its elements on access and does not store them; a copy or pickle is a list."""

    def __init__(self, length: int, make: Callable[[int], ViewedT]) -> None:
        self._length = length
        self._make = make

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, place: int) -> ViewedT: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[ViewedT]: ...

    def __getitem__(self, place: int | slice) -> ViewedT | Sequence[ViewedT]:
        at = range(self._length)[place]
        return self._make(at) if isinstance(at, int) else [self._make(each) for each in at]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list | View):
            return NotImplemented
        return len(self) == len(other) and all(one == two for one, two in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> str | tuple[Any, ...]:
        return list, (list(self),)

    def __repr__(self) -> str:
        return f"<{self._length} elements, read on access>"


class StoredResults(View[ItemResult]):
    """A sequence with one result per finished item, in dataset order, read from the run folder on access."""

    def __init__(
        self,
        index: RunIndex,
        dataset: RubricDataset,
        reusable: ReusableVotes,
        build: Build,
        *,
        recomputed: bool = False,
        is_new_rubric: bool = False,
        is_penalised: bool = False,
    ) -> None:
        self.notices = Notices()  # notices about skipped votes
        self._index = index
        self.dataset = dataset  # the graded dataset
        self._reusable = reusable
        self.due = reusable.due  # returns how many verdicts on an item are due, by criterion and judge
        self._build = build
        # Computed lines of items that have no line in the folder, or no valid one.
        self._made: dict[int, StoredItem] = {}
        self._decided: list[tuple[int, list[EnsembleCriterionReport] | None]] | None = None
        if recomputed:
            self._make_lines(is_new_rubric=is_new_rubric, is_penalised=is_penalised)
        n_items = len(index.current)
        complete = index.current.count(1) == n_items
        # Position in the dataset of each result.
        self.positions: Sequence[int] = (
            range(n_items)
            if complete
            else array("q", (at for at in range(n_items) if index.current[at] or at in self._made))
        )
        super().__init__(len(self.positions), self._at)

    # Copies and pickles remain views of the folder.
    __reduce__ = object.__reduce__

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_decided": None}

    def __iter__(self) -> Iterator[ItemResult]:
        # The dataset keeps the last item of an iteration, which is faster than access by position.
        items = enumerate(self.dataset.items)
        with opened_logs(self._index.path) as logs:
            for position in self.positions:
                next(at for at, _ in items if at == position)
                yield self._result(position, logs)

    def _at(self, place: int) -> ItemResult:
        return self._result(self.positions[place])

    def unfinished(self) -> Iterator[int]:
        """Yield the position of each unfinished item."""
        finished = set(self.positions)
        if len(finished) < len(self._index.current):
            yield from (at for at, _ in enumerate(self.dataset.items) if at not in finished)

    @cached_property
    def not_judged(self) -> Counter[str]:
        """Number of verdicts that are due on unfinished items, by judge."""
        return sum((own for at in self.unfinished() for own in self.due(at).values()), Counter[str]())

    def lines(self) -> Iterator[StoredItem]:
        """Yield the stored figures of each item, without its votes, in the order in which items finished."""
        yield from self._index.current_lines()
        yield from self._made.values()

    @cached_property
    def tally(self) -> ItemTally:
        """Sums over all items."""
        if self._index.tally is not None and not self._made:
            return self._index.tally
        tally = ItemTally()
        for line in self.lines():
            tally.add(line.fields())
        return tally

    @cached_property
    def verdicts(self) -> VerdictCounts:
        """Counts of the verdicts of all items by outcome, computed from stored votes where necessary."""
        return self._count_verdicts.verdicts + VerdictCounts(not_judged=self.not_judged.total())

    @property
    def partly_scored(self) -> int:
        """Number of items that have a score although one of their verdicts was lost."""
        return self._count_verdicts.partly_scored

    @cached_property
    def _count_verdicts(self) -> ItemTally:
        """The sums, with missing verdict counts computed from the stored votes."""
        if not self.tally.uncounted:
            return self.tally
        tally = ItemTally()
        for line in self.lines():
            tally.add({**line.fields(), "verdicts": line.verdicts or self._counts_of(line)})
        return tally

    def _counts_of(self, line: StoredItem) -> VerdictCounts:
        if not line.raised:
            return self._report(line.position, line, Notices()).verdicts
        return VerdictCounts.all_lost(sum(map(Counter.total, self.due(line.position).values())), line.error)

    def messages(self) -> list[str]:
        """Return notices about lost, assumed and partly informed verdicts without reading any votes."""
        tally = self.tally
        if not tally.uncounted:
            return [*tally.verdicts.messages(), *tally.part_messages()]
        # Other notices cover items that are not finished or whose lines are damaged.
        lines = self._index.current_lines()
        n_items = sum(line.lost or line.raised or line.partial is not None for line in lines)
        return [f"verdicts were lost or assumed on {n_items} items"] if n_items else []

    def scores(self) -> list[float | None]:
        """Return the score of each item, in the dataset's order."""
        found: list[float | None] = [None] * len(self._index.current)
        for line in self.lines():
            found[line.position] = line.score
        return [found[position] for position in self.positions]

    def where(self, wanted: Callable[[StoredItem], bool]) -> View[ItemResult]:
        """Return the results of the items for whose stored line `wanted` is true."""
        places = array("q", sorted(line.position for line in self.lines() if wanted(line)))
        return View(len(places), lambda place: self._result(places[place]))

    def _result(self, position: int, logs: OpenLog | None = None) -> ItemResult:
        line = self._made.get(position) or self._index.line(position, logs)
        assert line is not None
        return ItemResult(
            item_idx=position,
            item=self.dataset.items[position],
            report=None if line.raised else self._report(position, line, Notices(), logs),
            duration_seconds=line.duration_seconds,
            error=line.error,
        )

    def _report(
        self, position: int, line: StoredItem, notices: Notices, logs: OpenLog | None = None
    ) -> EnsembleEvaluationReport:
        task = grading_task(self.dataset, position)
        stored = [vote for _, vote in self._index.votes(line.item_id, line, logs)]
        report = self._build(task, self._reusable.select(position, task, stored, notices), line)
        # Criteria whose question has changed have no votes; the whole panel's verdicts on them are lost.
        for at, one in enumerate(report.report):
            if not one.votes and one.verdicts.lost:
                lost = VerdictCounts.all_lost(self.due(position)[one.name].total(), one.verdicts.lost_cause)
                report.report[at] = replace(one, verdicts=lost)
                report = replace(report, verdicts=VerdictCounts.sum(one.verdicts for one in report.report))
        return report

    def criterion_reports(self) -> Iterator[tuple[int, list[EnsembleCriterionReport] | None]]:
        """Yield position and criterion reports of each item; None if grading raised an error."""
        # Equal votes share one object: reasons, confidences, errors and costs are those of any of them.
        if self._decided is not None:
            yield from self._decided
            return
        found = []
        for one in self._decide():
            found.append(one)
            yield one
        self._decided = found

    def scores_and_reports(
        self,
    ) -> Iterator[tuple[int, float | None, Sequence[EnsembleCriterionReport] | None]]:
        """Yield position, score and shared criterion reports of each item, in dataset order."""
        if self._index.open_votes:
            # Votes that are newer than an item's line are not in its stored score.
            for one in self:
                report = one.report
                yield one.item_idx, *((None, None) if report is None else (report.score, report.report))
            return
        for score, (position, reports) in zip(self.scores(), self.criterion_reports(), strict=True):
            yield position, score, reports

    def rows(self) -> Iterator[tuple[StoredItem, EnsembleEvaluationReport | None]]:
        """Yield line and report of each item in dataset order; its votes may be those of other items."""
        policy = getattr(self._build, "policy", None)
        lines = {line.position: line for line in self.lines()}
        if self._index.open_votes or policy is None:
            for one in self:
                yield lines[one.item_idx], one.report
            return
        for position, reports in self.criterion_reports():
            line = lines[position]
            if reports is None:
                yield line, None
            elif line.error or line.partial or line.verdicts is None:
                # Shared reports have other items' errors, and lines of earlier versions are incomplete.
                yield line, self._report(position, line, Notices())
            else:
                root, spent = self.dataset.get_item_rubric(position).root, (line.tokens, line.cost)
                yield line, scored_report(root, reports, policy, line.length_penalty, spent)

    def _decide(self) -> Iterator[tuple[int, list[EnsembleCriterionReport] | None]]:
        policy = getattr(self._build, "policy", None)
        if self._index.moved or self._index.open_votes or self._made or policy is None:
            for one in self:
                yield one.item_idx, None if one.report is None else list(one.report.report)
            return
        state, snapshot = self._state(), self._index.path / SNAPSHOT
        votes = read_snapshot(snapshot, state)
        if votes is None:
            votes = read_all_votes(
                self._index.path / VOTES,
                self._index.current_lines(),
                with_confidence=policy.escalation is not None,
            )
        decide = SharedReports(self._reusable, votes.kinds, self.dataset, policy)
        items, valid, is_whole = array("i"), array("i"), votes.digests is not None
        wanted = zip(self.positions, votes.on_items(self.positions), strict=True)
        texts = enumerate(self.dataset.items)
        for position, (kinds, digests) in wanted:
            item = next(one for at, one in texts if at == position)
            if digests is not None:
                kinds, is_all = self._reusable.valid_kinds(position, votes.kinds, kinds, digests)
                is_whole = is_whole and is_all
                items.extend([position] * len(kinds))
                valid.extend(kinds)
            yield position, None if self._index.raised[position] else decide(position, item, kinds)
        # If a vote is not valid, a file of the folder may have changed for a moment.
        if is_whole:
            write_snapshot(snapshot, state, items, valid, votes.kinds)

    def write_snapshot(self, votes: VoteCollector) -> None:
        """Write the snapshot of a run that has just ended, if it is complete, from all of its votes."""
        if self._index.current.count(1) == len(self._index.current) and not self._index.open_votes:
            votes.write(self._index.path / SNAPSHOT, self._state())

    def _state(self) -> str:
        """Return a digest of all that the validity of votes depends on: logs, settings and dataset."""
        index = self._index
        logs = [crc_of(index.path / name) for name in (VOTES, ITEMS)]
        found = sha256(json.dumps([self._reusable.basis, logs]).encode("ascii"))
        found.update(index.lines.tobytes() + index.current)
        return found.hexdigest()

    def _make_lines(self, *, is_new_rubric: bool, is_penalised: bool) -> None:
        """Compute the results of items without a valid line that have all votes that are due."""
        current, open_votes = self._index.current, self._index.open_votes
        if current.count(1) == len(current):
            return
        for position, item_id in enumerate(self.dataset.item_ids()):
            if position in self._index.affected:
                why = self._index.affected[position]
                self._made[position] = StoredItem(item_id=item_id, position=position, error=why, raised=True)
                continue
            if current[position] or (self._index.lines[position] < 0 and item_id not in open_votes):
                continue
            stored = self._index.line(position)
            line = replace(stored or StoredItem(item_id=item_id, position=position), position=position)
            if line.raised:
                self._made[position] = line
                continue
            report = self._report(position, line, self.notices)
            due = self._reusable.due(position, of_all=True)
            if is_new_rubric and stored is not None:
                # Criteria that have changed have no votes, which a notice says.
                due |= {one.name: Counter() for one in report.report if not one.votes}
            if any(len(one.votes) < due[one.name].total() for one in report.report):
                # The run stopped within the item, and the score of a part of the votes is not its score.
                continue
            if stored is None and is_penalised:
                why = "the item is unfinished, so its length penalty is unknown; resume the run"
                self._made[position] = replace(line, error=why, raised=True)
                continue
            self._made[position] = replace(line, **outcome_of(report))
