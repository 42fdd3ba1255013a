"""Attempts, candidates, and sources of candidates: models, functions that take the prompt, and streams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol, Self, TypeAlias

from autorubric.apps.strategy.evaluations import Hint
from autorubric.apps.strategy.steps import UserFunction, user_function
from autorubric.errors import ArgumentError, ReplyError, TokenUsage
from autorubric.judges.answering import ModelSource, Question
from autorubric.judges.function import callable_name
from autorubric.llm.client import LLMClient
from autorubric.llm.config import LLMConfig
from autorubric.llm.transport import Message
from autorubric.support.reading_errors import short_repr


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
    """A candidate returned by a generator."""

    content: Any
    usage: TokenUsage | None = None
    spent: float | None = None  # US dollars


_END: Final = object()

Stream: TypeAlias = Iterator[Any] | AsyncIterator[Any]
"""A generator object or any other iterator, sync or async."""


class CandidateStream:
    """The candidates of one stream, stored by position and available in any order."""

    def __init__(self, stream: Stream, name: str) -> None:
        self.stream = stream
        self._name = name
        self._lock = asyncio.Lock()
        self._candidates: list[tuple[Any, Exception | None]] = []

    async def at(self, position: int) -> Generated:
        """Return the candidate at a position, counted from 0; an error of the stream takes one position."""
        async with self._lock:
            while len(self._candidates) <= position:
                self._candidates.append(await self._next())
        content, error = self._candidates[position]
        if error is not None:
            raise error
        if content is None:
            raise ReplyError(f"{self._name} yielded None; it must yield candidates")
        return Generated(content=content)

    async def _next(self) -> tuple[Any, Exception | None]:
        try:
            if isinstance(self.stream, AsyncIterator):
                content = await anext(self.stream, _END)
            else:
                content = await asyncio.to_thread(next, self.stream, _END)
        except Exception as error:
            return None, error
        if content is not _END:
            return content, None
        count = sum(error is None for _, error in self._candidates)
        return None, ReplyError(f"{self._name} yielded only {count} of the requested candidates")


class StreamGenerator:
    """A generator that takes the candidates of all rounds from a caller's stream and does not close it."""

    def __init__(self, stream: Stream) -> None:
        self._candidates = CandidateStream(stream, callable_name(stream))

    async def generate(self, prompt: Any, attempt: Attempt) -> Generated:
        return await self._candidates.at(int(attempt))

    async def aclose(self) -> None:
        """Do nothing; the caller owns the stream and must close it."""


class FunctionGenerator:
    """A generator that calls a function for each candidate.

    The function may also return a stream of the round's candidates. The first stream of a round, that of the
    round's first attempt if the function is a generator function, is then used; the others are closed
    unstarted.
    """

    def __init__(self, function: UserFunction) -> None:
        self._function = function
        self._lock = asyncio.Lock()
        self._round = 0
        self._candidates: CandidateStream | None = None

    async def generate(self, prompt: Any, attempt: Attempt) -> Generated:
        content = await self._function.call(prompt, attempt)
        if content is None:
            raise ReplyError(f"{self._function.name} returned None; it must return a candidate")
        if not isinstance(content, Iterator | AsyncIterator):
            return Generated(content=content)
        candidates = await self._round_candidates(attempt.iteration, content)
        if candidates.stream is not content:
            await _close(content)
        return await candidates.at(attempt.position)

    async def _round_candidates(self, iteration: int, stream: Stream) -> CandidateStream:
        async with self._lock:
            if self._candidates is None or iteration != self._round:
                await self.aclose()
                self._round = iteration
                self._candidates = CandidateStream(stream, self._function.name)
            return self._candidates

    async def aclose(self) -> None:
        """Close the stream of the current round, if any."""
        candidates, self._candidates = self._candidates, None
        if candidates is not None:
            await _close(candidates.stream)


async def _close(stream: Stream) -> None:
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


def generator_of(value: GeneratorLike, prompt: Any) -> Generator:
    """Return the `Generator` for a value that a caller passed as `generate`."""
    if isinstance(value, str | LLMConfig | LLMClient) and not isinstance(prompt, str):
        raise ArgumentError(f"prompt must be a string if generate is a model; got {short_repr(prompt)}")
    if isinstance(value, str | LLMConfig):
        return _ModelGenerator(source=ModelSource(LLMClient(value)), is_own=True)
    if isinstance(value, LLMClient):
        return _ModelGenerator(source=ModelSource(value), is_own=False)
    if callable(value):
        return FunctionGenerator(user_function(value, "generate", ("prompt", "attempt")))
    if isinstance(value, Iterator | AsyncIterator):
        return StreamGenerator(value)
    raise ArgumentError(
        "generate must be a model name, LLM(name), a function of (prompt) or (prompt, attempt), or a "
        f"generator object that yields candidates; got {short_repr(value)}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ModelGenerator:
    """A model as a generator; each attempt has its own sample index and is cached separately."""

    source: ModelSource
    is_own: bool  # whether the client is closed with the generator

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
        if self.is_own:
            await self.source.aclose()


def _text(reply: str) -> str:
    if not reply.strip():
        raise ReplyError("the reply is empty", reply=reply)
    return reply
