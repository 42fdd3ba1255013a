"""The processes of a Ray run: workers that grade items, and the keeper of the limits for all of them.

This module does not import Ray: a worker calls the keeper through the handle that it receives. Each request
is granted individually, in order of arrival, so limits, including learned limits, are enforced as exactly as
in one process.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, NamedTuple

from autorubric.errors import BudgetError
from autorubric.grading.base import Grader
from autorubric.llm.budget import Spending, SpendingLimit, spending_within
from autorubric.llm.rate_limits import RequestLimits, Slot, local_limiter, set_authority
from autorubric.runs.executor import ItemWork, grade_item
from autorubric.runs.items import GradedItem
from autorubric.scoring.votes import VoteCast

TURNS: Final = 64
"""Maximum number of pending slot requests per worker and provider, so that workers take turns."""
_GATHERED: Final = 0.02
"""Number of seconds for which a worker collects the votes on an item before it reports them."""


@dataclass(slots=True)
class SlotOutcome:
    """A request in flight in a worker, which is sent to the keeper when the request has ended."""

    is_answered: bool = False
    tokens: int | None = None  # counted by the provider
    is_throttled: bool = False
    retry_after: float | None = None  # seconds to wait as requested by the provider

    def spent(self, tokens: int) -> None:
        """Record the number of tokens counted by the provider."""
        self.tokens = tokens

    def throttled(self, retry_after: float | None) -> None:
        """Record that the provider rejected the request because of its rate limit."""
        self.is_throttled, self.retry_after = True, retry_after


class _NotAnsweredError(Exception):
    """Passed to a slot if its request ended without an answer."""


class _Grant(NamedTuple):
    """A slot or a reservation of a worker, waiting or granted."""

    asking: asyncio.Future[Any]
    release: Callable[[Any], Awaitable[None]]
    at_death: Any  # passed to `release` if the worker dies


class Keeper:
    """The keeper of the limits and the budget of all workers of a run; `max_cost` is in US dollars."""

    def __init__(self, max_calls: int | None, max_cost: float | None) -> None:
        self._budget = SpendingLimit(max_calls=max_calls, max_cost=max_cost)
        self._grants: defaultdict[str, dict[int, _Grant]] = defaultdict(dict)
        self._dead: set[str] = set()

    async def enter(
        self, worker: str, number: int, provider: str, limits: RequestLimits, tokens: int
    ) -> BaseException | None:
        """Wait for a slot for a worker's request, whose number is unique for the worker."""
        slot = local_limiter(provider, limits).slot(tokens)
        entering: asyncio.Future[Slot] = asyncio.ensure_future(slot.__aenter__())

        async def leave(outcome: SlotOutcome) -> None:
            if outcome.tokens is not None:
                entering.result().spent(outcome.tokens)
            if outcome.is_throttled:
                entering.result().throttled(outcome.retry_after)
            await slot.__aexit__(None if outcome.is_answered else _NotAnsweredError, None, None)

        return await self._grant(worker, number, _Grant(entering, leave, SlotOutcome()))

    async def reserve(self, worker: str, number: int, cost: float) -> BaseException | None:
        """Wait until a worker's request fits the budget, and reserve it."""
        reserving = asyncio.ensure_future(self._budget.reserve(cost))

        async def settle(paid: float | None) -> None:
            await self._budget.settle(cost, paid)

        # The request of a worker that died may have been answered and paid for.
        return await self._grant(worker, number, _Grant(reserving, settle, cost))

    async def end(self, worker: str, number: int, outcome: SlotOutcome | float | None) -> None:
        """End a slot with its outcome, or a reservation with its cost; withdraw it if it is not granted."""
        grant = self._grants[worker].pop(number, None)
        if grant is not None and not grant.asking.cancel():
            await grant.release(outcome)

    async def spending(self) -> Spending:
        """Return the number of requests and the amount spent so far."""
        return self._budget.spending

    async def bury(self, worker: str) -> None:
        """Release the resources of a dead worker; later requests from it are withdrawn."""
        self._dead.add(worker)
        for number, grant in list(self._grants[worker].items()):
            await self.end(worker, number, grant.at_death)

    async def _grant(self, worker: str, number: int, grant: _Grant) -> BaseException | None:
        self._grants[worker][number] = grant
        if worker in self._dead:
            await self.end(worker, number, grant.at_death)
        await asyncio.wait([grant.asking])
        error = None if grant.asking.cancelled() else grant.asking.exception()
        if error is not None:
            del self._grants[worker][number]
        return error


