"""The workers of a Ray run: grade items, report votes, and get limits and budget from the keeper in blocks.

This module does not import Ray: a worker calls the keeper through the handle that it receives.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from itertools import count
from types import TracebackType
from typing import Any, Final, Self

from autorubric.errors import BudgetError
from autorubric.grading.base import Grader
from autorubric.integrations.ray_keeper import (
    Asked,
    CostAsked,
    CostSettled,
    LimitReply,
    SlotAsked,
    SlotEnded,
    Told,
)
from autorubric.llm.budget import spending_within
from autorubric.llm.rate_limits import RequestLimits, Slot, set_authority
from autorubric.runs.executor import ItemWork, grade_item
from autorubric.runs.items import GradedItem
from autorubric.scoring.votes import VoteCast

BLOCK: Final = 64
"""Maximum number of pending slot requests per worker and provider, so that workers take turns."""


class Channel:
    """The message channel between a worker and the keeper.

    One call is in progress at a time; messages that arise during a call are sent with the next call. If
    questions remain open after a call, a second call waits for their answers.
    """

    def __init__(self, worker: str, keeper: Any) -> None:
        self._worker = worker
        self._keeper = keeper
        self._numbers = count()
        self._block: list[Told] = []
        self._open: dict[int, asyncio.Future[None]] = {}
        self._telling: asyncio.Task[None] | None = None
        self._hearing: asyncio.Task[None] | None = None
        self._broken: Exception | None = None

    async def ask(self, question: Callable[[int], Asked], withdrawal: Callable[[int], Told]) -> int:
        """Ask a question and return its number once it is granted."""
        if self._broken is not None:
            raise self._broken
        number = next(self._numbers)
        self._open[number] = granted = asyncio.get_running_loop().create_future()
        self.tell(question(number))
        try:
            await granted
        except asyncio.CancelledError:
            self._open.pop(number, None)
            self.tell(withdrawal(number))
            raise
        return number

    def tell(self, told: Told) -> None:
        """Send a message to the keeper after all earlier messages; do nothing if it cannot be reached."""
        if self._broken is not None:
            return
        self._block.append(told)
        if self._telling is None:
            self._telling = asyncio.ensure_future(self._tell())

    async def _tell(self) -> None:
        try:
            while self._block:
                block, self._block = self._block, []
                self._heard(await self._keeper.tell.remote(self._worker, block))
        except Exception as error:
            self._break(error)
        self._telling = None
        if self._open and self._hearing is None:
            self._hearing = asyncio.ensure_future(self._hear())

    async def _hear(self) -> None:
        try:
            while self._open:
                self._heard(await self._keeper.answers.remote(self._worker))
        except Exception as error:
            self._break(error)
        self._hearing = None

    def _heard(self, answers: Sequence[LimitReply]) -> None:
        for number, error in answers:
            granted = self._open.pop(number, None)
            if granted is None or granted.done():
                continue
            if error is None:
                granted.set_result(None)
            else:
                granted.set_exception(error)

    def _break(self, error: Exception) -> None:
        """Fail all pending and future questions with the error of a call to the keeper."""
        self._broken = error
        self._heard([LimitReply(number, error) for number in self._open])


class KeptLimits:
    """The rate limit authority of a worker process, which delegates to the keeper."""

    def __init__(self, line: Channel) -> None:
        self._line = line
        self._turns: dict[str, asyncio.Semaphore] = {}

    def gate(self, provider: str, limits: RequestLimits) -> _KeptGate:
        """Return a gate that grants slots for requests to the provider."""
        turns = self._turns.get(provider)
        if turns is None:
            turns = self._turns[provider] = asyncio.Semaphore(BLOCK)
        return _KeptGate(self._line, turns, provider, limits)


class _KeptGate:
    __slots__ = ("limits", "line", "provider", "turns")

    def __init__(self, line: Channel, turns: asyncio.Semaphore, provider: str, limits: RequestLimits) -> None:
        self.line = line
        self.turns = turns
        self.provider = provider
        self.limits = limits

    def slot(self, tokens: int = 0) -> AbstractAsyncContextManager[Slot]:
        """Return a context manager that waits until the keeper grants a slot for the request."""
        return _KeptSlot(self, tokens)


class _KeptSlot:
    """A slot that is granted and counted by the keeper."""

    __slots__ = ("_gate", "_is_throttled", "_number", "_retry_after", "_spent", "_tokens")

    _number: int

    def __init__(self, gate: _KeptGate, tokens: int) -> None:
        self._gate = gate
        self._tokens = tokens
        self._spent: int | None = None
        self._is_throttled = False
        self._retry_after: float | None = None

    async def __aenter__(self) -> Self:
        gate = self._gate
        async with gate.turns:
            self._number = await gate.line.ask(
                lambda number: SlotAsked(number, gate.provider, gate.limits, self._tokens), SlotEnded
            )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ended = SlotEnded(self._number, kind is None, self._spent, self._is_throttled, self._retry_after)
        self._gate.line.tell(ended)

    def spent(self, tokens: int) -> None:
        """Record the number of tokens counted by the provider."""
        self._spent = tokens

    def throttled(self, retry_after: float | None) -> None:
        """Record that the provider rejected the request because of its rate limit."""
        self._is_throttled, self._retry_after = True, retry_after


class KeptBudget:
    """The budget of a worker, which is enforced by the keeper."""

    def __init__(self, line: Channel, *, counts_cost: bool) -> None:
        self.counts_cost = counts_cost
        self.stop_reason: str | None = None
        self._line = line
        self._open: dict[float, list[int]] = {}

    async def reserve(self, cost: float) -> None:
        """Reserve budget for one request, waiting until enough is available."""
        number = await self._line.ask(
            lambda number: CostAsked(number, cost), lambda number: CostSettled(number, None)
        )
        # Among requests that reserved equal amounts, the order of settling does not matter.
        self._open.setdefault(cost, []).append(number)

    async def settle(self, reserved: float, cost: float | None) -> None:
        """Replace a reservation with the request's actual cost in US dollars; None if it was not sent."""
        numbers = self._open[reserved]
        self._line.tell(CostSettled(numbers.pop(), cost))
        if not numbers:
            del self._open[reserved]


