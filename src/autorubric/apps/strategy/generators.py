"""Attempts, candidates, and sources of candidates: models, functions that take the prompt, and streams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol, Self, TypeAlias

from autorubric.apps.strategy.evaluations import Hint
from autorubric.apps.strategy.steps import UserFunction, is_generator_function, takes_both, user_function
from autorubric.errors import ArgumentError, ReplyError, TokenUsage
from autorubric.judges.answering import ModelSource, Question
from autorubric.judges.function import callable_name
from autorubric.llm.client import LLMClient
from autorubric.llm.config import LLMConfig
from autorubric.llm.transport import Message
from autorubric.support.reading_errors import shortened


class Attempt(int):
    """A candidate's number, counted from 0 across all rounds, with information about its round.

    Attributes:
        iteration: Number of the round, starting at 1.
        position: Position within the round, starting at 0.
        hints: Failures of the previous round's candidates; empty in the first round.
    """

    iteration: int
    position: int
    hints: tuple[Hint, ...]

    def __new__(cls, number: int, *, iteration: int, position: int, hints: tuple[Hint, ...] = ()) -> Self:
        """Create the attempt with this number."""
        attempt = super().__new__(cls, number)
        attempt.iteration, attempt.position, attempt.hints = iteration, position, hints
        return attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """A candidate returned by a generator.

    Attributes:
        content: The generated content.
        usage: Tokens spent, if a model generated it.
        spent: US dollars spent, if known.
    """

    content: Any
    usage: TokenUsage | None = None
    spent: float | None = None


_END: Final = object()

Stream: TypeAlias = Iterator[Any] | AsyncIterator[Any]
"""A generator object or any other iterator, sync or async."""


def is_stream(given: Any) -> bool:
    """Return whether a value is a stream of candidates and not itself a candidate."""
    return isinstance(given, Iterator | AsyncIterator)


class Streamed:
    """The candidates of one stream, stored by position and available in any order."""

    def __init__(self, stream: Stream, name: str) -> None:
        self._stream = stream
        self._name = name
        self._lock = asyncio.Lock()
        self._came: list[Any] = []

    async def at(self, place: int) -> Generated:
        """Return the candidate at a position, counted from 0."""
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
        """Return the next item of the stream; an error raised by the stream replaces the item."""
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
        return _Raised(ReplyError(f"{self._name} yielded only {count} of the requested candidates"))

    def is_of(self, stream: Stream) -> bool:
        """Return whether the candidates come from this stream object."""
        return self._stream is stream

    async def aclose(self) -> None:
        """Close the stream."""
        await close(self._stream)


class _Raised:
    """An error that a stream raised instead of a candidate."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class IteratorGenerator:
    """A generator that takes the candidates of all rounds from a caller's stream and does not close it."""

    def __init__(self, stream: Stream) -> None:
        self._streamed = Streamed(stream, callable_name(stream))

    async def generate(self, prompt: Any, attempt: Attempt) -> Generated:
        """Return the stream's candidate with the number of the attempt."""
        return await self._streamed.at(int(attempt))

    async def aclose(self) -> None:
        """Do nothing; the caller owns the stream and must close it."""


class RoundGenerator:
    """A generator that calls a generator function once per round and takes the candidates that it yields.

    Args:
        function: A sync or async generator function of `(prompt)` or `(prompt, attempt)`, where `attempt` is
            the first attempt of the round.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._both = takes_both(function, "generate", ("prompt", "attempt"))
        self._rounds = _Rounds(callable_name(function))

    async def generate(self, prompt: Any, attempt: Attempt) -> Generated:
        """Return the candidate at the attempt's position in its round."""
        arguments = (prompt, attempt) if self._both else (prompt,)
        streamed = await self._rounds.streamed(attempt.iteration, lambda: self._function(*arguments))
        return await streamed.at(attempt.position)

    async def aclose(self) -> None:
        """Close the generator of the current round, if any."""
        await self._rounds.aclose()


