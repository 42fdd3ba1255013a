"""Limits on requests to a provider, shared by everything in one event loop that asks it.

A request that waits for its turn holds no slot. Waiting requests are served in the order in which they came.
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
    """What was used in the last 60 seconds, of at most `limit`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._uses: deque[_Use] = deque()
        self._total = 0.0

    def wait(self, amount: float, now: float) -> float:
        """Seconds until `amount` fits in; 0 if it does now. More than the limit waits for an empty window."""
        while self._uses and now - self._uses[0].at >= WINDOW_SECONDS:
            use = self._uses.popleft()
            use.counted = False
            self._total -= use.amount
        excess = self._total + min(amount, self._limit) - self._limit
        if excess <= 0 or not self._uses:
            return 0.0
        for use in self._uses:
            excess -= use.amount
            if excess <= 0:
                break
        return use.at + WINDOW_SECONDS - now

    def take(self, amount: float, now: float) -> _Use:
        use = _Use(now, amount)
        self._uses.append(use)
        self._total += amount
        return use

    def correct(self, use: _Use, amount: float) -> None:
        if use.counted:
            self._total += amount - use.amount
            use.amount = amount


class Slot:
    """One request in flight; tells the limiter what it really used."""

    def __init__(self, window: _Window | None, use: _Use | None) -> None:
        self._window = window
        self._use = use

    def spent(self, tokens: int) -> None:
        """Puts the tokens that the provider counted in the place of the estimate."""
        if self._window is not None and self._use is not None:
            self._window.correct(self._use, tokens)


class Limiter:
    """Lets requests through one by one as the limits allow; of one event loop.

    Args:
        limits: What is allowed.
        clock: Seconds that only grow.
        sleep: Waits for some seconds.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._parallel = limits.parallel
        self._requests = _Window(limits.requests_per_minute) if limits.requests_per_minute else None
        self._tokens = _Window(limits.tokens_per_minute) if limits.tokens_per_minute else None
        self._clock = clock
        self._sleep = sleep
        self._running = 0
        self._turn = asyncio.Lock()
        self._freed = asyncio.Event()

    @property
    def running(self) -> int:
        """Requests in flight."""
        return self._running

    @asynccontextmanager
    async def slot(self, tokens: int = 0) -> AsyncIterator[Slot]:
        """Waits until a request may go, and counts it as in flight until the block ends.

        Args:
            tokens: Estimate of the tokens that it will use.
        """
        async with self._turn:
            while not self._is_free(tokens):
                await self._wait(tokens)
            slot = self._take(tokens)
        try:
            yield slot
        finally:
            self._running -= 1
            self._freed.set()

    def _is_free(self, tokens: int) -> bool:
        return not self._is_full() and self._seconds_to_wait(tokens) <= 0

    def _is_full(self) -> bool:
        return self._parallel is not None and self._running >= self._parallel

    def _seconds_to_wait(self, tokens: int) -> float:
        now = self._clock()
        return max(
            self._requests.wait(1, now) if self._requests else 0.0,
            self._tokens.wait(tokens, now) if self._tokens else 0.0,
        )

    async def _wait(self, tokens: int) -> None:
        if self._is_full():
            self._freed.clear()
            await self._freed.wait()
        else:
            await self._sleep(self._seconds_to_wait(tokens))

    def _take(self, tokens: int) -> Slot:
        self._running += 1
        now = self._clock()
        if self._requests:
            self._requests.take(1, now)
        return Slot(self._tokens, self._tokens.take(tokens, now) if self._tokens else None)


_LIMITERS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, Limits], Limiter]] = (
    WeakKeyDictionary()
)


def limiter_for(provider: str, limits: Limits) -> Limiter:
    """The limiter that all requests to the provider under these limits share in the running event loop."""
    loop = asyncio.get_running_loop()
    limiters = _LIMITERS.get(loop)
    if limiters is None:
        _forget_closed_loops()
        limiters = _LIMITERS[loop] = {}
    key = (provider, limits)
    if key not in limiters:
        limiters[key] = Limiter(limits)
    return limiters[key]


def _forget_closed_loops() -> None:
    # A lock that was waited for knows its loop, and would keep the loop's entry alive.
    for loop in list(_LIMITERS):
        if loop.is_closed():
            _LIMITERS.pop(loop, None)
