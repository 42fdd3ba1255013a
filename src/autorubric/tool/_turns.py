"""Providers one after the other, each within its share of the time that a call has."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import TypeVar

from autorubric._sync import NoStrayCancellation
from autorubric.errors import ProviderTimeoutError

T = TypeVar("T")


async def in_turn(work: Awaitable[T], ends: float, *, last: bool) -> T:
    """What a provider gives within its share of a call's time.

    Args:
        work: What it does.
        ends: When the call ends, by `time.perf_counter`.
        last: Whether no other comes after it. It has all that is left then, and the call's own limit ends
            it; any other has half, so that one that hangs leaves time for the next.

    Raises:
        JudgeError: It ended without an answer, or its share did.
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
    """What a call is told that named its provider."""
    return f"Provider {asked!r} is not available: {why}"
