"""Admits requests under two kinds of limits: those set by the user, and those learned from the provider."""

from __future__ import annotations

import asyncio
import math
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, Protocol, Self

from autorubric.errors import ArgumentError, ProviderTimeoutError, TransientError
from autorubric.llm.budget import REPLY_TOKENS, prompt_tokens, refuse_if_stopped
from autorubric.llm.learned_limits import LearnedWindow
from autorubric.llm.local_window import LocalServer, LocalWindow
from autorubric.llm.provider_errors import asks_to_wait
from autorubric.llm.transport import ModelReply, ModelRequest, Transport, TransportLayer
from autorubric.support.objects import NOT_ANSWERING, IdentityCache

WINDOW_SECONDS: Final = 60.0
"""Length in seconds of the window in which requests and tokens are counted."""

_GRAIN: Final = 0.05
"""Seconds whose uses are merged into one, to save memory in a busy minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    parallel: int | None = None  # maximum number of concurrent requests; here and below, None is no limit
    requests_per_minute: int | None = None  # maximum number of requests started in any 60 seconds
    tokens_per_minute: int | None = None  # maximum number of tokens, sent and received, in any 60 seconds
    local: LocalServer | None = None  # a server on the user's own machine
    patience: float = math.inf  # longest wait, in seconds, asked of a request that others observe too

    def __post_init__(self) -> None:
        for name in ("parallel", "requests_per_minute", "tokens_per_minute"):
            limit = getattr(self, name)
            if limit is not None and limit < 1:
                raise ArgumentError(f"{name} must be at least 1, or None for no limit; got {limit!r}")


@dataclass(slots=True)
class Use:
    """The usage in one time slice, dated by the end of the slice."""

    began: float
    at: float
    amount: float
    counted: bool = True


class Window:
    """The usage in the last 60 seconds."""

    __slots__ = ("_total", "_uses")

    def __init__(self) -> None:
        self._uses: deque[Use] = deque()
        self._total = 0.0

    def wait(self, amount: float, limit: int, now: float) -> float:
        """Return the seconds until `amount` fits under `limit`; a larger amount needs an empty window."""
        self._forget(now)
        excess = self._total + min(amount, limit) - limit
        if excess <= 0 or not self._uses:
            return 0.0
        for use in self._uses:
            excess -= use.amount
            if excess <= 0:
                break
        return use.at + WINDOW_SECONDS - now

    def take(self, amount: float, now: float) -> Use:
        """Count a use, whose amount can be corrected later."""
        self._total += amount
        if self._uses and now - self._uses[-1].began < _GRAIN:
            self._uses[-1].amount += amount
            self._uses[-1].at = now
        else:
            self._forget(now)
            self._uses.append(Use(now, now, amount))
        return self._uses[-1]

    def correct(self, use: Use, more: float) -> None:
        """Add `more` to the amount of a counted use; has no effect if the use is over 60 seconds old."""
        if use.counted:
            self._total += more
            use.amount += more

    def _forget(self, now: float) -> None:
        while self._uses and now - self._uses[0].at >= WINDOW_SECONDS:
            use = self._uses.popleft()
            use.counted = False
            self._total -= use.amount


_LONGEST_NAP: Final = 0.1
"""Seconds after which a waiting request checks again whether the learned limits still apply."""


class Slot(Protocol):
    """A request in flight, which reports its result to the limiter."""

    def spent(self, tokens: int) -> None:
        """Replace the estimate with the number of tokens counted by the provider."""

    def throttled(self, retry_after: float | None) -> None:
        """Record that the provider rejected the request, and the seconds to wait, if specified."""

    def timed_out(self) -> bool:
        """Record a time-out, and return whether a local server does not answer at all."""


class RequestGate(Protocol):
    """The interface of objects that grant slots for requests to one provider."""

    def slot(self, tokens: int = 0) -> AbstractAsyncContextManager[Slot]:
        """Wait until a request may be sent, and count it as in flight until the block ends."""
        ...


class Traffic:
    """The traffic to one provider in one event loop: current and recent requests, and learned limits."""

    __slots__ = ("learned", "line", "local", "patience", "requests", "running", "sent", "tokens")

    def __init__(self) -> None:
        self.running = 0  # number of requests in flight
        self.sent = 0  # number of requests sent so far
        self.line: deque[_LocalSlot] = deque()  # requests waiting for their turn, in order
        self.requests = Window()
        self.tokens = Window()
        self.learned = LearnedWindow()  # the window of requests learned from rejections
        self.local: LocalWindow | None = None  # the window of a server on the user's own machine
        self.patience = math.inf  # the shortest patience (see `Limits`) of any caller so far, in seconds

    def admit(self) -> None:
        """Grant free slots to waiting requests, in order."""
        line = self.line
        while line and line[0].may_go():
            line.popleft().take()
        if line and not line[0].limiter.is_full():
            # Only time delays this request, and it must wait for that itself.
            line[0].wake()


class Limiter:
    """Admits requests one by one within an event loop; the clock is monotonic, all times are in seconds."""

    __slots__ = ("clock", "limits", "sleep", "traffic")

    def __init__(
        self,
        limits: RequestLimits,
        traffic: Traffic | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.limits = limits
        self.traffic = traffic or Traffic()
        self.traffic.patience = min(self.traffic.patience, limits.patience)
        if limits.local is not None and self.traffic.local is None:
            self.traffic.local = LocalWindow(limits.local)
        self.clock = clock
        self.sleep = sleep

    @property
    def running(self) -> int:
        """Number of requests in flight to the provider, including those under other limits."""
        return self.traffic.running

    def slot(self, tokens: int = 0) -> AbstractAsyncContextManager[Slot]:
        return _LocalSlot(self, tokens)

    def is_free(self, slot: _LocalSlot) -> bool:
        return not self.is_full() and self._seconds_to_wait(slot) <= 0

    async def wait_in_line(self, slot: _LocalSlot) -> None:
        traffic = self.traffic
        traffic.line.append(slot)
        try:
            while not slot.is_taken:
                if traffic.line[0] is slot and not self.is_full():
                    seconds = self._seconds_to_wait(slot)
                    await slot.nap(min(seconds, _LONGEST_NAP) if traffic.learned.is_learned else seconds)
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
        traffic, parallel = self.traffic, self.limits.parallel
        if parallel is not None and traffic.running >= parallel:
            return True
        if traffic.local is not None and traffic.running >= traffic.local.size:
            return True
        return traffic.learned.is_full(traffic.running)

    def _seconds_to_wait(self, slot: _LocalSlot) -> float:
        limits, traffic = self.limits, self.traffic
        requests, most, learned = limits.requests_per_minute, limits.tokens_per_minute, traffic.learned
        if requests is None and most is None and not learned.is_learned:
            return 0.0
        now = self.clock()
        return max(
            traffic.requests.wait(1, requests, now) if requests else 0.0,
            traffic.tokens.wait(slot.tokens, most, now) if most else 0.0,
            learned.wait(now, slot.came(now) + limits.patience) if learned.is_learned else 0.0,
        )


class _LocalSlot:
    __slots__ = (
        *("_called", "_came_at", "_naps", "_use", "_was_rejected"),
        *("at", "is_held", "is_taken", "limiter", "number", "tokens"),
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
        self.at = -math.inf
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
        self._came_at = min(self._came_at, now)
        return self._came_at

    def may_go(self) -> bool:
        """Return whether the slot may be taken now; a napping request checks this itself when it wakes."""
        return not self._naps and self.limiter.is_free(self)

    def take(self) -> None:
        """Count the request as in flight, and wake it if it waits."""
        limiter, traffic = self.limiter, self.limiter.traffic
        self.is_taken = True
        traffic.running += 1
        traffic.sent += 1
        self.number = traffic.sent
        now = limiter.clock()
        traffic.requests.take(1, now)
        self._use = traffic.tokens.take(self.tokens, now)
        self.at = now
        if traffic.learned.is_learned:
            self.is_held = traffic.learned.add_sent(self.number, traffic.running, now)
        self.wake()

    async def called(self) -> None:
        self._called = asyncio.get_running_loop().create_future()
        await self._called

    async def nap(self, seconds: float) -> None:
        self._naps = True
        try:
            await self.limiter.sleep(seconds)
        finally:
            self._naps = False

    def wake(self) -> None:
        if self._called is not None and not self._called.done():
            self._called.set_result(None)

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        traffic = self.limiter.traffic
        if kind is None and traffic.local is not None:
            most = self.limiter.limits.parallel or traffic.running
            traffic.local.add_answer(self.at, self.limiter.clock(), traffic.running, most)
        traffic.running -= 1
        if traffic.learned.is_learned and not self._was_rejected:
            if kind is None:
                traffic.learned.add_answer(self, traffic.sent, self.limiter.clock())
            else:
                traffic.learned.add_end(self, traffic.sent)
        if traffic.line:
            traffic.admit()

    def spent(self, tokens: int) -> None:
        self.limiter.traffic.tokens.correct(self._use, tokens - self.tokens)
        self.tokens = tokens

    def throttled(self, retry_after: float | None) -> None:
        self._was_rejected = True
        traffic, now = self.limiter.traffic, self.limiter.clock()
        if retry_after is not None and retry_after > traffic.patience:
            # Requests do not wait longer than their patience because of another request's header.
            retry_after = None
        traffic.learned.add_rejection(self, retry_after, traffic.running - 1, traffic.sent, now)

    def timed_out(self) -> bool:
        traffic, now = self.limiter.traffic, self.limiter.clock()
        return traffic.local is not None and traffic.local.add_timeout(self.at, now, traffic.running)


class Authority(Protocol):
    """The interface of objects that enforce limits across several processes."""

    def gate(self, provider: str, limits: RequestLimits) -> RequestGate:
        """Return a gate that grants slots for requests to the provider under these limits."""
        ...


_authority: Authority | None = None


def set_authority(authority: Authority | None) -> Authority | None:
    """Set the authority that limits this process's requests, or None, and return the previous one."""
    global _authority
    before, _authority = _authority, authority
    return before


