"""Limits on requests to a provider; what is counted is shared by everything in one event loop that asks it.

Each request obeys the limits it came with, measured against all requests to the provider. Requests that wait
are served strictly in the order in which they came, so that none starves: those behind a request that must
wait do too, even where their own limits are wider. A request that waits holds no slot.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

from autorubric.errors import ArgumentError

WINDOW_SECONDS: Final = 60.0
"""Length of the window in which requests and tokens are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much may be asked of a provider.

    Attributes:
        parallel: Most requests in flight at a time; None for no limit, as for all here.
        requests_per_minute: Most requests started in any 60 seconds.
        tokens_per_minute: Most tokens, sent and received, in any 60 seconds.
    """

    parallel: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None

    def __post_init__(self) -> None:
        for name in ("parallel", "requests_per_minute", "tokens_per_minute"):
            limit = getattr(self, name)
            if limit is not None and limit < 1:
                raise ArgumentError(f"{name} is {limit!r}; give a number from 1, or None for no limit")


@dataclass(slots=True)
class _Use:
    at: float
    amount: float
    counted: bool = True


class _Window:
    """What was used in the last 60 seconds."""

    def __init__(self) -> None:
        self._uses: deque[_Use] = deque()
        self._total = 0.0

    def wait(self, amount: float, limit: int, now: float) -> float:
        """Seconds until `amount` fits in; 0 if it does now. More than the limit waits for an empty window."""
        self._forget(now)
        excess = self._total + min(amount, limit) - limit
        if excess <= 0 or not self._uses:
            return 0.0
        for use in self._uses:
            excess -= use.amount
            if excess <= 0:
                break
        return use.at + WINDOW_SECONDS - now

    def take(self, amount: float, now: float) -> _Use:
        self._forget(now)
        use = _Use(now, amount)
        self._uses.append(use)
        self._total += amount
        return use

    def correct(self, use: _Use, amount: float) -> None:
        if use.counted:
            self._total += amount - use.amount
            use.amount = amount

    def _forget(self, now: float) -> None:
        while self._uses and now - self._uses[0].at >= WINDOW_SECONDS:
            use = self._uses.popleft()
            use.counted = False
            self._total -= use.amount


class Traffic:
    """What is under way to one provider in one event loop, and what was in the last 60 seconds."""

    def __init__(self) -> None:
        self.running = 0
        self.requests = _Window()
        self.tokens = _Window()
        self.turn = asyncio.Lock()
        self.freed = asyncio.Event()


class Slot:
    """One request in flight; tells the limiter what it really used."""

    def __init__(self, window: _Window, use: _Use) -> None:
        self._window = window
        self._use = use

    def spent(self, tokens: int) -> None:
        """Puts the tokens that the provider counted in the place of the estimate."""
        self._window.correct(self._use, tokens)


class Limiter:
    """Lets requests through one by one as the limits allow; of one event loop.

    Args:
        limits: What is allowed.
        traffic: What is counted; limiters with the same one share it.
        clock: Seconds that only grow.
        sleep: Waits for some seconds.
    """

    def __init__(
        self,
        limits: Limits,
        traffic: Traffic | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._limits = limits
        self._traffic = traffic or Traffic()
        self._clock = clock
        self._sleep = sleep

    @property
    def running(self) -> int:
        """Requests in flight to the provider, under whatever limits."""
        return self._traffic.running

    @asynccontextmanager
    async def slot(self, tokens: int = 0) -> AsyncIterator[Slot]:
        """Waits until a request may go, and counts it as in flight until the block ends.

        Args:
            tokens: Estimate of the tokens that it will use.
        """
        async with self._traffic.turn:
            while not self._is_free(tokens):
                await self._wait(tokens)
            slot = self._take(tokens)
        try:
            yield slot
        finally:
            self._traffic.running -= 1
            self._traffic.freed.set()

    def _is_free(self, tokens: int) -> bool:
        return not self._is_full() and self._seconds_to_wait(tokens) <= 0

    def _is_full(self) -> bool:
        return self._limits.parallel is not None and self._traffic.running >= self._limits.parallel

    def _seconds_to_wait(self, tokens: int) -> float:
        now, limits, traffic = self._clock(), self._limits, self._traffic
        requests, most = limits.requests_per_minute, limits.tokens_per_minute
        return max(
            traffic.requests.wait(1, requests, now) if requests else 0.0,
            traffic.tokens.wait(tokens, most, now) if most else 0.0,
        )

    async def _wait(self, tokens: int) -> None:
        if self._is_full():
            # Only the request whose turn it is waits here.
            self._traffic.freed.clear()
            await self._traffic.freed.wait()
        else:
            await self._sleep(self._seconds_to_wait(tokens))

    def _take(self, tokens: int) -> Slot:
        self._traffic.running += 1
        now = self._clock()
        self._traffic.requests.take(1, now)
        return Slot(self._traffic.tokens, self._traffic.tokens.take(tokens, now))


_TRAFFIC: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Traffic]] = WeakKeyDictionary()


def limiter_for(provider: str, limits: Limits) -> Limiter:
    """A limiter under these limits that counts every request to the provider in the running event loop."""
    loop = asyncio.get_running_loop()
    providers = _TRAFFIC.get(loop)
    if providers is None:
        _forget_closed_loops()
        providers = _TRAFFIC[loop] = {}
    if provider not in providers:
        providers[provider] = Traffic()
    return Limiter(limits, providers[provider])


def _forget_closed_loops() -> None:
    # A lock that was waited for knows its loop, and would keep the loop's entry alive.
    for reference in _TRAFFIC.keyrefs():
        loop = reference()
        if loop is not None and loop.is_closed():
            _TRAFFIC.pop(loop, None)
