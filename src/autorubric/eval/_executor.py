"""Running one coroutine an item, so many at a time, and yielding what finishes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import TypeVar

ItemT = TypeVar("ItemT")
DoneT = TypeVar("DoneT")


async def run_bounded(
    items: Iterable[ItemT], work: Callable[[ItemT], Awaitable[DoneT]], *, limit: int
) -> AsyncGenerator[DoneT, None]:
    """Yields what `work` returns for each item, as it finishes; at most `limit` are under way.

    Items are taken from the iterable as places become free. The first exception cancels what is under way
    and is raised once that has ended; so does closing the iterator.
    """
    waiting = iter(items)
    # Keys alone, in the order of their start: what ends in one moment is yielded in that order.
    running: dict[asyncio.Task[DoneT], None] = {}
    done: set[asyncio.Task[DoneT]] = set()

    def fill() -> None:
        for item in waiting:
            running[asyncio.ensure_future(_done(work, item))] = None
            if len(running) >= limit:
                return

    try:
        fill()
        while running:
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            ended = [task for task in running if task in done]
            for task in ended:
                del running[task]
            fill()
            # What finished beside a failure is yielded first: it is done, and its caller wants to keep it.
            for task in sorted(ended, key=_has_failed):
                yield task.result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, *done, return_exceptions=True)


def _has_failed(task: asyncio.Task[DoneT]) -> bool:
    return task.cancelled() or task.exception() is not None


async def _done(work: Callable[[ItemT], Awaitable[DoneT]], item: ItemT) -> DoneT:
    return await work(item)
