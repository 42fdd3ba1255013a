"""The test request to each model before a run, and the progress line during it."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from autorubric.errors import JudgeError
from autorubric.grading.grader import CriterionGrader
from autorubric.llm.retry import without_retries
from autorubric.runs.config import ProgressStyle
from autorubric.runs.executor import ItemWork
from autorubric.runs.items import GradedItem

if TYPE_CHECKING:
    from tqdm import tqdm

    from autorubric.grading.base import Grader, GradingTask
    from autorubric.scoring.votes import JudgeVote, Listener, VoteCast, Votes


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCheck:
    """A judge's successful answer to its test request."""

    judge_id: str
    seconds: float | None  # latency in seconds; None if it was not measured
    cost: float | None  # cost in US dollars; None if it is unknown


@dataclass(frozen=True, slots=True)
class _Held:
    """A listener that collects votes."""

    events: list[VoteCast]

    def vote_cast(self, event: VoteCast) -> None:
        self.events.append(event)


Preflight = Callable[[JudgeCheck], None]
"""A function that is called for each judge that answered its test request."""


async def send_test_requests(
    work: Iterator[ItemWork], grader: Grader, listener: Listener, report: Preflight
) -> Iterator[ItemWork]:
    """Send each model one request about the first item, and return the items with these votes included."""
    first = next(work, None)
    if first is None:
        return work
    held = _Held([])
    stored = await _test_models(grader, first.task, first.stored, held, report)
    # Stored only now, so that a failed panel leaves no votes that another panel would have to match.
    for event in held.events:
        listener.vote_cast(event)
    return chain([replace(first, stored=stored)], work)


class CheckedGrader(CriterionGrader):
    """A grader that sends each model one request before all others, unless `preflight` is off."""

    def __init__(self, *, preflight: bool = True, **options: Any) -> None:
        super().__init__(**options)
        self._is_checked = not preflight
        self._error: JudgeError | None = None
        self._lock = asyncio.Lock()

    async def judge(
        self, task: GradingTask, *, stored: Votes | None = None, listener: Listener | None = None
    ) -> dict[str, list[JudgeVote]]:
        """Return all votes on the task; see `CriterionGrader.judge`."""
        async with self._lock:
            if self._error is not None:
                raise self._error
            if not self._is_checked:
                self._is_checked = True
                try:
                    stored = await _test_models(self, task, stored or {}, listener, lambda check: None)
                except JudgeError as error:
                    self._error = error
                    raise
        return await super().judge(task, stored=stored, listener=listener)


async def _test_models(
    grader: Grader, task: GradingTask, stored: Votes, listener: Listener | None, report: Preflight
) -> dict[str, list[JudgeVote]]:
    """Send each model one request and return the stored votes with those that were cast."""
    cast: dict[str, list[JudgeVote]] = {}
    if hasattr(grader, "first_votes"):
        with without_retries():
            cast = await grader.first_votes(task, stored=stored, listener=listener)
    by_judge: dict[str, list[JudgeVote]] = {}
    for vote in chain.from_iterable(cast.values()):
        by_judge.setdefault(vote.judge_id, []).append(vote)
    for judge_id, votes in by_judge.items():
        report(_check_of(judge_id, votes))
    return {name: [*stored.get(name, ()), *cast.get(name, ())] for name in {**stored, **cast}}


# Errors that can disappear without a change to the judge's settings.
_MAY_PASS = ("ReplyError", "ProviderTimeoutError", "RateLimitError")


def _check_of(judge_id: str, votes: Sequence[JudgeVote]) -> JudgeCheck:
    errors = [vote.error for vote in votes if vote.error]
    if errors and len(errors) == len(votes):
        # The error's message is more informative than its class.
        kind, _, said = errors[0].partition(": ")
        # The item may cause an unreadable reply, and a model that is still loading a timeout.
        hint = "; --timeout S allows more time" if kind == "ProviderTimeoutError" else ""
        hint += "; --no-preflight skips this request" if kind in _MAY_PASS else ""
        raise JudgeError(
            f"judge {judge_id!r} failed its test request, so grading was not started: {said or kind}{hint}"
        )
    costs = [vote.completion_cost for vote in votes if vote.completion_cost is not None]
    seconds = [vote.latency_seconds for vote in votes if vote.latency_seconds is not None]
    return JudgeCheck(
        judge_id=judge_id,
        seconds=max(seconds, default=None),
        cost=sum(costs) if len(costs) == len(votes) else None,
    )


class Progress:
    """A progress bar for items and, optionally, one for votes, if stderr is a terminal."""

    def __init__(self, total: int, *, show: bool, style: ProgressStyle) -> None:
        self.shown = show and sys.stderr.isatty()  # whether a progress bar is shown
        self._items = _bar(total=total, unit="item", desc="grading") if self.shown else None
        is_detailed = self.shown and style == "detailed"
        self._votes = _bar(unit="vote", desc="votes", position=1) if is_detailed else None
        self._scores = 0.0
        self._scored = 0
        self._cost: float | None = None
        self._failed = 0
        self._lost = 0
        self._assumed = 0

    def vote(self) -> None:
        """Count a vote."""
        if self._votes is not None:
            self._votes.update()

    def item(self, done: GradedItem, *, instead_of: GradedItem | None = None) -> None:
        """Count a finished item, or replace an earlier result of the item."""
        if self._items is None:
            return
        self._count(done, 1)
        if instead_of is None:
            self._items.update()
        else:
            self._count(instead_of, -1)
        self._items.set_postfix_str(", ".join(self._figures()), refresh=False)

    def _figures(self) -> Iterator[str]:
        yield f"score {self._scores / self._scored:.3f}" if self._scored else "score –"
        if self._cost is not None:
            yield f"${self._cost:.4f}"
        yield f"{self._failed} failed"
        if self._lost:
            yield f"{self._lost} lost"
        if self._assumed:
            yield f"{self._assumed} assumed"

    def _count(self, done: GradedItem, times: int) -> None:
        if done.score is not None:
            self._scores += times * done.score
            self._scored += times
        if done.cost is not None:
            self._cost = (self._cost or 0.0) + times * done.cost
        if done.verdicts is not None:
            self._lost += times * done.verdicts.lost
            self._assumed += times * done.verdicts.assumed
        self._failed += times * (done.error is not None)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        for bar in (self._votes, self._items):
            if bar is not None:
                bar.close()


def _bar(**options: Any) -> tqdm[Any]:
    # Imported late, since no bar is shown outside a terminal.
    from tqdm import tqdm

    # A terminal of unknown size reports 0 columns, and tqdm would then show nothing.
    size = shutil.get_terminal_size()
    return tqdm(file=sys.stderr, ncols=size.columns, nrows=size.lines, **options)
