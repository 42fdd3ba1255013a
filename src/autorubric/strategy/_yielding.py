"""What yields the candidates of a round one by one: generators, and functions that give them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final, TypeAlias

from autorubric.errors import ReplyError
from autorubric.strategy._calls import Called, takes_both
from autorubric.strategy._candidates import Attempt, Generated

_END: Final = object()

Stream: TypeAlias = Iterator[Any] | AsyncIterator[Any]
"""A generator that has been called, or any other iterator, sync or async."""


def is_stream(given: Any) -> bool:
    """Whether it gives candidates one by one, and is no candidate itself."""
    return isinstance(given, Iterator | AsyncIterator)


class Streamed:
    """The candidates of one stream, each in the place in which it came, whoever asks first.

    Args:
        stream: The stream; a sync one runs in threads, one step at a time.
        name: What it is called.
    """

    def __init__(self, stream: Stream, name: str) -> None:
        self._stream = stream
        self._name = name
        self._lock = asyncio.Lock()
        self._came: list[Any] = []

    async def at(self, place: int) -> Generated:
        """The candidate in a place, from 0.

        Raises:
            ReplyError: The stream ended before, or gave None there.
        """
        async with self._lock:
            while len(self._came) <= place:
                self._came.append(await self._next())
        content = self._came[place]
        if isinstance(content, _Raised):
            raise content.error
        if content is None:
            raise ReplyError(f"{self._name} yielded None; it is to yield candidates")
        return Generated(content=content)

    async def _next(self) -> Any:
        """What the stream gives next; what it raises stands in that place."""
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
        """Whether these are the candidates of that stream."""
        return self._stream is stream

    async def aclose(self) -> None:
        """Ends the stream."""
        await close(self._stream)


class _Raised:
    """What a stream raised in the place of a candidate."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class Given:
    """Takes the candidates of all rounds from one stream, which stays its owner's, and open.

    Args:
        stream: The stream.
        name: What it is called.
    """

    def __init__(self, stream: Stream, name: str) -> None:
        self._streamed = Streamed(stream, name)

    async def generate(self, prompt: Any, attempt: Attempt) -> Generated:
        """The candidate in the place of the attempt's number.

        Raises:
            ReplyError: The stream has ended, or gave None.
        """
        return await self._streamed.at(int(attempt))

    async def aclose(self) -> None:
        """Nothing: the stream is the caller's."""


class Yielding:
    """Takes the candidates of a round from one generator; the next round begins another.

    Args:
        function: A sync or async generator function of `(prompt)` or `(prompt, attempt)`; the attempt is the
            first of the round.
        name: Its name.

    Raises:
        ArgumentError: It takes something else.
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._function = function
        self._both = takes_both(function, "generate", ("prompt", "attempt"))
        self._rounds = _Rounds(name)

    async def generate(self, prompt: Any, attempt: Attempt) -> Generated:
        """The candidate in the attempt's place of its round.

        Raises:
            ReplyError: The round's generator has ended, or gave None.
        """
        arguments = (prompt, attempt) if self._both else (prompt,)
        streamed = await self._rounds.streamed(attempt.iteration, lambda: self._function(*arguments))
        return await streamed.at(attempt.position)

    async def aclose(self) -> None:
        """Ends the round's generator."""
        await self._rounds.aclose()


class Returning:
    """Asks a function for each candidate; where it returns a generator, this yields those of the round.

    That shows only in what it returns. So it is called for each candidate all the same, at once, and of the
    generators of a round the first is taken and the others are closed before they begin.

    Args:
        function: The function.
    """

    def __init__(self, function: Called) -> None:
        self._function = function
        self._rounds = _Rounds(function.name)

    async def generate(self, prompt: Any, attempt: Attempt) -> Generated:
        """The candidate.

        Raises:
            ReplyError: The function gave None, or the round's generator has ended or gave None.
        """
        content = await self._function.call(prompt, attempt)
        if content is None:
            raise ReplyError(f"{self._function.name} gave None; it is to give a candidate")
        if not is_stream(content):
            return Generated(content=content)
        streamed = await self._rounds.streamed(attempt.iteration, lambda: content)
        if not streamed.is_of(content):
            await close(content)
        return await streamed.at(attempt.position)

    async def aclose(self) -> None:
        """Ends the round's generator, where there is one."""
        await self._rounds.aclose()


class _Rounds:
    """The stream of the round that is on."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = asyncio.Lock()
        self._round = 0
        self._streamed: Streamed | None = None

    async def streamed(self, iteration: int, begin: Callable[[], Stream]) -> Streamed:
        """The stream of a round; where it has none, one that is begun."""
        async with self._lock:
            if self._streamed is None or iteration != self._round:
                await self.aclose()
                self._round, self._streamed = iteration, Streamed(begin(), self._name)
            return self._streamed

    async def aclose(self) -> None:
        """Ends the stream."""
        streamed, self._streamed = self._streamed, None
        if streamed is not None:
            await streamed.aclose()


async def close(stream: Stream) -> None:
    """Ends a stream that can be ended."""
    if hasattr(stream, "aclose"):
        await stream.aclose()
    # One that is still busy, in the thread of a step that nobody waits for any more, is left to itself.
    elif hasattr(stream, "close") and not getattr(stream, "gi_running", False):
        await asyncio.to_thread(stream.close)
