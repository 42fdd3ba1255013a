"""Functions that callers pass in, and the steps that verify candidates and compute their costs."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, Protocol, TypeAlias, TypeVar

from autorubric.apps.strategy.evaluations import Evaluation, EvaluationTrace, record_evaluations
from autorubric.errors import ArgumentError, AutorubricError
from autorubric.judges.function import callable_name
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
        return await call_user_code(self.function, *arguments, error_of=self._stop_error, thread=thread)

    def _stop_error(self, error: BaseException) -> AutorubricError:
        return AutorubricError(f"{self.name} raised StopIteration: {error}")


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

    def verify(self, candidate: Any, context: Any, /) -> Any:
        """Return whether a candidate passes."""
        ...


class Computes(Protocol):
    """An object with a sync or async `compute`, such as `QuantitativeCriteria` or `RubricThreshold`."""

    def compute(self, candidate: Any, context: Any, /) -> Any:
        """Return a candidate's cost; the candidate with the lowest cost is chosen."""
        ...


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
