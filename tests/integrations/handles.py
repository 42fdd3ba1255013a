"""Actors without Ray: what a keeper and its workers do does not need it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any


class Handle:
    """An actor that is no actor: calls run in this event loop.

    Attributes:
        calls: How often each method was called.
        is_cut: Whether calls are lost, as those of a process that was killed.
    """

    def __init__(self, actor: Any) -> None:
        self.calls: Counter[str] = Counter()
        self.is_cut = False
        self._actor = actor

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._actor, name)
        handle = self

        class Remote:
            @staticmethod
            def remote(*given: Any) -> Any:
                handle.calls[name] += 1
                return asyncio.Future() if handle.is_cut else asyncio.ensure_future(method(*given))

        return Remote


def settled(test: Callable[[], Awaitable[None]]) -> None:
    """Runs a test that must not hang."""

    async def within() -> None:
        async with asyncio.timeout(120):
            await test()

    asyncio.run(within())


async def turns() -> None:
    """Lets everything that can go on do so."""
    for _ in range(20):
        await asyncio.sleep(0)