_GATHERED: Final = 0.02
"""Number of seconds for which a worker collects events before it reports them."""


@dataclass(slots=True, kw_only=True)
class Parcel:
    """The events in a worker since its last report.

    Attributes:
        votes: Votes that were cast.
        done: Results of the items that were finished.
        unfinished: Ids of the items that could not be finished because the budget was used up.
    """

    votes: list[VoteCast] = field(default_factory=list)
    done: list[GradedItem] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.votes or self.done or self.unfinished)


class Worker:
    """A worker that grades items in a separate process."""

    def __init__(
        self, name: str, grader: Grader, keeper: Any, budget: bool | None, keeps_exchanges: bool
    ) -> None:
        self._grader = grader
        line = Channel(name, keeper)
        self._budget = None if budget is None else KeptBudget(line, counts_cost=budget)
        self._keeps_exchanges = keeps_exchanges
        self._running: set[asyncio.Task[None]] = set()
        self._parcel = Parcel()
        self._happened = asyncio.Event()
        self._bug: BaseException | None = None
        set_authority(KeptLimits(line))

    async def begin(self) -> Parcel:
        """Return an empty parcel once the process has started."""
        return Parcel()

    async def exchange(self, batch: Iterable[ItemWork]) -> Parcel:
        """Start grading a batch of items, then wait for events and return them."""
        for work in batch:
            task = asyncio.ensure_future(self._grade(work))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        await self._happened.wait()
        await asyncio.sleep(_GATHERED)
        if self._bug is not None and not self._parcel:
            raise self._bug
        parcel, self._parcel = self._parcel, Parcel()
        if self._bug is None:
            self._happened.clear()
        return parcel

    async def close(self) -> None:
        """Release the resources of the grader's judges."""
        await self._grader.aclose()

    def vote_cast(self, event: VoteCast) -> None:
        """Add a vote to the next parcel."""
        self._parcel.votes.append(event if self._keeps_exchanges else event._replace(exchanged=None))
        self._happened.set()

    async def _grade(self, work: ItemWork) -> None:
        try:
            with spending_within(self._budget):
                done = await grade_item(work, self._grader, self)
            # The parcel is looked up now, because it may have been replaced during grading.
            self._parcel.done.append(done)
        except BudgetError:
            self._parcel.unfinished.append(work.task.item_id)
        # Any other error is passed on to the calling process.
        except BaseException as error:
            self._bug = error
        self._happened.set()