def limiter_for(provider: str, limits: RequestLimits) -> RequestGate:
    """Return the gate of the process's authority for a provider or, without an authority, a local limiter."""
    return local_limiter(provider, limits) if _authority is None else _authority.gate(provider, limits)


def local_limiter(provider: str, limits: RequestLimits) -> Limiter:
    """Return a limiter with these limits that counts all requests to the provider in this event loop."""
    return Limiter(limits, _TRAFFIC.of(asyncio.get_running_loop())[provider])


def _new_traffic(loop: asyncio.AbstractEventLoop) -> defaultdict[str, Traffic]:
    # A waiting request references its loop, and would keep the entry of a closed loop alive.
    _TRAFFIC.forget(lambda other: other.is_closed())
    return defaultdict(Traffic)


_TRAFFIC: Final = IdentityCache[asyncio.AbstractEventLoop, defaultdict[str, Traffic]](_new_traffic)


class Limit(TransportLayer):
    """A transport that delays each request until the provider's rate limits allow it."""

    def __init__(self, inner: Transport, provider: str, limits: RequestLimits) -> None:
        super().__init__(inner)
        self._provider = provider
        self._limits = limits

    async def send(self, request: ModelRequest) -> ModelReply:
        # Estimated even without a limit on tokens, because other configs may limit the same provider.
        tokens = prompt_tokens(request.messages, None) + REPLY_TOKENS
        async with limiter_for(self._provider, self._limits).slot(tokens) as slot:
            refuse_if_stopped()
            began = time.perf_counter()
            try:
                # Without the allowance, which concerns no provider.
                reply = await self._inner.send(request._replace(allowance=None))
            except TransientError as error:
                if asks_to_wait(error):
                    slot.throttled(error.retry_after)
                elif isinstance(error, ProviderTimeoutError) and slot.timed_out():
                    error.is_final, error.args = True, (f"{error}; {NOT_ANSWERING}",)
                raise
            finally:
                if request.allowance is not None:
                    request.allowance.seconds = time.perf_counter() - began
            if reply.usage is not None:
                slot.spent(reply.usage.total_tokens)
            return reply
