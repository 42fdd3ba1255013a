"""Retries: pure arithmetic for the waits, and a thin transport around it."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from autorubric.errors import TransientError
from autorubric.llm._faults import asks_to_wait
from autorubric.llm._transport import ModelReply, ModelRequest, Transport
from autorubric.rate_limit import LONGEST_PAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how patiently to try again.

    Attributes:
        max_retries: Further tries after a failure, for each class of failure: three broken connections say
            nothing of whether the server fails.
        min_wait: Shortest wait, in seconds.
        max_wait: Longest wait, in seconds, unless the provider asks for more.
    """

    max_retries: int = 3
    min_wait: float = 1.0
    max_wait: float = 60.0

    @property
    def patience(self) -> float:
        """Seconds for which a request comes again, however often, to a provider that asks it to wait."""
        return self.max_retries * self.max_wait


@dataclass(slots=True)
class _Tries:
    """The tries of one request that failed.

    Attributes:
        failed: Those that a fault ended, by the class of the fault.
        put_off: Those that the provider asked to wait.
        since: When it did so first.
    """

    failed: Counter[type[TransientError]] = field(default_factory=Counter)
    put_off: int = 0
    since: float = 0.0

    def allows_another(self, error: TransientError, policy: RetryPolicy, now: float) -> bool:
        """Counts the failure; says whether the request may be sent again."""
        if not asks_to_wait(error):
            self.failed[type(error)] += 1
            return self.failed[type(error)] <= policy.max_retries
        if not self.put_off:
            self.since = now
        self.put_off += 1
        # Being asked to wait says nothing against the request, so it is no try that is used up.
        return self.put_off <= policy.max_retries or now - self.since < policy.patience


def wait_seconds(attempt: int, retry_after: float | None, policy: RetryPolicy, rng: random.Random) -> float:
    """Seconds to wait after a failed try.

    The wait is drawn between `min_wait` and `min_wait * 2**attempt`, cut at `max_wait`. What the provider
    asks for is a minimum, up to 300 s, stretched by up to a tenth so that waiting requests do not come back
    all at once.

    Args:
        attempt: Number of tries that failed, from 1.
        retry_after: Seconds that the provider asks to wait, where it says so.
        policy: Shortest and longest wait.
        rng: Source of the jitter.
    """
    ceiling = min(policy.max_wait, policy.min_wait * 2.0 ** min(attempt, 60))
    drawn = rng.uniform(policy.min_wait, max(policy.min_wait, ceiling))
    return max(drawn, asked_seconds(retry_after, policy, rng))


def asked_seconds(retry_after: float | None, policy: RetryPolicy, rng: random.Random) -> float:
    """Seconds to wait because the provider says so; 0 if it does not say how long.

    A request that was turned away waits no longer than that, since it then waits in line with the others,
    under the limits that its rejection lowered.

    Args:
        retry_after: Seconds that the provider asks to wait, where it says so.
        policy: Longest wait.
        rng: Source of the jitter.
    """
    if retry_after is None:
        return 0.0
    return min(retry_after, max(LONGEST_PAUSE, policy.max_wait)) * (1.0 + 0.1 * rng.random())


class Retry:
    """Sends again after transient failures.

    A provider that asks to wait uses up no tries before the policy's patience has ended.

    Args:
        inner: What sends.
        policy: How often and how patiently.
        sleep: Waits for some seconds.
        rng: Source of the jitter.
        clock: Seconds that only grow.
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
        self._inner = inner
        self._policy = policy
        self._sleep = sleep
        self._rng = rng or random.Random()
        self._clock = clock

    async def send(self, request: ModelRequest) -> ModelReply:
        """The first reply that comes.

        Raises:
            ProviderError: One that no retry can mend, or the last when the tries are used up.
        """
        tries: _Tries | None = None
        while True:
            try:
                return await self._inner.send(request)
            except TransientError as error:
                tries = tries or _Tries()
                if not tries.allows_another(error, self._policy, self._clock()):
                    error.add_note(f"Tried {tries.failed.total() + tries.put_off} times.")
                    raise
                if asks_to_wait(error):
                    wait = asked_seconds(error.retry_after, self._policy, self._rng)
                else:
                    wait = wait_seconds(tries.failed.total(), error.retry_after, self._policy, self._rng)
            if wait > 0:
                await self._sleep(wait)

    async def aclose(self) -> None:
        """Releases the connections of the inner transport."""
        await self._inner.aclose()
