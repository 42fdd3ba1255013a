"""Between a run folder and an executor: items to grade come from it, votes and outcomes go into it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from autorubric._events import VoteCast
from autorubric.eval._executor import ItemWork
from autorubric.eval._fingerprint import ItemDigests, content_fingerprint
from autorubric.eval._items import GradedItem, Tally
from autorubric.eval._lines import StoredItem, StoredVote
from autorubric.eval._open import OpenRun
from autorubric.eval._progress import Progress
from autorubric.eval._standing import answered, grading_task

_OUTCOME = tuple(one.name for one in fields(GradedItem))


@dataclass(frozen=True, slots=True, kw_only=True)
class _UnderWay:
    """An item that was handed out.

    Attributes:
        digests: What its votes depend on.
        fingerprint: What its figures depend on of the item itself.
        before: Its latest line in the folder, whatever that was written under.
        offsets: Where its stored votes stand.
    """

    digests: ItemDigests
    fingerprint: str
    before: StoredItem | None
    offsets: list[int]


class RunWriter:
    """Hands out the items of a run that are to be graded, and stores what comes of them.

    Args:
        opened: The run.
        progress: Is told of votes and items.
    """

    def __init__(self, opened: OpenRun, progress: Progress) -> None:
        self._opened = opened
        self._progress = progress
        self._under_way: dict[str, _UnderWay] = {}
        self._tally = opened.index.tally
        if self._tally is None and not opened.index.current.count(1):
            self._tally = Tally()

    def work(self) -> Iterator[ItemWork]:
        """The items to be graded, each made when it is asked for; those that are finished are passed over."""
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

    def _begun(self, position: int) -> ItemWork | None:
        """The item to grade; None where only the dataset around it has changed, and its line goes on."""
        opened, index = self._opened, self._opened.index
        before = index.line(position)
        item_id = opened.dataset.item_id(position)
        digests = opened.standing.digests(position)
        fingerprint = content_fingerprint(opened.dataset, position, digests.fingerprint)
        if before is not None and self._stands(before, fingerprint):
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
        )
        task = grading_task(opened.dataset, position)
        standing = opened.standing.of(position, task, [vote for _, vote in stored], opened.notices)
        return ItemWork(position=position, task=task, stored=answered(standing))

    def _stands(self, line: StoredItem, fingerprint: str) -> bool:
        same = line.basis == self._opened.stand.basis and line.fingerprint == fingerprint
        return same and self._opened.index.trusted and not (line.lost or line.raised)

    def vote_cast(self, event: VoteCast) -> None:
        """Stores a vote as it arrives."""
        digests = self._under_way[event.item_id].digests
        criterion = digests.rubric.by_name(event.criterion)
        stored = StoredVote(
            item_id=event.item_id,
            criterion=event.criterion,
            digest=digests.of(criterion, event.vote.judge_id),
            vote=event.vote,
        )
        self._opened.store.add_vote(stored, event.exchanged)
        self._progress.vote()

    def finish(self, done: GradedItem) -> None:
        """Stores what grading an item came to."""
        self._store(done, self._under_way.pop(done.item_id))

    def _store(self, done: GradedItem, under_way: _UnderWay) -> None:
        opened, before = self._opened, under_way.before
        outcome = {name: getattr(done, name) for name in _OUTCOME}
        if before is not None and not done.votes_cast:
            # Nothing was asked, so that it took as long as it took then.
            outcome["duration_seconds"] = before.duration_seconds
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
        self._progress.item(done)

    def _count(self, outcome: Mapping[str, Any], *, counted: bool) -> None:
        """Keeps the sums over lines, so that none need be read; not where one takes another's place."""
        if counted:
            self._tally = None
        elif self._tally is not None:
            self._tally.add(outcome)
        self._opened.index.tally = self._tally