class FunctionGenerator:
    """A generator that calls a function for each candidate.

    The function may also return a generator of the round's candidates, which is only known from its return
    value. The first generator returned in a round is then used, and the others are closed unstarted.
    """

    def __init__(self, function: UserFunction) -> None:
        self._function = function
        self._rounds = _Rounds(function.name)

    async def generate(self, prompt: Any, attempt: Attempt) -> Generated:
        """Call the function and return the candidate for an attempt."""
        content = await self._function.call(prompt, attempt)
        if content is None:
            raise ReplyError(f"{self._function.name} returned None; it must return a candidate")
        if not is_stream(content):
            return Generated(content=content)
        streamed = await self._rounds.streamed(attempt.iteration, lambda: content)
        if not streamed.is_of(content):
            await close(content)
        return await streamed.at(attempt.position)

    async def aclose(self) -> None:
        """Close the generator of the current round, if any."""
        await self._rounds.aclose()


class _Rounds:
    """The stream of the current round."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = asyncio.Lock()
        self._round = 0
        self._streamed: Streamed | None = None

    async def streamed(self, iteration: int, begin: Callable[[], Stream]) -> Streamed:
        """Return the stream of a round, starting it first if necessary."""
        async with self._lock:
            if self._streamed is None or iteration != self._round:
                await self.aclose()
                self._round, self._streamed = iteration, Streamed(begin(), self._name)
            return self._streamed

    async def aclose(self) -> None:
        """Close the current stream, if any."""
        streamed, self._streamed = self._streamed, None
        if streamed is not None:
            await streamed.aclose()


async def close(stream: Stream) -> None:
    """Close a stream if it has a method for this."""
    if hasattr(stream, "aclose"):
        await stream.aclose()
    # A generator that is still running in an abandoned thread cannot be closed.
    elif hasattr(stream, "close") and not getattr(stream, "gi_running", False):
        await asyncio.to_thread(stream.close)


GeneratorLike: TypeAlias = (
    str | LLMConfig | LLMClient | Callable[..., Any] | Iterator[Any] | AsyncIterator[Any]
)
"""A model name, an `LLMConfig` or `LLMClient`, a sync or async function of `(prompt)` or `(prompt, attempt)`
that returns one candidate or yields the candidates of a round, or a generator object that yields candidates.
"""


def LLM(model: str, **settings: Any) -> LLMConfig:
    """Create a model configuration; shorthand for `LLMConfig(model=model, **settings)`."""
    return LLMConfig(model=model, **settings)


class Generator(Protocol):
    """The interface of objects that generate candidates."""

    async def generate(self, prompt: Any, attempt: Attempt) -> Generated: ...

    async def aclose(self) -> None: ...


def generator_of(given: GeneratorLike, prompt: Any) -> Generator:
    """Return the `Generator` for a value that a caller passed as `generate`."""
    if isinstance(given, str | LLMConfig | LLMClient) and not isinstance(prompt, str):
        raise ArgumentError(f"prompt must be a string if generate is a model; got {shortened(prompt)}")
    if isinstance(given, str | LLMConfig):
        return _ModelGenerator(source=ModelSource(LLMClient(given)), own=True)
    if isinstance(given, LLMClient):
        return _ModelGenerator(source=ModelSource(given), own=False)
    if callable(given):
        if is_generator_function(given):
            return RoundGenerator(given)
        return FunctionGenerator(user_function(given, "generate", ("prompt", "attempt")))
    if is_stream(given):
        return IteratorGenerator(given)
    raise ArgumentError(
        "generate must be a model name, LLM(name), a function of (prompt) or (prompt, attempt), or a "
        f"generator object that yields candidates; got {shortened(given)}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ModelGenerator:
    """A model as a generator; each attempt has its own sample index and is cached separately."""

    source: ModelSource
    own: bool  # whether the client is closed with the generator

    async def generate(self, prompt: Any, attempt: Attempt) -> Generated:
        message = Message(role="user", content=prompt)
        question = Question(prompt_of=lambda _: message, read=_text, sample=int(attempt))
        answer, exchange, _ = await self.source.ask(question)
        assert exchange is not None
        if answer is None:
            refused = ReplyError(f"{exchange.model} refused: {exchange.refusal}")
            refused.usage, refused.cost = exchange.usage, exchange.cost
            raise refused
        return Generated(content=answer, usage=exchange.usage, spent=exchange.cost)

    async def aclose(self) -> None:
        if self.own:
            await self.source.aclose()


def _text(reply: str) -> str:
    if not reply.strip():
        raise ReplyError("the reply is empty", reply=reply)
    return reply
