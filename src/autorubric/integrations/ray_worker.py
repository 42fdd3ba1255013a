"""The processes of a Ray run: workers that grade items, and the keeper of the limits for all of them.

This module does not import Ray: a worker calls the keeper through the handle that it receives. Requests are
granted one by one, in order of arrival and for a single use, so limits, including learned limits, are
enforced as exactly as in one process.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
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
"""Number of seconds for which a worker collects events before it reports them."""


@dataclass(slots=True)
class SlotOutcome:
    """A request in flight in a worker, which is sent to the keeper when the request has ended."""

    is_answered: bool = False
    tokens: int | None = None  # counted by the provider
    is_throttled: bool = False
    retry_after: float | None = None  # seconds to wait as requested by the provider
    is_timed_out: bool = False

    def spent(self, tokens: int) -> None:
        """Record the number of tokens counted by the provider."""
        self.tokens = tokens

    def throttled(self, retry_after: float | None) -> None:
        """Record that the provider rejected the request because of its rate limit."""
        self.is_throttled, self.retry_after = True, retry_after

    def timed_out(self) -> bool:
        """Record a time-out; only the keeper knows whether others timed out too."""
        self.is_timed_out = True
        return False


class _NotAnsweredError(Exception):
    """Passed to a slot if its request ended without an answer."""


class _Grant(NamedTuple):
    """A slot or a reservation of a worker, waiting or granted."""

    asking: asyncio.Future[Any]
    release: Callable[[Any], Awaitable[None]]
    at_death: Any  # passed to `release` if the worker dies


Answers = list[tuple[int, BaseException | None]]
"""Numbers of requests that were granted, or that were refused with an error."""


@dataclass(slots=True)
class _Account:
    """A worker's grants, and the answers that it has not received yet."""

    grants: dict[int, _Grant] = field(default_factory=dict)
    answers: Answers = field(default_factory=list)
    has_answers: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, number: int, grant: _Grant) -> None:
        self.grants[number] = grant
        grant.asking.add_done_callback(lambda asked: self._answer(number, asked))

    def _answer(self, number: int, asked: asyncio.Future[Any]) -> None:
        if not asked.cancelled():
            error = asked.exception()
            if error is not None:
                del self.grants[number]
            self.answers.append((number, error))
            self.has_answers.set()

    async def end(self, number: int, outcome: Any) -> None:
        """Release a grant; withdraw it if it was not granted yet."""
        grant = self.grants.pop(number, None)
        if grant is not None and not grant.asking.cancel():
            await grant.release(outcome)

    def take(self) -> Answers:
        answers, self.answers = self.answers, []
        self.has_answers.clear()
        return answers


class Keeper:
    """The keeper of the limits and the budget of all workers of a run; `max_cost` is in US dollars.

    A worker sends its messages in blocks, and numbers its requests. Each request is granted individually.
    """

    def __init__(self, max_calls: int | None, max_cost: float | None) -> None:
        self._budget = SpendingLimit(max_calls=max_calls, max_cost=max_cost)
        self._accounts: dict[str, _Account] = {}
        self._dead: set[str] = set()

    async def tell(self, worker: str, block: Iterable[tuple[str, int, tuple[Any, ...]]]) -> Answers:
        """Process messages (kind, number, arguments) and return the answers available immediately."""
        if worker in self._dead:
            return []
        account = self._accounts.setdefault(worker, _Account())
        for kind, number, arguments in block:
            if kind == "slot":
                account.add(number, _slot_grant(*arguments))
            elif kind == "cost":
                account.add(number, self._cost_grant(*arguments))
            else:
                await account.end(number, *arguments)
        # Requests that need not wait are answered after two turns of the event loop.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return account.take()

    async def answers(self, worker: str) -> Answers:
        """Wait for answers to a worker's requests; empty if the worker died."""
        account = self._accounts.get(worker)
        if account is None:
            return []
        await account.has_answers.wait()
        return account.take()

    async def spending(self) -> Spending:
        """Return the number of requests and the amount spent so far."""
        return self._budget.spending

    async def bury(self, worker: str) -> None:
        """Release the resources of a dead worker; later messages from it are ignored."""
        self._dead.add(worker)
        account = self._accounts.pop(worker, None)
        if account is not None:
            for number, grant in list(account.grants.items()):
                await account.end(number, grant.at_death)
            account.has_answers.set()

    def _cost_grant(self, cost: float) -> _Grant:
        async def settle(paid: float | None) -> None:
            await self._budget.settle(cost, paid)

        # The request of a worker that died may have been answered and paid for.
        return _Grant(asyncio.ensure_future(self._budget.reserve(cost)), settle, cost)


def _slot_grant(provider: str, limits: RequestLimits, tokens: int) -> _Grant:
    slot = local_limiter(provider, limits).slot(tokens)
    entering: asyncio.Future[Slot] = asyncio.ensure_future(slot.__aenter__())

    async def leave(outcome: SlotOutcome) -> None:
        if outcome.tokens is not None:
            entering.result().spent(outcome.tokens)
        if outcome.is_throttled:
            entering.result().throttled(outcome.retry_after)
        if outcome.is_timed_out:
            entering.result().timed_out()
        await slot.__aexit__(None if outcome.is_answered else _NotAnsweredError, None, None)

    return _Grant(entering, leave, SlotOutcome())


