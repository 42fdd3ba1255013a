"""The steps of a strategy, in which candidates are generated, verified and costed."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, Protocol, Self, TypeAlias, TypeVar

from autorubric.apps.strategy.result import Evaluation, EvaluationTrace, Hint, record_evaluations
from autorubric.errors import ArgumentError, AutorubricError, ReplyError, TokenUsage
from autorubric.judges.answering import ModelSource, Question
from autorubric.judges.function import callable_name
from autorubric.llm.client import LLMClient
from autorubric.llm.config import LLMConfig
from autorubric.llm.transport import Message
from autorubric.rubric.rubric import Rubric
from autorubric.support.concurrency import NoStrayCancellation, call_user_code
from autorubric.support.reading_errors import short_repr


@dataclass(frozen=True, slots=True, kw_only=True)
class UserFunction:
    """A function of one or two arguments that a caller passed in."""

    function: Callable[..., Any]
    name: str
    takes_both: bool  # whether the function also takes the second argument

    async def call(self, first: Any, second: Any) -> Any:
        """Return the function's result; a sync function runs in a thread and may therefore block."""
        arguments = (first, second) if self.takes_both else (first,)
        # Calling a generator function runs none of its code.
        thread: Literal["pool"] | None = None if is_generator_function(self.function) else "pool"
        return await call_user_code(
            self.function,
            *arguments,
            error_of=lambda error: AutorubricError(f"{self.name} raised StopIteration: {error}"),
            thread=thread,
        )


def user_function(function: Callable[..., Any], role: str, arguments: tuple[str, str]) -> UserFunction:
    """Return a function with its signature; `arguments` are the names of the two arguments."""
    return UserFunction(
        function=function, name=callable_name(function), takes_both=_takes_both(function, role, arguments)
    )


def is_generator_function(value: Any) -> bool:
    """Return whether a value is a sync or async generator function, or an object whose `__call__` is one."""
    method = getattr(type(value), "__call__", None)  # noqa: B004 - the method itself is needed
    functions = (value, method)
    return any(inspect.isgeneratorfunction(one) or inspect.isasyncgenfunction(one) for one in functions)


def _takes_both(function: Callable[..., Any], role: str, arguments: tuple[str, str]) -> bool:
    """Return whether a function also takes the second argument."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        # Some functions written in C have no signature.
        return False
    placed = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    needed = [one for one in placed if one.default is one.empty]
    named = [one for one in parameters if one.kind is one.KEYWORD_ONLY and one.default is one.empty]
    several = any(one.kind is one.VAR_POSITIONAL for one in parameters)
    if len(needed) > 2 or named or not (placed or several):
        first, second = arguments
        raise ArgumentError(
            f"{role}={short_repr(function)} takes ({', '.join(map(str, parameters))}), but it is called with "
            f"({first}) or ({first}, {second})"
        )
    # A second parameter with a default is not filled, unless it is named like the second argument.
    return len(needed) == 2 or (len(placed) > 1 and placed[1].name == arguments[1]) or several


class Verifies(Protocol):
    """An object with a sync or async `verify`, such as `QualitativeCriteria` or `RubricThreshold`."""

    def verify(self, candidate: Any, context: Any, /) -> Any: ...


class Computes(Protocol):
    """An object with a sync or async `compute`, such as `QuantitativeCriteria` or `RubricThreshold`."""

    def compute(self, candidate: Any, context: Any, /) -> Any: ...


VerifyLike: TypeAlias = Verifies | Callable[..., Any] | None
"""An object with `verify(candidate, context)`, or a sync or async function of `(candidate)` or
`(candidate, context)`; None to skip verification.
"""

CostLike: TypeAlias = Computes | Callable[..., Any] | None
"""An object with `compute(candidate, context)`, or a function with the same parameters; None for no cost."""

Role = Literal["verify", "cost"]
T = TypeVar("T")

_METHODS: Final[dict[Role, str]] = {"verify": "verify", "cost": "compute"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome(Generic[T]):
    """The result of a step for one candidate."""

    value: T | None  # None if the step raised an error
    evaluations: tuple[Evaluation, ...]  # in the order in which they started
    error: Exception | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Generic[T]):
    """A step that verifies a candidate or computes its cost."""

    function: UserFunction
    read: Callable[[Any], T]  # converts what the function returned to the result of the step

    async def ask(self, candidate: Any, context: Any, *, fresh: int = 0) -> StepOutcome[T]:
        """Run the step on a candidate; an error is returned as part of the outcome."""
        trace = EvaluationTrace(fresh=fresh)
        try:
            with record_evaluations(trace), NoStrayCancellation(self.function.name):
                value = self.read(await self.function.call(candidate, context))
        # Steps run user code: an error raised for one candidate must not affect the others.
        except Exception as error:
            return StepOutcome(value=None, evaluations=trace.evaluations, error=error)
        return StepOutcome(value=value, evaluations=trace.evaluations)


def verify_step(value: VerifyLike) -> Step[bool] | None:
    """Return the step that verifies candidates; None if `value` is None."""
    return None if value is None else Step(function=_function(value, "verify"), read=_as_passed)


def cost_step(value: CostLike) -> Step[float] | None:
    """Return the step that computes the cost of a candidate; None if `value` is None."""
    return None if value is None else Step(function=_function(value, "cost"), read=_amount)


def _function(value: Any, role: Role) -> UserFunction:
    if isinstance(value, Rubric):
        raise ArgumentError(
            f"{role} must not be a bare Rubric; pass RubricThreshold(rubric, grader, min_score) instead"
        )
    if not isinstance(value, type):
        method = getattr(value, _METHODS[role], None)
        if callable(method):
            return UserFunction(function=method, name=callable_name(value), takes_both=True)
        if is_generator_function(value):
            name = callable_name(value)
            raise ArgumentError(f"{role} must return a single value; {name} is a generator function")
        if callable(value):
            return user_function(value, role, ("candidate", "context"))
    wanted = "QualitativeCriteria" if role == "verify" else "QuantitativeCriteria"
    raise ArgumentError(
        f"{role}={short_repr(value)} does not have a method {_METHODS[role]}(candidate, context); pass "
        f"{wanted}, a RubricThreshold, a function of (candidate) or (candidate, context), or None"
    )


def _as_passed(value: Any) -> bool:
    # Truthy values such as (False, "why"), "no", a record or a score are most likely not meant as True.
    plain = value.item() if type(value).__module__ == "numpy" else value
    if not isinstance(plain, int) or plain not in (0, 1):
        raise AutorubricError(f"verify must return True or False; it returned {short_repr(value)}")
    return bool(plain)


def _amount(value: Any) -> float:
    try:
        amount = math.nan if value is None or isinstance(value, str | bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        amount = math.nan
    if not math.isfinite(amount):
        raise AutorubricError(f"cost must return a finite number; it returned {short_repr(value)}")
    return amount


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
    """A generator that calls a function, which returns a candidate or a stream of the round's candidates."""

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
        async with self._lock:
            # The first stream of a round is used; the others are closed unstarted.
            if self._candidates is None or attempt.iteration != self._round:
                await self.aclose()
                self._round = attempt.iteration
                self._candidates = CandidateStream(content, self._function.name)
            candidates = self._candidates
        if candidates.stream is not content:
            await _close(content)
        return await candidates.at(attempt.position)

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
