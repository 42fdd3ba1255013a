"""Budgets: how many calls a run may make and what they may cost, reserved before anything is sent."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from math import inf
from typing import Literal, NamedTuple, Protocol

from autorubric.errors import ArgumentError, BudgetError


class Budget(Protocol):
    """What a run may spend; every request that is really sent asks it first.

    Attributes:
        counts_cost: Whether it needs to know what requests cost.
        stop_reason: Why nothing more is sent, though there may be room; None where nothing speaks against it.
    """

    counts_cost: bool

    @property
    def stop_reason(self) -> str | None: ...

    async def reserve(self, cost: float) -> None:
        """Sets one request aside, once there is room for it.

        Args:
            cost: Estimate of its cost in US dollars; 0 where cost is not counted.

        Raises:
            BudgetError: There is no room, and there will be none.
        """
        ...

    async def settle(self, reserved: float, cost: float | None) -> None:
        """Puts what a request cost, in US dollars, in the place of what was reserved; None: not sent."""
        ...


SpendingLimitName = Literal["max_calls", "max_cost"]


class Spending(NamedTuple):
    """What was spent within a limit.

    Attributes:
        calls: Requests sent, and calls of judges that are functions or objects.
        cost: What they cost, in US dollars.
        reached: The limit that was reached; None where none was.
    """

    calls: int
    cost: float
    reached: SpendingLimitName | None


class SpendingLimit:
    """The budget of a run in this process.

    Requests that wait for room are sent as others turn out cheaper than estimated; the budget is used up when
    no request is in flight and the next does not fit in. Estimates are scaled by what requests so far have
    cost for each estimated dollar. So the budget may be exceeded only by what the requests in flight cost
    beyond that. Requests may come from several threads, each with a loop of its own.

    Args:
        max_calls: Most calls: requests to models, re-asked and retried ones included, and calls of judges
            that are functions or objects; None for no limit.
        max_cost: US dollars that they may cost; None for no limit.

    Raises:
        ArgumentError: A limit is not positive.
    """

    def __init__(self, *, max_calls: int | None = None, max_cost: float | None = None) -> None:
        for name, limit, kinds in (("max_calls", max_calls, int), ("max_cost", max_cost, int | float)):
            if limit is not None and (
                isinstance(limit, bool) or not isinstance(limit, kinds) or not 0 < limit < inf
            ):
                kind = "whole number" if kinds is int else "number"
                raise ArgumentError(f"{name} {limit!r}: give a {kind} above 0, or None for no limit")
        self._max_calls = max_calls
        self._max_cost = max_cost
        self.counts_cost = max_cost is not None
        self.calls = 0
        self.cost = 0.0
        self.reached: SpendingLimitName | None = None
        self.stop_reason: str | None = None
        self._reserved = 0.0
        self._estimated, self._paid = 0.0, 0.0
        self._running = 0
        # Functions in threads ask in event loops of their own, all within the one limit.
        self._lock = threading.Lock()
        self._waiting: list[asyncio.Future[None]] = []

    async def reserve(self, cost: float) -> None:
        """Sets one request aside, once there is room for it.

        Raises:
            BudgetError: There is no room, and there will be none.
        """
        while (turn := self._reserved_or_turn(cost)) is not None:
            await turn

    async def settle(self, reserved: float, cost: float | None) -> None:
        """Puts what a request cost, in US dollars, in the place of what was reserved; None: not sent."""
        with self._lock:
            self._running -= 1
            self._reserved = self._reserved - reserved if self._running else 0.0
            self.calls -= cost is None
            self.cost += cost or 0.0
            if reserved and cost:
                self._estimated += reserved
                self._paid += cost
            self._wake()

    def stop(self, reason: str) -> None:
        """Refuse every further call for this reason; what is in flight is answered."""
        with self._lock:
            self.stop_reason = self.stop_reason or reason
            self._wake()

    @property
    def is_over(self) -> bool:
        """Whether nothing more is sent: a limit was reached, or it was stopped."""
        return self.reached is not None or self.stop_reason is not None

    @property
    def mean_cost(self) -> float:
        """Mean US dollars of the calls so far, those in flight by their estimates; 0 before the first."""
        return (self.cost + self._expected(self._reserved)) / self.calls if self.calls else 0.0

    def has_room(self, calls: int, cost: float) -> bool:
        """Whether so many further calls, at so many US dollars together, are within the limits."""
        most, dollars = self._max_calls, self._max_cost
        return (most is None or self.calls + calls <= most) and (
            dollars is None or self.cost + self._expected(self._reserved) + cost <= dollars
        )

    @property
    def is_set(self) -> bool:
        """Whether there is any limit."""
        return self._max_calls is not None or self._max_cost is not None

    @property
    def spending(self) -> Spending:
        """What was spent so far."""
        return Spending(self.calls, self.cost, self.reached)

    @spending.setter
    def spending(self, told: Spending) -> None:
        # Where another process keeps the budget, this one shows what stands there.
        self.calls, self.cost, self.reached = told

    def _expected(self, estimate: float) -> float:
        """What requests of this estimate cost, going by those that were answered; in US dollars."""
        return estimate * self._paid / self._estimated if self._estimated else estimate

    def _reserved_or_turn(self, cost: float) -> asyncio.Future[None] | None:
        """None once a request is set aside; else what is done when there may be room."""
        with self._lock:
            if self._fits(cost):
                self.calls += 1
                self._running += 1
                self._reserved += cost
                return None
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            return turn

    def _fits(self, cost: float) -> bool:
        if self.stop_reason is not None:
            raise BudgetError(self.stop_reason, limit="stopped")
        if self.reached is None and self._max_calls is not None and self.calls >= self._max_calls:
            self._reach("max_calls")
        if self.reached is not None:
            raise BudgetError(str(self), limit=self.reached)
        if self._max_cost is None or self.cost + self._expected(self._reserved + cost) <= self._max_cost:
            return True
        if self._running == 0:
            self._reach("max_cost")
            raise BudgetError(str(self), limit="max_cost")
        return False

    def _reach(self, limit: SpendingLimitName) -> None:
        self.reached = limit
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for turn in waiting:
            loop = turn.get_loop()
            if loop is _running_loop():
                _end(turn)
            else:
                # One that has been closed has nobody left who waits.
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(_end, turn)

    def __str__(self) -> str:
        if self.stop_reason is not None:
            return self.stop_reason
        if self.reached == "max_calls":
            return f"max_calls {self._max_calls} is reached"
        return (
            f"max_cost {self._max_cost:g} US dollars leaves no room for another request: "
            f"{self.calls} requests cost {self.cost:g}"
        )


def _end(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class _Both:
    """Two budgets that hold at once.

    Args:
        inner: The budget of the block within.
        outer: The budget of the block around it.
    """

    def __init__(self, inner: Budget, outer: Budget) -> None:
        self.inner = inner
        self._outer = outer
        self.counts_cost = inner.counts_cost or outer.counts_cost

    async def reserve(self, cost: float) -> None:
        """Sets one request aside in both, once there is room.

        Raises:
            BudgetError: One of them has no room, and there will be none.
        """
        await self.inner.reserve(cost)
        try:
            await self._outer.reserve(cost)
        except BaseException:
            await self.inner.settle(cost, None)
            raise

    async def settle(self, reserved: float, cost: float | None) -> None:
        """Tells both what a request cost."""
        await self.inner.settle(reserved, cost)
        await self._outer.settle(reserved, cost)

    @property
    def stop_reason(self) -> str | None:
        """The reason of the one that was stopped."""
        return self.inner.stop_reason or self._outer.stop_reason


class _OneCall:
    """The budget inside one call of a judge that asks no model by itself; the call was set aside.

    The first request that the judge's own code sends takes the place of the call, so that both together
    count once.

    Args:
        budget: The budget that the call was set aside in.

    Attributes:
        has_sent: Whether a request took the call's place.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.counts_cost = budget.counts_cost
        self.has_sent = False

    async def reserve(self, cost: float) -> None:
        """Sets one request aside, the first one in the place of the call.

        Raises:
            BudgetError: There is no room, and there will be none.
        """
        if not self.has_sent:
            self.has_sent = True
            await self._budget.settle(0.0, None)
        await self._budget.reserve(cost)

    async def settle(self, reserved: float, cost: float | None) -> None:
        """Puts what a request cost in the place of what was reserved."""
        await self._budget.settle(reserved, cost)

    @property
    def stop_reason(self) -> str | None:
        """The reason of the budget."""
        return self._budget.stop_reason


