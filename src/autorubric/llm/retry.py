"""Retries: pure functions that compute the waits, and a thin transport that uses them."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

from autorubric.errors import ProviderConnectionError, TransientError
from autorubric.llm.provider_errors import asks_to_wait
from autorubric.llm.transport import ModelReply, ModelRequest, Transport, TransportLayer


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """The number of retries and the waits between them."""

    max_retries: int = 3
    """Maximum number of retries after a failure, counted separately for each class of error, because broken
    connections and server errors are independent.
    """
    min_wait: float = 1.0  # minimum wait, in seconds
    max_wait: float = 60.0  # maximum wait, in seconds, unless the provider asks for more; see `patience`

    @property
    def patience(self) -> float:
        """Maximum number of seconds after its first failure that a request waits as the provider asks."""
        return self.max_retries * self.max_wait


@dataclass(slots=True)
class _Tries:
    """The failed attempts of one request."""

    since: float  # time of the first failure
    failed: Counter[type[TransientError]] = field(default_factory=Counter)
    """Number of attempts that ended with an error, by the class of the error."""
    put_off: int = 0  # number of attempts that the provider asked to delay

    def allows_another(self, error: TransientError, policy: RetryPolicy, now: float) -> bool:
        """Count the failure and return whether the request may be sent again."""
        left = policy.patience - (now - self.since)
        if error.retry_after is not None and error.retry_after > left:
            _say_too_long(error, error.retry_after, policy)
            return False
        if not asks_to_wait(error):
            self.failed[type(error)] += 1
            return self.failed[type(error)] <= policy.max_retries
        self.put_off += 1
        # Being asked to wait is not a failure of the request, so it uses up no retry.
        return self.put_off <= policy.max_retries or left > 0


def _say_too_long(error: TransientError, asked: float, policy: RetryPolicy) -> None:
    error.args = (
        f"{error}. Retry-After asks to wait {asked:.10g} s, which exceeds the time left of max_retries × "
        f"retry_max_wait = {policy.max_retries} × {policy.max_wait:g} s; increase these, or try again later",
    )


def wait_seconds(attempt: int, retry_after: float | None, policy: RetryPolicy, rng: random.Random) -> float:
    """Return the seconds to wait after a failed attempt.

    The wait is drawn between `min_wait` and `min_wait * 2**attempt`, capped at `max_wait`. The wait that the
    provider asks for is a lower bound.
    """
    ceiling = min(policy.max_wait, policy.min_wait * 2.0 ** min(attempt, 60))
    drawn = rng.uniform(policy.min_wait, max(policy.min_wait, ceiling))
    return max(drawn, requested_wait(retry_after, rng))


def requested_wait(retry_after: float | None, rng: random.Random) -> float:
    """Return the seconds that the provider asks to wait, with jitter; 0 if it specifies no time.

    A rejected request does not wait longer, because it then queues with the others under the limits that were
    lowered by its rejection. The wait is extended by up to a tenth, so that waiting requests are not all sent
    at once.
    """
    return 0.0 if retry_after is None else retry_after * (1.0 + 0.1 * rng.random())


_LISTENER: ContextVar[Callable[[TransientError], None] | None] = ContextVar("_LISTENER", default=None)


@contextmanager
def listen_to_retries(listener: Callable[[TransientError], None]) -> Iterator[None]:
    """Call `listener` with the error each time a request inside the block is about to be retried."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


_ONCE: ContextVar[bool] = ContextVar("_ONCE", default=False)
# Seconds, as the policy's `max_wait`; all waits together take at most `max_retries` times as long.
_LONGEST_FIRST_WAIT = 4.0


@contextmanager
def without_retries() -> Iterator[None]:
    """Do not retry failed requests inside the block, unless the provider asks for a wait of a few seconds."""
    token = _ONCE.set(True)
    try:
        yield
    finally:
        _ONCE.reset(token)


class Retry(TransportLayer):
    """A transport that resends requests after transient failures.

    Waits requested by the provider use up no retries until the policy's patience has ended. A request fails
    at once if its `Retry-After` would end later than that, or if its address cannot be connected to and has
    never been reached, because such an address is more likely wrong than temporarily unavailable.

    Args:
        sleep: Function that waits for a number of seconds.
        clock: A monotonic clock, in seconds.
    """

    def __init__(
        self,
        inner: Transport,
        policy: RetryPolicy,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        rng: random.Random | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(inner)
        self._policy = policy
        self._sleep = sleep
        self._rng = rng or random.Random()
        self._clock = clock
        self._was_reached = False

    async def send(self, request: ModelRequest) -> ModelReply:
        """Return the first reply received."""
        tries: _Tries | None = None
        policy = self._policy
        if _ONCE.get():
            policy = replace(policy, max_wait=min(policy.max_wait, _LONGEST_FIRST_WAIT))
        while True:
            try:
                reply = await self._inner.send(request)
            except TransientError as error:
                last = error
                tries = tries or _Tries(self._clock())
                self._was_reached = self._was_reached or _is_reached(error)
                is_final = not self._was_reached or (_ONCE.get() and not asks_to_wait(error))
                if is_final or not tries.allows_another(error, policy, self._clock()):
                    error.add_note(f"Tried {max(1, tries.failed.total() + tries.put_off)} times.")
                    raise
                if asks_to_wait(error):
                    wait = requested_wait(error.retry_after, self._rng)
                else:
                    attempt = tries.failed[type(error)]
                    wait = wait_seconds(attempt, error.retry_after, policy, self._rng)
            else:
                self._was_reached = True
                return reply
            if wait > 0:
                if (heard := _LISTENER.get()) is not None:
                    heard(last)
                await self._sleep(wait)


def _is_reached(error: TransientError) -> bool:
    return not isinstance(error, ProviderConnectionError) or error.connected
