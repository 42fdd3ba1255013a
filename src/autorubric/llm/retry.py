"""Retries: pure functions that compute the waits, and a thin transport that uses them."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

from autorubric.errors import ProviderConnectionError, ProviderTimeoutError, RateLimitError, TransientError
from autorubric.llm.provider_errors import asks_to_wait
from autorubric.llm.transport import Allowance, ModelReply, ModelRequest, Transport, TransportLayer
from autorubric.support.objects import set_within


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    # For each class of error, because broken connections and server errors are independent.
    max_retries: int = 3
    min_wait: float = 1.0  # in seconds
    max_wait: float = 60.0  # in seconds, unless the provider asks for more; see `patience`

    @property
    def patience(self) -> float:
        """Maximum number of seconds after its first failure that a request waits as the provider asks."""
        return self.max_retries * self.max_wait


def most_requests(max_retries: int) -> int:
    """Return the maximum number of requests for one vote, on every path."""
    return 3 * (max_retries + 1)


@dataclass(slots=True)
class _Tries:
    since: float  # time of the first failure
    failed: Counter[type[TransientError]] = field(default_factory=Counter)  # number of attempts by error
    put_off: int = 0  # number of attempts that the provider asked to delay

    def allows_another(
        self, error: TransientError, policy: RetryPolicy, allowance: Allowance, now: float
    ) -> bool:
        """Count the failure and return whether the request may be sent again."""
        left, asked = policy.patience - (now - self.since), error.retry_after
        if asked is not None and asked > max(left, 0.0):
            error.args = (
                f"{error}. Retry-After asks to wait {asked:.10g} s, which exceeds the time left of "
                f"max_retries × retry_max_wait = {policy.max_retries} × {policy.max_wait:g} s; increase "
                "these, or try again later",
            )
            return False
        is_asked = asks_to_wait(error)
        self.failed[type(error)] += not is_asked
        self.put_off += is_asked
        if not allowance.left:
            error.args = (
                f"{error}. {allowance.sent} requests were sent for this vote, as many as "
                f"max_retries={policy.max_retries} allows",
            )
            return False
        if not is_asked:
            return self.failed[type(error)] <= policy.max_retries
        # Being asked to wait is not a failure of the request, so it uses up no retry.
        return self.put_off <= policy.max_retries or left > 0


def wait_seconds(attempt: int, retry_after: float | None, policy: RetryPolicy, rng: random.Random) -> float:
    """Return the seconds to wait: random, up to `min_wait * 2**attempt`, and no less than asked."""
    ceiling = min(policy.max_wait, policy.min_wait * 2.0 ** min(attempt, 60))
    drawn = rng.uniform(policy.min_wait, max(policy.min_wait, ceiling))
    return max(drawn, requested_wait(retry_after, rng))


def repeat_seconds(rejections: int, policy: RetryPolicy) -> float:
    """Return the minimum seconds to wait before a request that was rejected so many times is repeated."""
    return min(policy.max_wait, _FIRST_REPEAT * _REPEAT_GROWTH ** min(rejections - 1, 60))


def requested_wait(retry_after: float | None, rng: random.Random) -> float:
    """Return the seconds that the provider asks to wait, with jitter; 0 if it specifies no time."""
    # With jitter, waiting requests are not all sent at once.
    return 0.0 if retry_after is None else retry_after * (1.0 + 0.1 * rng.random())


_FIRST_REPEAT = 0.003
"""Minimum seconds between two requests for a vote; short, since many rejections are random."""
_REPEAT_GROWTH = 2.5
"""Growth of this wait per rejection; twelve requests take over a minute."""

_LISTENER: ContextVar[Callable[[TransientError], None] | None] = ContextVar("_LISTENER", default=None)


def listen_to_retries(listener: Callable[[TransientError], None]) -> AbstractContextManager[None]:
    """Call `listener` with the error each time a request inside the block is about to be retried."""
    return set_within(_LISTENER, listener)


_ONCE: ContextVar[bool] = ContextVar("_ONCE", default=False)
# Seconds, as the policy's `max_wait`; all waits together take at most `max_retries` times as long.
_LONGEST_FIRST_WAIT = 4.0


def without_retries() -> AbstractContextManager[None]:
    """Do not retry failed requests inside the block, unless the provider asks for a wait of a few seconds."""
    return set_within(_ONCE, True)


class Retry(TransportLayer):
    """A transport that resends requests after transient failures; times are in seconds."""

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
        tries: _Tries | None = None
        policy = self._policy
        allowance = request.allowance or Allowance(most_requests(policy.max_retries))
        if _ONCE.get():
            policy = replace(policy, max_wait=min(policy.max_wait, _LONGEST_FIRST_WAIT))
        if allowance.sent:
            await self._sleep(min(policy.max_wait, _FIRST_REPEAT))
        while True:
            allowance.sent += 1
            try:
                reply = await self._inner.send(request)
            except TransientError as error:
                last = error
                tries = tries or _Tries(self._clock())
                is_reached = not isinstance(error, ProviderConnectionError) or error.connected
                self._was_reached = self._was_reached or is_reached
                # An address that was never reached is more likely wrong than temporarily unavailable.
                is_final = not self._was_reached or (_ONCE.get() and not asks_to_wait(error))
                is_final = is_final or (isinstance(error, ProviderTimeoutError) and error.is_final)
                if is_final or not tries.allows_another(error, policy, allowance, self._clock()):
                    error.add_note(f"Tried {max(1, tries.failed.total() + tries.put_off)} times.")
                    raise
                if asks_to_wait(error):
                    # No longer, because the request then queues with the others under the limits that were
                    # lowered by its rejection.
                    left = max(_FIRST_REPEAT, policy.patience - (self._clock() - tries.since))
                    wait = self._rng.uniform(1.0, 2.0) * repeat_seconds(tries.put_off, policy)
                    if not isinstance(error, RateLimitError):
                        wait = wait_seconds(tries.put_off, None, policy, self._rng)
                    asked = requested_wait(error.retry_after, self._rng)
                    wait = max(min(wait, left, policy.max_wait), asked)
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
