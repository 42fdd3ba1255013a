"""The link between a run folder and an executor: it hands out items and stores votes and results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from autorubric.eval._executor import ItemWork
from autorubric.eval._fingerprint import ItemDigests, content_fingerprint
from autorubric.eval._items import GradedItem, Tally
from autorubric.eval._lines import StoredItem, StoredVote
from autorubric.eval._open import OpenRun
from autorubric.eval._progress import Progress
from autorubric.eval._repeated import RepeatedErrors
from autorubric.eval._standing import answered, grading_task

if TYPE_CHECKING:
    from autorubric._events import VoteCast

_OUTCOME = tuple(one.name for one in fields(GradedItem))


class _UnderWay(NamedTuple):
    """An item that is being graded.

    Attributes:
        digests: Digests of the dependencies of its votes.
        fingerprint: Digest of the parts of the item that its figures depend on.
        before: Its latest line in the folder, whether or not that line is still valid.
        offsets: Offsets of its stored votes.
        again: Whether the item was graded earlier in this run and votes on it failed.
    """

    digests: ItemDigests
    fingerprint: str
    before: StoredItem | None
    offsets: list[int]
    again: bool = False


class RunWriter:
    """Hands out the items of a run that still need grading, and stores their votes and results.

    Args:
        opened: The run.
        progress: Progress display, updated with votes and items.
        stop: Called with the reason if a judge keeps failing with the same error; None ignores such errors.
    """

    def __init__(
        self, opened: OpenRun, progress: Progress, stop: Callable[[str], None] | None = None
    ) -> None:
        self._opened = opened
        self._errors = None if stop is None else RepeatedErrors(stop)
        self._progress = progress
        self._under_way: dict[str, _UnderWay] = {}
        self._failed_on: set[str] = set()
        self._with_failures: set[int] = set()
        self._finished = 0
        self._tally = opened.index.tally
        if self._tally is None and not opened.index.current.count(1):
            self._tally = Tally()

    def work(self) -> Iterator[ItemWork]:
        """Yield the items to grade, created one by one; finished items are skipped."""
        opened, index = self._opened, self._opened.index
        if self._progress.shown:
            for line in index.current_lines():
                if index.settled[line.position]:
                    self._progress.item(line)
        for position in range(len(opened.dataset)):
            if index.settled[position]:
                continue
            work = self._begun(position)
            if work is not None:
                yield work

    def second_chances(self) -> Iterator[ItemWork]:
        """Yield the items on which votes failed in this run, so that those votes are requested once more.

        If votes failed on all items, or on several items and over a tenth of them, nothing is yielded.
        """
        failed, self._with_failures = sorted(self._with_failures), set()
        if len(failed) == self._finished or len(failed) > max(1, self._finished // 10):
            return
        # Lines are written in the next iteration of the event loop, and these are read again here.
        self._opened.store.flush()
        for position in failed:
            work = self._begun(position, again=True)
            if work is not None:
                yield work

    def _begun(self, position: int, *, again: bool = False) -> ItemWork | None:
        """Return the item to grade; None if its stored result is still valid."""
        opened, index = self._opened, self._opened.index
        before = index.line(position)
        item_id = opened.dataset.item_id(position)
        digests = opened.standing.digests(position)
        fingerprint = content_fingerprint(opened.dataset, position, digests.fingerprint)
        if before is not None and not again and self._stands(before, fingerprint):
            carried = _UnderWay(
                digests=digests, fingerprint=fingerprint, before=before, offsets=list(before.votes)
            )
            self._store(replace(before, position=position), carried)
            return None
        stored = list(index.votes(item_id, index.offsets(position, item_id, before)))
        self._under_way[item_id] = _UnderWay(
            digests=digests,
            fingerprint=fingerprint,
            before=before,
            offsets=[offset for offset, _ in stored],
            again=again,
        )
        task = grading_task(opened.dataset, position)
        standing = opened.standing.of(position, task, [vote for _, vote in stored], opened.notices)
        stored_votes = answered(standing, unreadable=not again)
        return ItemWork(position=position, task=task, stored=stored_votes)

    def _stands(self, line: StoredItem, fingerprint: str) -> bool:
        same = line.basis == self._opened.stand.basis and line.fingerprint == fingerprint
        return same and not (line.lost or line.raised)

    def vote_cast(self, event: VoteCast) -> None:
        """Store a vote as it arrives."""
        item_id, name, vote, exchanged = event
        digests = self._under_way[item_id].digests
        digest = digests.of(digests.rubric.by_name(name), vote.judge_id)
        self._opened.store.add_vote(StoredVote(item_id, name, digest, vote), exchanged)
        self._progress.vote()
        if self._errors is not None:
            self._errors.add(event)
        if vote.status == "failed":
            self._failed_on.add(item_id)

    def finish(self, done: GradedItem) -> None:
        """Store the result of grading an item."""
        under_way = self._under_way.pop(done.item_id)
        if not under_way.again:
            self._finished += 1
            if done.item_id in self._failed_on:
                self._with_failures.add(done.position)
        self._store(done, under_way)

    def _store(self, done: GradedItem, under_way: _UnderWay) -> None:
        opened, before = self._opened, under_way.before
        outcome = {name: getattr(done, name) for name in _OUTCOME}
        if before is not None and not done.votes_cast:
            # No vote was requested, so the earlier duration is still right.
            outcome["duration_seconds"] = before.duration_seconds
        elif before is not None and under_way.again:
            outcome["duration_seconds"] += before.duration_seconds
        item = StoredItem(
            **outcome,
            basis=opened.stand.basis,
            dataset=opened.stand.dataset,
            fingerprint=under_way.fingerprint,
            votes=(*under_way.offsets, *opened.store.votes_cast(done.item_id)),
        )
        counted = opened.index.current[done.position]
        opened.index.finished(item, opened.store.add_item(item))
        self._count(outcome, counted=bool(counted))
        if not opened.index.unclaimed:
            opened.store.votes_open = None
        self._progress.item(done, instead_of=before if under_way.again else None)

    def _count(self, outcome: Mapping[str, Any], *, counted: bool) -> None:
        """Add a result to the sums, or discard the sums if the result replaces an earlier one."""
        if counted:
            self._tally = None
        elif self._tally is not None:
            self._tally.add(outcome)
        self._opened.index.tally = self._tally