class KeeperLine:
    """A worker's access to the keeper: the rate limit authority and the budget of the worker's process.

    One call is in progress at a time, and messages that arise during it are sent with the next one, so a busy
    worker calls rarely. While requests are open after a call, a second call waits for their answers.

    Args:
        counts_cost: Whether requests reserve their estimated cost.
    """

    def __init__(self, worker: str, keeper: Any, *, counts_cost: bool = False) -> None:
        self.counts_cost = counts_cost
        self.stop_reason: str | None = None
        self._worker = worker
        self._keeper = keeper
        self._numbers = count()
        self._block: list[tuple[str, int, tuple[Any, ...]]] = []
        self._open: dict[int, asyncio.Future[None]] = {}
        self._telling: asyncio.Task[None] | None = None
        self._hearing: asyncio.Task[None] | None = None
        self._broken: Exception | None = None
        self._turns: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(TURNS))
        self._reserved: defaultdict[float, list[int]] = defaultdict(list)

    def gate(self, provider: str, limits: RequestLimits) -> KeeperGate:
        """Return a gate that grants slots for requests to the provider."""
        return KeeperGate(self, provider, limits)

    async def reserve(self, cost: float) -> None:
        """Reserve budget for one request, waiting until enough is available."""
        number = await self._ask("cost", cost, withdrawal=None)
        # Among requests that reserved equal amounts, the order of settling does not matter.
        self._reserved[cost].append(number)

    async def settle(self, reserved: float, cost: float | None) -> None:
        """Replace a reservation with the request's actual cost in US dollars; None if it was not sent."""
        self._tell("end", self._reserved[reserved].pop(), cost)

    @asynccontextmanager
    async def slot(self, provider: str, limits: RequestLimits, tokens: int) -> AsyncIterator[SlotOutcome]:
        """Wait until the keeper grants a slot, and report the request's outcome when the block ends."""
        outcome = SlotOutcome()
        async with self._turns[provider]:
            number = await self._ask("slot", provider, limits, tokens, withdrawal=outcome)
        try:
            yield outcome
            outcome.is_answered = True
        finally:
            self._tell("end", number, outcome)

    async def _ask(self, kind: str, *question: Any, withdrawal: SlotOutcome | None) -> int:
        """Return the number of a request when the keeper grants it."""
        if self._broken is not None:
            raise self._broken
        number = next(self._numbers)
        self._open[number] = granted = asyncio.get_running_loop().create_future()
        self._tell(kind, number, *question)
        try:
            await granted
        except asyncio.CancelledError:
            self._open.pop(number, None)
            self._tell("end", number, withdrawal)
            raise
        return number

    def _tell(self, kind: str, number: int, *arguments: Any) -> None:
        """Send a message after all earlier messages; do nothing if the keeper cannot be reached."""
        if self._broken is None:
            self._block.append((kind, number, arguments))
            if self._telling is None:
                self._telling = asyncio.ensure_future(self._send_blocks())

    async def _send_blocks(self) -> None:
        while self._block:
            block, self._block = self._block, []
            await self._receive(self._keeper.tell.remote(self._worker, block))
        self._telling = None
        if self._open and self._hearing is None:
            self._hearing = asyncio.ensure_future(self._hear())

    async def _hear(self) -> None:
        while self._open:
            await self._receive(self._keeper.answers.remote(self._worker))
        self._hearing = None

    async def _receive(self, called: Awaitable[Answers]) -> None:
        """Pass answers on to the requests; all pending and future requests fail if the call fails."""
        try:
            answers = await called
        except Exception as error:
            self._broken, self._block = error, []
            answers = [(number, error) for number in self._open]
        for number, refusal in answers:
            granted = self._open.pop(number, None)
            if granted is not None and not granted.done():
                if refusal is None:
                    granted.set_result(None)
                else:
                    granted.set_exception(refusal)


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
class WorkerReport:
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
        self._reports: defaultdict[str, WorkerReport] = defaultdict(WorkerReport)
        self._has_reports = asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()
        self._bug: BaseException | None = None
        set_authority(line)

    async def start(self, work: ItemWork) -> None:
        """Start to grade an item."""
        task = asyncio.ensure_future(self._grade(work))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def reports(self) -> dict[str, WorkerReport]:
        """Wait for something to report and return it by item id; raise a bug after all reports."""
        await self._has_reports.wait()
        await asyncio.sleep(_GATHERED)
        reports, self._reports = self._reports, defaultdict(WorkerReport)
        if self._bug is None:
            self._has_reports.clear()
        elif not reports:
            raise self._bug
        return dict(reports)

    async def begin(self) -> None:
        """Return once the process has started."""

    async def close(self) -> None:
        """Release the resources of the grader's judges."""
        await self._grader.aclose()

    def vote_cast(self, event: VoteCast) -> None:
        """Add a vote to the next report on its item."""
        kept = event if self._keeps_exchanges else event._replace(exchanged=None)
        self._reports[event.item_id].votes.append(kept)
        self._has_reports.set()

    async def _grade(self, work: ItemWork) -> None:
        done = None
        try:
            with spending_within(self._budget):
                done = await grade_item(work, self._grader, self)
        except BudgetError:
            pass
        # Any other error is raised in the calling process.
        except BaseException as error:
            self._bug = error
            self._has_reports.set()
            return
        report = self._reports[work.task.item_id]
        report.done, report.is_over = done, True
        self._has_reports.set()
