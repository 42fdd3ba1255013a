"""Results of items as a lazy view of a run folder, computed from the stored votes on access."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from autorubric.dataset import RubricDataset
from autorubric.eval._index import RunIndex
from autorubric.eval._items import GradedItem, ItemResult, Tally, outcome_of
from autorubric.eval._lines import StoredItem
from autorubric.eval._notices import Notices
from autorubric.eval._standing import StandingVotes, grading_task
from autorubric.reporting import GradingTask, Votes
from autorubric.values import VerdictCounts

if TYPE_CHECKING:
    from autorubric.types import EnsembleEvaluationReport

ViewedT = TypeVar("ViewedT", covariant=True)

Build = Callable[[GradingTask, Votes, StoredItem], "EnsembleEvaluationReport"]
"""A function that builds a report from a task, its votes and the item's line."""


class View(Sequence[ViewedT], Generic[ViewedT]):
    """A sequence that creates its elements on access and does not store them; a copy or pickle is a list.

    Args:
        length: Number of elements.
        make: Function that creates the element at an index.
    """

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
    """A sequence with one result per item, in dataset order, read from the run folder on access.

    Args:
        index: Offsets of lines and votes.
        dataset: The graded dataset.
        standing: Selects the votes that are still valid.
        build: Function that builds a report from votes.
        unfinished: Whether to include results of unfinished items, based on their stored votes.
        is_penalised: Whether scores include a length penalty, which is stored only for finished items.

    Attributes:
        notices: Notices about skipped votes.
    """

    def __init__(
        self,
        index: RunIndex,
        dataset: RubricDataset,
        standing: StandingVotes,
        build: Build,
        *,
        unfinished: bool,
        is_penalised: bool = False,
    ) -> None:
        self.notices = Notices()
        self._index = index
        self._dataset = dataset
        self._standing = standing
        self._build = build
        # Computed lines of items that have no line in the folder, or no valid one.
        self._made: dict[int, StoredItem] = {}
        self._is_penalised = is_penalised
        if unfinished:
            self._make_lines()
        n_items = len(index.current)
        complete = index.current.count(1) == n_items
        self._positions: Sequence[int] = (
            range(n_items)
            if complete
            else array("q", (at for at in range(n_items) if index.current[at] or at in self._made))
        )
        super().__init__(len(self._positions), self._at)

    # Copies and pickles remain views of the folder.
    __reduce__ = object.__reduce__

    def _at(self, place: int) -> ItemResult:
        return self._result(self._positions[place])

    @property
    def positions(self) -> Sequence[int]:
        """Position in the dataset of each result."""
        return self._positions

    def lines(self) -> Iterator[StoredItem]:
        """Yield the stored figures of each item, without its votes, in the order in which items finished."""
        yield from self._index.current_lines()
        yield from self._made.values()

    @cached_property
    def tally(self) -> Tally:
        """Sums over all items."""
        if self._index.tally is not None and not self._made:
            return self._index.tally
        tally = Tally()
        for line in self.lines():
            tally.add(line.fields())
        return tally

    @property
    def verdicts(self) -> VerdictCounts:
        """Counts of the verdicts of all items by outcome, computed from stored votes where necessary."""
        return self._counted.verdicts

    @property
    def partly_scored(self) -> int:
        """Number of items that have a score although one of their verdicts was lost."""
        return self._counted.partly_scored

    @cached_property
    def _counted(self) -> Tally:
        """The sums, with missing verdict counts computed from the stored votes."""
        if not self.tally.uncounted:
            return self.tally
        tally = Tally()
        for line in self.lines():
            tally.add({**line.fields(), "verdicts": line.verdicts or self._counts_of(line)})
        return tally

    def _counts_of(self, line: StoredItem) -> VerdictCounts:
        if not line.raised:
            return self._report(line.position, line, Notices())[0].verdicts
        task = grading_task(self._dataset, line.position)
        return GradedItem.of_error(task, line.position, line.error or "").verdicts or VerdictCounts()

    def messages(self) -> list[str]:
        """Return notices about lost and assumed verdicts without reading any votes."""
        tally = self.tally
        if not tally.uncounted:
            return tally.verdicts.messages()
        # Other notices cover items that are not finished or whose lines are damaged.
        lines = self._index.current_lines()
        n_items = sum(line.lost or line.raised or line.partial is not None for line in lines)
        return [f"verdicts were lost or assumed on {n_items} items"] if n_items else []

    def scores(self) -> list[float | None]:
        """Return the score of each item, in the dataset's order."""
        found: list[float | None] = [None] * len(self._index.current)
        for line in self.lines():
            found[line.position] = line.score
        return [found[position] for position in self._positions]

    def where(self, wanted: Callable[[StoredItem], bool]) -> View[ItemResult]:
        """Return the results of the items for whose stored line `wanted` is true."""
        places = array("q", sorted(line.position for line in self.lines() if wanted(line)))
        return View(len(places), lambda place: self._result(places[place]))

    def _result(self, position: int) -> ItemResult:
        line = self._made.get(position) or self._index.line(position)
        assert line is not None
        return ItemResult(
            item_idx=position,
            item=self._dataset.items[position],
            report=None if line.raised else self._report(position, line, Notices())[0],
            duration_seconds=line.duration_seconds,
            error=line.error,
        )

    def _report(
        self, position: int, line: StoredItem, notices: Notices
    ) -> tuple[EnsembleEvaluationReport, bool]:
        """Return the report on an item and whether the item has votes."""
        task = grading_task(self._dataset, position)
        offsets = self._index.offsets(position, line.item_id, line)
        stored = [vote for _, vote in self._index.votes(line.item_id, offsets)]
        votes = self._standing.of(position, task, stored, notices)
        return self._build(task, votes, line), any(votes.values())

    def _make_lines(self) -> None:
        """Compute the results of items without a valid line."""
        current, unclaimed = self._index.current, self._index.unclaimed
        if current.count(1) == len(current):
            return
        for position, item_id in enumerate(self._dataset.item_ids()):
            if position in self._index.affected:
                why = self._index.affected[position]
                self._made[position] = StoredItem(item_id=item_id, position=position, error=why, raised=True)
                continue
            if current[position] or (self._index.lines[position] < 0 and item_id not in unclaimed):
                continue
            stored = self._index.line(position)
            if stored is None and self._is_penalised:
                why = "the item is unfinished, so its length penalty is unknown; resume the run"
                self._made[position] = StoredItem(item_id=item_id, position=position, error=why, raised=True)
                continue
            line = replace(stored or StoredItem(item_id=item_id, position=position), position=position)
            report, voted = self._report(position, line, self.notices)
            if stored is None and any(not one.votes and one.criterion.check is None for one in report.report):
                # The run stopped within the item, and a score of some criteria would look like its score.
                continue
            if line.raised or not (voted or stored):
                if stored:
                    self._made[position] = line
                continue
            self._made[position] = replace(line, **outcome_of(report))
