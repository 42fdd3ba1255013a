"""What runs in Ray's processes: the one that keeps limits and budget, and the workers that grade.

Nothing here imports Ray: a worker speaks to the keeper through the handle that it is given.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from itertools import count
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from autorubric._events import VoteCast
from autorubric.errors import BudgetError
from autorubric.eval import GradedItem, ItemWork, grade_item
from autorubric.graders import Grader
from autorubric.llm import Spending, SpendingLimit, spending_within
from autorubric.rate_limit import Limits, Slot, local_limiter, set_authority

_GATHERED: Final = 0.02
"""Seconds for which a worker gathers what has arrived before it tells."""


class Ticket(NamedTuple):
    """A worker's request, as the keeper knows it."""

    worker: str
    number: int


class _NotAnsweredError(Exception):
    """A request ended without an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a request ended.

    Attributes:
        is_answered: Whether it was answered.
        tokens: What the provider counted; None where it did not.
        is_throttled: Whether the provider turned it away.
        retry_after: For how many seconds, where it says so.
    """

    is_answered: bool = False
    tokens: int | None = None
    is_throttled: bool = False
    retry_after: float | None = None


class Keeper:
    """Keeps the limits and the budget of all workers of a run.

    Args:
        max_calls: Most requests that are sent; None for no limit.
        max_cost: US dollars that they may cost; None for no limit.
    """

    def __init__(self, max_calls: int | None, max_cost: float | None) -> None:
        self._budget = SpendingLimit(max_calls=max_calls, max_cost=max_cost)
        self._asking: dict[Ticket, asyncio.Future[Any]] = {}
        self._held: dict[Ticket, tuple[AbstractAsyncContextManager[Slot], Slot]] = {}
        self._reserved: dict[Ticket, float] = {}
        self._dead: set[str] = set()

    async def acquire(self, ticket: Ticket, provider: str, limits: Limits, tokens: int) -> None:
        """Returns once the request may go; it is in flight then until `release`."""
        entered = local_limiter(provider, limits).slot(tokens)
        self._held[ticket] = (entered, await self._asked(ticket, entered.__aenter__()))

    async def release(self, ticket: Ticket, ended: Ended) -> None:
        """Counts the request as over; one that waits does not wait any more."""
        self._stop_asking(ticket)
        entered, slot = self._held.pop(ticket, (None, None))
        if entered is None or slot is None:
            return
        if ended.tokens is not None:
            slot.spent(ended.tokens)
        if ended.is_throttled:
            slot.throttled(ended.retry_after)
        await entered.__aexit__(None if ended.is_answered else _NotAnsweredError, None, None)

    async def reserve(self, ticket: Ticket, cost: float) -> BudgetError | None:
        """Sets one request aside, once there is room for it; the error where there will be none."""
        try:
            await self._asked(ticket, self._budget.reserve(cost))
        except BudgetError as error:
            return error
        self._reserved[ticket] = cost
        return None

    async def settle(self, ticket: Ticket, cost: float | None) -> None:
        """Puts what a request cost in the place of what was reserved; None: that is all that is known."""
        self._stop_asking(ticket)
        reserved = self._reserved.pop(ticket, None)
        if reserved is not None:
            await self._budget.settle(reserved, reserved if cost is None else cost)

    async def spending(self) -> Spending:
        """What was spent so far."""
        return self._budget.spending

    async def bury(self, worker: str) -> None:
        """Gives back what a worker held that is no more."""
        self._dead.add(worker)
        for ticket in [one for one in (*self._asking, *self._held) if one.worker == worker]:
            await self.release(ticket, Ended())
        for ticket in [one for one in self._reserved if one.worker == worker]:
            # It may have been answered, and paid for, all the same.
            await self.settle(ticket, None)

    async def _asked(self, ticket: Ticket, asking: Any) -> Any:
        if ticket.worker in self._dead:
            asking.close()
            raise asyncio.CancelledError
        self._asking[ticket] = asked = asyncio.ensure_future(asking)
        try:
            return await asked
        finally:
            self._asking.pop(ticket, None)

    def _stop_asking(self, ticket: Ticket) -> None:
        asked = self._asking.pop(ticket, None)
        if asked is not None:
            asked.cancel()


class Tickets:
    """Numbers the requests of a worker.

    Args:
        worker: The worker's name.
        keeper: The keeper's handle.
    """

    def __init__(self, worker: str, keeper: Any) -> None:
        self.keeper = keeper
        self._worker = worker
        self._numbers: Iterator[int] = count()

    def next(self) -> Ticket:
        """A ticket that no other request has."""
        return Ticket(self._worker, next(self._numbers))


class KeptLimits:
    """The authority of a worker's process: the keeper.

    Args:
        tickets: Of the worker.
    """

    def __init__(self, tickets: Tickets) -> None:
        self._tickets = tickets

    def gate(self, provider: str, limits: Limits) -> _KeptGate:
        """What hands out slots for requests to the provider."""
        return _KeptGate(self._tickets, provider, limits)


