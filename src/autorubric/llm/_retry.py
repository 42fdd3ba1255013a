"""Retries: pure arithmetic for the waits, and a thin transport around it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from autorubric.errors import TransientError
from autorubric.llm._transport import ModelReply, ModelRequest, Transport

_LONGEST_OBEYED: Final = 300.0
"""Seconds of a provider's `Retry-After` that are waited at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how patiently to try again.

    Attributes:
        max_retries: Further tries after the first.
        min_wait: Shortest wait, in seconds.
        max_wait: Longest wait, in seconds, unless the provider asks for more.
    """

    max_retries: int = 3
    min_wait: float = 1.0
    max_wait: float = 60.0


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
    if retry_after is None:
        return drawn
    asked = min(retry_after, max(_LONGEST_OBEYED, policy.max_wait))
    return max(drawn, asked * (1.0 + 0.1 * rng.random()))


class Retry:
    """Sends again after transient failures.

    Args:
        inner: What sends.
        policy: How often and how patiently.
        sleep: Waits for some seconds.
        rng: Source of the jitter.
    """

    def __init__(
        self,
        inner: Transport,
        policy: RetryPolicy,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        rng: random.Random | None = None,
    ) -> None:
        self._inner = inner
        self._policy = policy
        self._sleep = sleep
        self._rng = rng or random.Random()

    async def send(self, request: ModelRequest) -> ModelReply:
        """The first reply that comes.

        Raises:
            ProviderError: One that no retry can mend, or the last when the tries are used up.
        """
        attempt = 1
        while True:
            try:
                return await self._inner.send(request)
            except TransientError as error:
                if attempt > self._policy.max_retries:
                    error.add_note(f"Tried {attempt} times.")
                    raise
                wait = wait_seconds(attempt, error.retry_after, self._policy, self._rng)
            await self._sleep(wait)
            attempt += 1

    async def aclose(self) -> None:
        """Releases the connections of the inner transport."""
        await self._inner.aclose()
