"""Functions that yield the candidates of a round one by one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final

from autorubric.errors import ReplyError
from autorubric.strategy._calls import takes_both
from autorubric.strategy._candidates import Attempt, Generated

_END: Final = object()


class Yielding:
    """Takes each candidate of a round from one iterator, in order; the next round begins another.

    Args:
        function: A sync or async generator function of `(prompt)` or `(prompt, attempt)`; the attempt is the
            first of the round. A sync one runs in threads, one step at a time.
        name: Its name.

    Raises:
        ArgumentError: It takes something else.
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._function = function
        self._name = name
        self._both = takes_both(function, "generate", ("prompt", "attempt"))
        self._lock = asyncio.Lock()
        self._round = 0
        self._taken = 0
        self._candidates: Iterator[Any] | AsyncIterator[Any] = iter(())

    async def generate(self, prompt: Any, attempt: Attempt) -> Generated:
        """The next candidate of the attempt's round.

        Raises:
            ReplyError: The round's iterator has ended, or gave None.
        """
        async with self._lock:
            if attempt.iteration != self._round:
                await self.aclose()
                self._round, self._taken = attempt.iteration, 0
                self._candidates = self._function(*((prompt, attempt) if self._both else (prompt,)))
            content = await _next_of(self._candidates)
            if content is _END:
                raise ReplyError(f"{self._name} yielded {self._taken} candidates, and a round asks for more")
            self._taken += 1
        if content is None:
            raise ReplyError(f"{self._name} yielded None; it is to yield candidates")
        return Generated(content=content)

    async def aclose(self) -> None:
        """Ends the round's iterator."""
        candidates, self._candidates = self._candidates, iter(())
        if isinstance(candidates, AsyncIterator):
            await candidates.aclose()  # type: ignore[attr-defined]
        elif hasattr(candidates, "close"):
            await asyncio.to_thread(candidates.close)


async def _next_of(candidates: Iterator[Any] | AsyncIterator[Any]) -> Any:
    if isinstance(candidates, AsyncIterator):
        return await anext(candidates, _END)
    return await asyncio.to_thread(next, candidates, _END)
