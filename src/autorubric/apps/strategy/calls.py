"""Functions that callers pass in, the evaluations made while one is called, and hints from failures."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from autorubric.errors import ArgumentError, AutorubricError, TokenUsage
from autorubric.judges.prompts import neutralise
from autorubric.support.objects import Json
from autorubric.support.reading_errors import shortened

HintStyle = Literal["counts", "reasons", "none"]
"""Content of the hints after a failed round: the failed criteria with sample counts, these and the judges'
reasons, or no hints.
"""

_HEAD: Final = "Earlier attempts did not pass. What they failed in:"
_LONGEST: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """One failure of a candidate.

    Attributes:
        candidate: Number of the candidate.
        criterion: Expression of the criterion, name of the rubric criterion, or name of the function.
        passed: Number of samples that passed; None if no samples were drawn.
        samples: Number of samples drawn; None if no samples were drawn.
        needed: Number of samples that had to pass; None if not applicable.
        score: The candidate's score on the whole rubric; None for other failures.
        min_score: Score required on the whole rubric; None for other failures.
        reasons: Reasons written by the judges; empty unless `hints="reasons"`.
    """

    candidate: int
    criterion: str
    passed: int | None = None
    samples: int | None = None
    needed: int | None = None
    score: float | None = None
    min_score: float | None = None
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        told = " ".join(self.criterion.split())
        if self.samples is not None:
            told += f" ({self.passed} of {self.samples} samples passed"
            told += ")" if self.needed is None else f", {self.needed} needed)"
        if self.score is not None:
            told += f" (score {self.score:.2f}, {self.min_score:.2f} needed)"
        return told


def with_hints(prompt: str, hints: Sequence[Hint]) -> str:
    """Append the failures of the last round to the prompt; without failures, return it unchanged."""
    if not hints:
        return prompt
    lines = []
    for hint in hints:
        lines.append(f"- {neutralise(str(hint))}")
        lines += [f"  - a judge wrote: {_quote(reason)}" for reason in hint.reasons]
    return "\n".join([prompt, "", _HEAD, *dict.fromkeys(lines)])


def _quote(reason: str) -> str:
    text = " ".join(neutralise(reason).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


class Evaluation(Protocol):
    """The record of one evaluation of one candidate."""

    @property
    def fallback_used(self) -> bool:
        """Whether the value is a substitute because votes are missing."""
        ...

    @property
    def usage(self) -> TokenUsage | None:
        """Return the token usage of the evaluation; None if no usage was reported."""
        ...

    @property
    def cost(self) -> float | None:
        """Return the cost of the evaluation in US dollars; None if unknown."""
        ...

    def hints(self, candidate: int, *, reasons: bool) -> tuple[Hint, ...]:
        """Return the candidate's failures, with the judges' reasons if `reasons` is set."""
        ...

    def to_dict(self) -> dict[str, Json]:
        """Return the evaluation as JSON-compatible data."""
        ...


@dataclass(slots=True)
class EvaluationTrace:
    """The evaluations of one call, in the order in which they started.

    A strategy calls `verify(candidate, context)` and `compute(candidate, context)`, which subclasses may
    override and functions may call, and receives only a value. The ledger of the call collects the underlying
    evaluations and holds the number of fresh votes that the criteria must draw.

    Attributes:
        fresh: Number of fresh votes to draw per evaluation, with new sample indices; 0 for the regular votes.
    """

    fresh: int = 0
    _places: list[Evaluation | None] = field(default_factory=list)

    def reserve(self) -> int:
        """Reserve a position for an evaluation that is starting and return the position."""
        self._places.append(None)
        return len(self._places) - 1

    def enter(self, place: int, evaluation: Evaluation) -> None:
        """Store an evaluation at its position."""
        self._places[place] = evaluation

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """Return the finished evaluations in the order in which they started."""
        return tuple(one for one in self._places if one is not None)


_CURRENT: Final[ContextVar[EvaluationTrace | None]] = ContextVar("autorubric_strategy_ledger", default=None)


@contextmanager
def kept_in(ledger: EvaluationTrace) -> Iterator[None]:
    """Collect the evaluations that are made inside the `with` block in the ledger."""
    token = _CURRENT.set(ledger)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_ledger() -> EvaluationTrace:
    """Return the ledger of the current call, or a temporary ledger outside of a call."""
    return _CURRENT.get() or EvaluationTrace()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """A function and its signature.

    Attributes:
        function: The function.
        name: Name of the function.
        both: Whether the function also takes the second argument.
    """

    function: Callable[..., Any]
    name: str
    both: bool

    async def call(self, first: Any, second: Any) -> Any:
        """Call the function and return its result; sync functions run in a thread and may therefore block."""
        arguments = (first, second) if self.both else (first,)
        if inspect.iscoroutinefunction(self.function):
            given = self.function(*arguments)
        else:
            given = await asyncio.to_thread(self._in_thread, arguments)
        return await given if inspect.isawaitable(given) else given

    def _in_thread(self, arguments: Sequence[Any]) -> Any:
        try:
            return self.function(*arguments)
        # A future cannot carry StopIteration out of a thread: awaiting it would never return.
        except StopIteration as error:
            raise AutorubricError(f"{self.name} raised StopIteration: {error}") from error


def called(function: Callable[..., Any], role: str, arguments: tuple[str, str]) -> CallResult:
    """Inspect a function and return it as a `Called`."""
    name = name_of(function)
    if is_yielding(function):
        raise ArgumentError(f"{role} must return a single value; {name} is a generator function")
    return CallResult(function=function, name=name, both=takes_both(function, role, arguments))


def is_yielding(given: Any) -> bool:
    """Return whether a value is a sync or async generator function, or an object whose `__call__` is one."""
    called = getattr(type(given), "__call__", None)  # noqa: B004 - the method itself is needed
    functions = (given, called)
    return any(inspect.isgeneratorfunction(one) or inspect.isasyncgenfunction(one) for one in functions)


def name_of(given: Any) -> str:
    """Return the name of a function or object."""
    own = getattr(given, "__name__", None)
    return own if isinstance(own, str) else type(given).__name__


def takes_both(function: Callable[..., Any], role: str, arguments: tuple[str, str]) -> bool:
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
            f"{role}={shortened(function)} takes ({', '.join(map(str, parameters))}), but it is called with "
            f"({first}) or ({first}, {second})"
        )
    # A second parameter with a default is not filled, unless it is named like the second argument.
    return len(needed) == 2 or (len(placed) > 1 and placed[1].name == arguments[1]) or several
