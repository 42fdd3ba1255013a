"""Sequential calls of providers, each within its share of the available time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import TypeVar

from autorubric._sync import NoStrayCancellation
from autorubric.errors import ProviderTimeoutError

T = TypeVar("T")


async def in_turn(work: Awaitable[T], ends: float, *, last: bool) -> T:
    """Await a provider's result within its share of the available time.

    Args:
        work: The provider's result.
        ends: Deadline of the call, measured by `time.perf_counter`.
        last: Whether this is the last provider. The last provider has all the remaining time and is stopped
            by the caller's timeout; others have half of it, so that a hanging one leaves time for the next.

    Raises:
        JudgeError: If the provider failed or its share of the time was used up.
    """
    share = None if last else (ends - time.perf_counter()) / 2
    try:
        with NoStrayCancellation("the provider"):
            async with asyncio.timeout(share) as limit:
                return await work
    except TimeoutError:
        if share is not None and limit.expired():
            raise ProviderTimeoutError(f"no answer within {share:.3g} s") from None
        raise


def unavailable(asked: str, why: str) -> str:
    """Return the error message for a call whose named provider failed."""
    return f"Provider {asked!r} is not available: {why}"
