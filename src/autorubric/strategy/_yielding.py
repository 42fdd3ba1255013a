"""Streams that yield a round's candidates one by one: generators, and functions that return them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final, TypeAlias

from autorubric.errors import ReplyError
from autorubric.strategy._calls import Called, takes_both
from autorubric.strategy._candidates import Attempt, Generated

_END: Final = object()

Stream: TypeAlias = Iterator[Any] | AsyncIterator[Any]
"""A generator object or any other iterator, sync or async."""


def is_stream(given: Any) -> bool:
    """Return whether it yields candidates one by one and is not itself a candidate."""
    return isinstance(given, Iterator | AsyncIterator)


class Streamed:
    """The candidates of one stream, stored by position and available in any order.

    Args:
        stream: The stream; a sync one runs in threads, one step at a time.
        name: Its name.
    """

    def __init__(self, stream: Stream, name: str) -> None:
        self._stream = stream
        self._name = name
        self._lock = asyncio.Lock()
        self._came: list[Any] = []

    async def at(self, place: int) -> Generated:
        """Return the candidate at a position, from 0.

        Raises:
            ReplyError: If the stream ended earlier, or yielded None there.
        """
        async with self._lock:
            while len(self._came) <= place:
                self._came.append(await self._next())
        content = self._came[place]
        if isinstance(content, _Raised):
            raise content.error
        if content is None:
            raise ReplyError(f"{self._name} yielded None; it must yield candidates")
        return Generated(content=content)

    async def _next(self) -> Any:
        """Return the stream's next item; an error is stored at its position."""
        try:
            if isinstance(self._stream, AsyncIterator):
                content = await anext(self._stream, _END)
            else:
                content = await asyncio.to_thread(next, self._stream, _END)
        except Exception as error:
            return _Raised(error)
        if content is not _END:
            return content
        count = sum(not isinstance(one, _Raised) for one in self._came)
        return _Raised(ReplyError(f"{self._name} yielded {count} candidates, and more are asked for"))

    def is_of(self, stream: Stream) -> bool:
        """Return whether these are the candidates of that stream."""
        return self._stream is stream

    async def aclose(self) -> None:
        """Close the stream."""
        await close(self._stream)


class _Raised:
    """An error that a stream raised instead of a candidate."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class Given:
    """A generator that takes the candidates of all rounds from a caller's stream, and leaves it open.

    Args:
        stream: The stream.
        name: Its name.
    """

    def __init__(self, stream: Stream, name: str) -> None:
        self._streamed = Streamed(stream, name)

    async def generate(self, prompt: Any, attempt: Attempt) -> Generated:
        """Return the candidate at the position of the attempt's number.

        Raises:
            ReplyError: If the stream has ended, or yielded None.
        """
        return await self._streamed.at(int(attempt))

    async def aclose(self) -> None:
        """Do nothing: the stream belongs to the caller."""


class Yielding:
    """A generator that takes a round's candidates from one generator object; the next round starts another.

    Args:
        function: A sync or async generator function of `(prompt)` or `(prompt, attempt)`; the attempt is the
            first of the round.
        name: Its name.

    Raises:
        ArgumentError: If it takes other arguments.
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._function = function
        self._both = takes_both(function, "generate", ("prompt", "attempt"))
        self._rounds = _Rounds(name)

    async def generate(self, prompt: Any, attempt: Attempt) -> Generated:
        """Return the candidate at the attempt's position in its round.

        Raises:
            ReplyError: If the round's generator has ended, or yielded None.
        """
        arguments = (prompt, attempt) if self._both else (prompt,)
        streamed = await self._rounds.streamed(attempt.iteration, lambda: self._function(*arguments))
        return await streamed.at(attempt.position)

    async def aclose(self) -> None:
        """Close the round's generator."""
        await self._rounds.aclose()


class Returning:
    """A generator that calls a function for each candidate; a returned generator yields those of the round.

    Only the return value shows which case applies. The function is therefore called concurrently for each
    candidate; if it returns generators, the first one of a round is used and the others are closed unstarted.

    Args:
        function: The function.
    """

    def __init__(self, function: Called) -> None:
        self._function = function
        self._rounds = _Rounds(function.name)

    async def generate(self, prompt: Any, attempt: Attempt) -> Generated:
        """Return the candidate.

        Raises:
            ReplyError: If the function returned None, or the round's generator has ended or yielded None.
        """
        content = await self._function.call(prompt, attempt)
        if content is None:
            raise ReplyError(f"{self._function.name} gave None; it must return a candidate")
        if not is_stream(content):
            return Generated(content=content)
        streamed = await self._rounds.streamed(attempt.iteration, lambda: content)
        if not streamed.is_of(content):
            await close(content)
        return await streamed.at(attempt.position)

    async def aclose(self) -> None:
        """Close the round's generator, if any."""
        await self._rounds.aclose()


class _Rounds:
    """The stream of the current round."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = asyncio.Lock()
        self._round = 0
        self._streamed: Streamed | None = None

    async def streamed(self, iteration: int, begin: Callable[[], Stream]) -> Streamed:
        """Return the stream of a round; start one if it has none."""
        async with self._lock:
            if self._streamed is None or iteration != self._round:
                await self.aclose()
                self._round, self._streamed = iteration, Streamed(begin(), self._name)
            return self._streamed

    async def aclose(self) -> None:
        """Close the stream."""
        streamed, self._streamed = self._streamed, None
        if streamed is not None:
            await streamed.aclose()


async def close(stream: Stream) -> None:
    """Close a stream, if it can be closed."""
    if hasattr(stream, "aclose"):
        await stream.aclose()
    # One that is still busy, in the thread of a step that nobody waits for any more, is left to itself.
    elif hasattr(stream, "close") and not getattr(stream, "gi_running", False):
        await asyncio.to_thread(stream.close)