_BUDGET: ContextVar[Budget | None] = ContextVar("autorubric_budget", default=None)


@contextmanager
def spending_within(budget: Budget | None) -> Iterator[None]:
    """Has every request that is sent from within the block, and from tasks begun there, ask the budget.

    Within another such block it asks both; with None nothing is asked.
    """
    outer = _BUDGET.get()
    nested = budget is not None and outer is not None and budget is not outer
    token = _BUDGET.set(_Both(budget, outer) if nested else budget)  # type: ignore[arg-type]
    try:
        yield
    finally:
        _BUDGET.reset(token)


@asynccontextmanager
async def one_call() -> AsyncIterator[None]:
    """Count the block, a call of a judge that asks no model by itself, as one call of the budget in force.

    Raises:
        BudgetError: There is no room, and there will be none; the block is not entered.
    """
    budget = _BUDGET.get()
    if budget is None:
        yield
        return
    await budget.reserve(0.0)
    call = _OneCall(budget)
    token = _BUDGET.set(call)
    try:
        yield
    finally:
        _BUDGET.reset(token)
        if not call.has_sent:
            await budget.settle(0.0, 0.0)


def whole_budget() -> Budget | None:
    """The budget that every request asks now, of all blocks of `spending_within`; None outside of all."""
    return _BUDGET.get()


def refuse_if_stopped() -> None:
    """Refuse a call that was set aside and not sent yet, where the budget in force was stopped meanwhile.

    Raises:
        BudgetError: It was stopped.
    """
    budget = _BUDGET.get()
    if budget is not None and budget.stop_reason is not None:
        raise BudgetError(budget.stop_reason, limit="stopped")


def budget_in_force() -> Budget | None:
    """The budget of the innermost block of `spending_within` that runs now; None outside of all."""
    budget = _BUDGET.get()
    return budget.inner if isinstance(budget, _Both) else budget