@dataclass(frozen=True, slots=True)
class _KeptGate:
    tickets: Tickets
    provider: str
    limits: Limits

    def slot(self, tokens: int = 0) -> AbstractAsyncContextManager[Slot]:
        """Waits until the keeper lets the request go."""
        return _KeptSlot(self, tokens)


class _KeptSlot:
    """A slot that the keeper counts."""

    def __init__(self, gate: _KeptGate, tokens: int) -> None:
        self._gate = gate
        self._tokens = tokens
        self._ticket = gate.tickets.next()
        self._ended = Ended()

    async def __aenter__(self) -> Self:
        gate, keeper = self._gate, self._gate.tickets.keeper
        try:
            await keeper.acquire.remote(self._ticket, gate.provider, gate.limits, self._tokens)
        except asyncio.CancelledError:
            keeper.release.remote(self._ticket, Ended())
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ended = replace(self._ended, is_answered=kind is None)
        self._gate.tickets.keeper.release.remote(self._ticket, ended)

    def spent(self, tokens: int) -> None:
        """Notes the tokens that the provider counted."""
        self._ended = replace(self._ended, tokens=tokens)

    def throttled(self, retry_after: float | None) -> None:
        """Notes that the provider turned the request away."""
        self._ended = replace(self._ended, is_throttled=True, retry_after=retry_after)


class KeptBudget:
    """The budget of a worker: the keeper's.

    Args:
        tickets: Of the worker.
        counts_cost: Whether it needs to know what requests cost.
    """

    def __init__(self, tickets: Tickets, *, counts_cost: bool) -> None:
        self.counts_cost = counts_cost
        self._tickets = tickets
        self._open: dict[float, list[Ticket]] = {}

    async def reserve(self, cost: float) -> None:
        """Sets one request aside, once there is room for it.

        Raises:
            BudgetError: There is no room, and there will be none.
        """
        ticket = self._tickets.next()
        try:
            refused: BudgetError | None = await self._tickets.keeper.reserve.remote(ticket, cost)
        except asyncio.CancelledError:
            self._tickets.keeper.settle.remote(ticket, 0.0)
            raise
        if refused is not None:
            raise refused
        # Which of several that reserved the same is settled first makes no difference.
        self._open.setdefault(cost, []).append(ticket)

    async def settle(self, reserved: float, cost: float) -> None:
        """Puts what a request cost, in US dollars, in the place of what was reserved for it."""
        tickets = self._open[reserved]
        self._tickets.keeper.settle.remote(tickets.pop(), cost)
        if not tickets:
            del self._open[reserved]


@dataclass(slots=True, kw_only=True)
class Parcel:
    """What has happened in a worker since it was last asked.

    Attributes:
        votes: Votes that were cast.
        done: Items that are finished.
        unfinished: Ids of items that the budget left unfinished.
    """

    votes: list[VoteCast] = field(default_factory=list)
    done: list[GradedItem] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.votes or self.done or self.unfinished)


class Worker:
    """Grades items in a process of its own.

    Args:
        name: The worker's name.
        grader: Who grades; opens its own connections here.
        keeper: The keeper's handle.
        budget: Whether there is a budget, and whether it counts cost; None for no budget.
        keeps_exchanges: Whether what was sent and received is wanted.
    """

    def __init__(
        self, name: str, grader: Grader, keeper: Any, budget: bool | None, keeps_exchanges: bool
    ) -> None:
        self._grader = grader
        tickets = Tickets(name, keeper)
        self._budget = None if budget is None else KeptBudget(tickets, counts_cost=budget)
        self._keeps_exchanges = keeps_exchanges
        self._running: set[asyncio.Task[None]] = set()
        self._parcel = Parcel()
        self._happened = asyncio.Event()
        self._bug: BaseException | None = None
        set_authority(KeptLimits(tickets))

    async def begin(self) -> Parcel:
        """An empty parcel, as soon as the process is there."""
        return Parcel()

    async def exchange(self, batch: Iterable[ItemWork]) -> Parcel:
        """Begins these items, and returns what has happened, as soon as anything has.

        Raises:
            Exception: Grading an item raised what is no `AutorubricError`.
        """
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
        """Releases what the judges hold."""
        await self._grader.aclose()

    def vote_cast(self, event: VoteCast) -> None:
        """Notes a vote."""
        self._parcel.votes.append(event if self._keeps_exchanges else replace(event, exchanged=None))
        self._happened.set()

    async def _grade(self, work: ItemWork) -> None:
        try:
            with spending_within(self._budget):
                done = await grade_item(work, self._grader, self)
            # Only now, since the parcel of before may be on its way.
            self._parcel.done.append(done)
        except BudgetError:
            self._parcel.unfinished.append(work.task.item_id)
        # Whatever it is, it belongs to the driver.
        except BaseException as error:
            self._bug = error
        self._happened.set()
