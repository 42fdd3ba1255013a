"""Runs providers one after the other, each within its share of a call's time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import TypeVar

from autorubric._sync import NoStrayCancellation
from autorubric.errors import ProviderTimeoutError

T = TypeVar("T")


async def in_turn(work: Awaitable[T], ends: float, *, last: bool) -> T:
    """Return a provider's result within its share of a call's time.

    Args:
        work: The provider's work.
        ends: Deadline of the call, by `time.perf_counter`.
        last: Whether no other provider follows. The last one gets all the remaining time and is ended by the
            call's own limit; any other gets half, so that a hanging one leaves time for the next.

    Raises:
        JudgeError: If the work ended without an answer, or its share of the time was used up.
    """
    share = None if last else (ends - time.perf_counter()) / 2
    try:
        with NoStrayCancellation("it"):
            async with asyncio.timeout(share) as limit:
                return await work
    except TimeoutError:
        if share is not None and limit.expired():
            raise ProviderTimeoutError(f"no answer within {share:.3g} s") from None
        raise


def unavailable(asked: str, why: str) -> str:
    """Return the error message for a call that named its provider."""
    return f"Provider {asked!r} is not available: {why}"
