"""The steps that verify and choose candidates: criteria, rubrics with a threshold, and functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, Protocol, TypeAlias, TypeVar

from autorubric.apps.strategy.calls import CallResult, Evaluation, EvaluationTrace, called, kept_in, name_of
from autorubric.errors import ArgumentError, AutorubricError
from autorubric.rubric.rubric import Rubric
from autorubric.support.concurrency import NoStrayCancellation
from autorubric.support.reading_errors import shortened


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
    """The result of a step for one candidate.

    Attributes:
        value: The result; None if the step raised an error.
        evaluations: The evaluations made by the step, in the order in which they started.
        error: The error that was raised; None if the step succeeded.
    """

    value: T | None
    evaluations: tuple[Evaluation, ...]
    error: Exception | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Generic[T]):
    """A step that verifies a candidate or computes its cost.

    Attributes:
        function: The function to call.
        read: A function that converts the returned object to the result of the step.
    """

    function: CallResult
    read: Callable[[Any], T]

    @property
    def name(self) -> str:
        """Return the name of the function or object that the step calls."""
        return self.function.name

    async def ask(self, candidate: Any, context: Any, *, fresh: int = 0) -> StepOutcome[T]:
        """Run the step on a candidate; an error is returned as part of the outcome."""
        ledger = EvaluationTrace(fresh=fresh)
        try:
            with kept_in(ledger), NoStrayCancellation(self.name):
                value = self.read(await self.function.call(candidate, context))
        # Steps run user code: an error raised for one candidate must not affect the others.
        except Exception as error:
            return StepOutcome(value=None, evaluations=ledger.evaluations, error=error)
        return StepOutcome(value=value, evaluations=ledger.evaluations)


def verify_step(given: VerifyLike) -> Step[bool] | None:
    """Return the step that verifies candidates; None if `given` is None."""
    return None if given is None else Step(function=_function(given, "verify"), read=_as_passed)


def cost_step(given: CostLike) -> Step[float] | None:
    """Return the step that computes the cost of a candidate; None if `given` is None."""
    return None if given is None else Step(function=_function(given, "cost"), read=_amount)


def _function(given: Any, role: Role) -> CallResult:
    if isinstance(given, Rubric):
        raise ArgumentError(
            f"{role} must not be a bare Rubric; pass RubricThreshold(rubric, grader, min_score) instead"
        )
    if not isinstance(given, type):
        method = getattr(given, _METHODS[role], None)
        if callable(method):
            return CallResult(function=method, name=name_of(given), both=True)
        if callable(given):
            return called(given, role, ("candidate", "context"))
    wanted = "QualitativeCriteria" if role == "verify" else "QuantitativeCriteria"
    raise ArgumentError(
        f"{role}={shortened(given)} does not have a method {_METHODS[role]}(candidate, context); pass "
        f"{wanted}, a RubricThreshold, a function of (candidate) or (candidate, context), or None"
    )


def _as_passed(given: Any) -> bool:
    # Truthy values such as (False, "why"), "no", a record or a score are most likely not meant as True.
    plain = given.item() if type(given).__module__ == "numpy" else given
    if not isinstance(plain, int) or plain not in (0, 1):
        raise AutorubricError(f"verify must return True or False; it returned {shortened(given)}")
    return bool(plain)


def _amount(given: Any) -> float:
    try:
        amount = math.nan if given is None or isinstance(given, str | bool) else float(given)
    except (TypeError, ValueError, OverflowError):
        amount = math.nan
    if not math.isfinite(amount):
        raise AutorubricError(f"cost must return a finite number; it returned {shortened(given)}")
    return amount