class KeeperLine:
    """A worker's access to the keeper: the rate limit authority and the budget of the worker's process.

    Args:
        counts_cost: Whether requests reserve their estimated cost.
    """

    def __init__(self, worker: str, keeper: Any, *, counts_cost: bool = False) -> None:
        self.counts_cost = counts_cost
        self.stop_reason: str | None = None
        self._worker = worker
        self._keeper = keeper
        self._numbers = count()
        self._turns: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(TURNS))
        self._reserved: defaultdict[float, list[int]] = defaultdict(list)

    def gate(self, provider: str, limits: RequestLimits) -> KeeperGate:
        """Return a gate that grants slots for requests to the provider."""
        return KeeperGate(self, provider, limits)

    async def reserve(self, cost: float) -> None:
        """Reserve budget for one request, waiting until enough is available."""
        number = await self._ask(self._keeper.reserve, cost, withdrawal=None)
        # Among requests that reserved equal amounts, the order of settling does not matter.
        self._reserved[cost].append(number)

    async def settle(self, reserved: float, cost: float | None) -> None:
        """Replace a reservation with the request's actual cost in US dollars; None if it was not sent."""
        self._end(self._reserved[reserved].pop(), cost)

    @asynccontextmanager
    async def slot(self, provider: str, limits: RequestLimits, tokens: int) -> AsyncIterator[SlotOutcome]:
        """Wait until the keeper grants a slot, and report the request's outcome when the block ends."""
        outcome = SlotOutcome()
        async with self._turns[provider]:
            number = await self._ask(self._keeper.enter, provider, limits, tokens, withdrawal=outcome)
        try:
            yield outcome
            outcome.is_answered = True
        finally:
            self._end(number, outcome)

    async def _ask(self, method: Any, *question: Any, withdrawal: SlotOutcome | None) -> int:
        """Return the number of a request when the keeper grants it."""
        number = next(self._numbers)
        try:
            error = await method.remote(self._worker, number, *question)
        except asyncio.CancelledError:
            self._end(number, withdrawal)
            raise
        if error is not None:
            raise error
        return number

    def _end(self, number: int, outcome: SlotOutcome | float | None) -> None:
        self._keeper.end.remote(self._worker, number, outcome)


@dataclass(frozen=True, slots=True)
class KeeperGate:
    """Slots for requests to one provider, granted by the keeper."""

    line: KeeperLine
    provider: str
    limits: RequestLimits

    def slot(self, tokens: int = 0) -> AbstractAsyncContextManager[Slot]:
        """Return a context manager that waits until the keeper grants a slot for the request."""
        return self.line.slot(self.provider, self.limits, tokens)


@dataclass(slots=True)
class Report:
    """What happened to an item since the last report on it."""

    votes: list[VoteCast] = field(default_factory=list)
    done: GradedItem | None = None
    is_over: bool = False  # without `done`, the budget left the item unfinished


class Worker:
    """A worker that grades items in a separate process."""

    def __init__(
        self, name: str, grader: Grader, keeper: Any, *, counts_cost: bool | None, keeps_exchanges: bool
    ) -> None:
        self._grader = grader
        line = KeeperLine(name, keeper, counts_cost=bool(counts_cost))
        self._budget = None if counts_cost is None else line
        self._keeps_exchanges = keeps_exchanges
        set_authority(line)

    async def begin(self) -> None:
        """Return once the process has started."""

    async def grade(self, work: ItemWork) -> AsyncGenerator[Report, None]:
        """Grade an item and yield its votes as they are cast, and its result with the last votes."""
        votes = _Votes(keeps_exchanges=self._keeps_exchanges)
        with spending_within(self._budget):
            grading = asyncio.ensure_future(grade_item(work, self._grader, votes))
        grading.add_done_callback(lambda _: votes.arrived.set())
        while not grading.done():
            await votes.arrived.wait()
            await asyncio.wait([grading], timeout=_GATHERED)
            if not grading.done():
                yield Report(votes.take())
        done = None
        try:
            done = grading.result()
        except BudgetError:
            pass
        except BaseException:
            # The votes of an item are stored although grading it failed.
            yield Report(votes.take())
            raise
        yield Report(votes.take(), done, is_over=True)

    async def close(self) -> None:
        """Release the resources of the grader's judges."""
        await self._grader.aclose()


@dataclass(slots=True, kw_only=True)
class _Votes:
    """Collects the votes on an item."""

    keeps_exchanges: bool
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    cast: list[VoteCast] = field(default_factory=list)

    def vote_cast(self, event: VoteCast) -> None:
        """Add a vote to the next report."""
        self.cast.append(event if self.keeps_exchanges else event._replace(exchanged=None))
        self.arrived.set()

    def take(self) -> list[VoteCast]:
        """Return the votes since the last call."""
        self.arrived.clear()
        votes, self.cast = self.cast, []
        return votes
