"""Lets requests through as the limits allow: those of the user, and those learnt from the provider."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Final, Protocol, Self

from autorubric.rate_limit._learnt import Learnt
from autorubric.rate_limit._limits import Limits, Use, Window

_LONGEST_NAP: Final = 0.1
"""Seconds after which a request that waits looks again whether what was learnt still holds."""


class Slot(Protocol):
    """One request in flight; tells the limiter what came of it."""

    def spent(self, tokens: int) -> None:
        """Puts the tokens that the provider counted in the place of the estimate."""
        ...

    def throttled(self, retry_after: float | None) -> None:
        """Says that the provider turned the request away, and for how many seconds if it says so."""
        ...


class Gate(Protocol):
    """Hands out slots for requests to one provider."""

    def slot(self, tokens: int = 0) -> AbstractAsyncContextManager[Slot]:
        """Waits until a request may go, and counts it as in flight until the block ends.

        Args:
            tokens: Estimate of the tokens that it will use.
        """
        ...


class Traffic:
    """What is under way to one provider in one event loop, what was in the last 60 seconds, what was learnt.

    Attributes:
        running: Requests in flight.
        sent: Requests sent so far.
        line: Requests that wait for their turn, the next one first.
        learnt: What rejections taught; None before the first.
        patience: The shortest patience of those who have asked, in seconds.
    """

    __slots__ = ("learnt", "line", "patience", "requests", "running", "sent", "tokens")

    def __init__(self) -> None:
        self.running = 0
        self.sent = 0
        self.line: deque[_LocalSlot] = deque()
        self.requests = Window()
        self.tokens = Window()
        self.learnt: Learnt | None = None
        self.patience = math.inf

    def admit(self) -> None:
        """Gives slots to those who wait, in their order, for as long as there are any."""
        line = self.line
        while line and line[0].may_go():
            line.popleft().take()
        if line and not line[0].limiter.is_full():
            # Only time keeps it from going, and nobody but itself waits for that.
            line[0].wake()


class Limiter:
    """Lets requests through one by one as the limits allow; of one event loop.

    Args:
        limits: What is allowed.
        traffic: What is counted; limiters with the same one share it.
        clock: Seconds that only grow.
        sleep: Waits for some seconds.
    """

    __slots__ = ("_sleep", "clock", "limits", "traffic")

    def __init__(
        self,
        limits: Limits,
        traffic: Traffic | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.limits = limits
        self.traffic = traffic or Traffic()
        self.traffic.patience = min(self.traffic.patience, limits.patience)
        self.clock = clock
        self._sleep = sleep

    @property
    def running(self) -> int:
        """Requests in flight to the provider, under whatever limits."""
        return self.traffic.running

    def slot(self, tokens: int = 0) -> AbstractAsyncContextManager[Slot]:
        """Waits until a request may go, and counts it as in flight until the block ends.

        Args:
            tokens: Estimate of the tokens that it will use.
        """
        return _LocalSlot(self, tokens)

    def is_free(self, slot: _LocalSlot) -> bool:
        """Whether a request may go at once."""
        return not self.is_full() and self._seconds_to_wait(slot) <= 0

    async def wait_in_line(self, slot: _LocalSlot) -> None:
        """Waits for the turn of a request; its slot has been taken when it ends."""
        traffic = self.traffic
        traffic.line.append(slot)
        try:
            while not slot.is_taken:
                if traffic.line[0] is slot and not self.is_full():
                    await slot.nap(self._nap(slot))
                    traffic.admit()
                else:
                    await slot.called()
        except BaseException:
            if not slot.is_taken:
                traffic.line.remove(slot)
            else:
                traffic.running -= 1
            traffic.admit()
            raise

    def is_full(self) -> bool:
        """Whether as many requests are in flight as may be."""
        traffic, parallel = self.traffic, self.limits.parallel
        if parallel is not None and traffic.running >= parallel:
            return True
        return traffic.learnt is not None and traffic.learnt.is_full(traffic.running)

    def _seconds_to_wait(self, slot: _LocalSlot) -> float:
        limits, traffic = self.limits, self.traffic
        requests, most, learnt = limits.requests_per_minute, limits.tokens_per_minute, traffic.learnt
        if requests is None and most is None and learnt is None:
            return 0.0
        now = self.clock()
        return max(
            traffic.requests.wait(1, requests, now) if requests else 0.0,
            traffic.tokens.wait(slot.tokens, most, now) if most else 0.0,
            learnt.wait(now, slot.came(now) + limits.patience) if learnt else 0.0,
        )

    async def _nap(self, slot: _LocalSlot) -> None:
        seconds = self._seconds_to_wait(slot)
        await self._sleep(min(seconds, _LONGEST_NAP) if self.traffic.learnt else seconds)


class _LocalSlot:
    """A slot of this event loop."""

    __slots__ = (
        *("_called", "_came_at", "_naps", "_use", "_was_rejected"),
        *("at", "is_held", "is_taken", "limiter", "number", "rejections", "running", "tokens"),
    )

    _use: Use

    def __init__(self, limiter: Limiter, tokens: int) -> None:
        self.limiter = limiter
        self.tokens = tokens
        self.is_taken = False
        self._called: asyncio.Future[None] | None = None
        self._naps = False
        self._came_at = math.inf
        self.number = 0
        self.running = 0
        self.at = -math.inf
        self.rejections = 0
        self.is_held = False
        self._was_rejected = False

    async def __aenter__(self) -> Self:
        limiter = self.limiter
        if limiter.traffic.line or not limiter.is_free(self):
            await limiter.wait_in_line(self)
        else:
            self.take()
        return self

    def came(self, now: float) -> float:
        """When the request came, as far as the clock was looked at."""
        self._came_at = min(self._came_at, now)
        return self._came_at

    def may_go(self) -> bool:
        """Whether it may be taken now; one that naps looks for itself when it wakes."""
        return not self._naps and self.limiter.is_free(self)

    def take(self) -> None:
        """Counts the request as in flight, and wakes it where it waits."""
        limiter, traffic = self.limiter, self.limiter.traffic
        self.is_taken = True
        traffic.running += 1
        traffic.sent += 1
        self.number = traffic.sent
        self.running = traffic.running
        now = limiter.clock()
        traffic.requests.take(1, now)
        self._use = traffic.tokens.take(self.tokens, now)
        if traffic.learnt is not None:
            self.at = now
            self.rejections = traffic.learnt.rejections
            self.is_held = traffic.learnt.sending(now)
        self.wake()

    async def called(self) -> None:
        """Waits to be woken."""
        self._called = asyncio.get_running_loop().create_future()
        await self._called

    async def nap(self, nap: Awaitable[None]) -> None:
        """Waits for time to pass."""
        self._naps = True
        try:
            await nap
        finally:
            self._naps = False

    def wake(self) -> None:
        """Ends the waiting of `called`."""
        if self._called is not None and not self._called.done():
            self._called.set_result(None)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        traffic = self.limiter.traffic
        traffic.running -= 1
        if traffic.learnt is not None and not self._was_rejected:
            if kind is None:
                traffic.learnt.answered(self, traffic.sent, self.limiter.clock())
            else:
                traffic.learnt.ended(self, traffic.sent)
        if traffic.line:
            traffic.admit()

    def spent(self, tokens: int) -> None:
        """Puts the tokens that the provider counted in the place of the estimate."""
        self.limiter.traffic.tokens.correct(self._use, tokens - self.tokens)
        self.tokens = tokens

    def throttled(self, retry_after: float | None) -> None:
        """Says that the provider turned the request away, and for how many seconds if it says so."""
        self._was_rejected = True
        traffic, now = self.limiter.traffic, self.limiter.clock()
        if traffic.learnt is None:
            traffic.learnt = Learnt(traffic.running, now)
        learnt = traffic.learnt
        if retry_after is not None and retry_after > traffic.patience:
            # One who waits less finds out for itself, and nobody waits longer for another one's header.
            retry_after = None
        if learnt.rejected(self, traffic.running - 1, traffic.sent, now):
            learnt.pause(retry_after, self.number, now)
