"""Plain functions and deterministic checks as judges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, ClassVar, TypeAlias

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.conditions import code_digest, find_check, qualified_name
from autorubric.criteria.transcript_checks import TranscriptCheck
from autorubric.criteria.values import CHECK_JUDGE_ID
from autorubric.errors import BudgetError, JudgeError, ReplyError
from autorubric.judges.base import JudgeReply, JudgeRequest, failure_of, reply_of
from autorubric.support.concurrency import call_user_code
from autorubric.support.objects import is_number

JudgeFunction: TypeAlias = Callable[[JudgeRequest], Any]
"""Takes a `JudgeRequest` and returns a `JudgeReply` or a bare answer, or an awaitable of either."""


def callable_name(target: Any) -> str:
    """Return the name of a function, or of the class of a callable object."""
    name = getattr(target, "__name__", None)
    return name if isinstance(name, str) else type(target).__name__


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionJudge:
    """A judge that calls a function; a synchronous function runs in a thread, so it can block.

    Attributes:
        function: The function, called with each `JudgeRequest`.
        judge_id: Name of the judge in votes and metrics.
    """

    function: JudgeFunction
    judge_id: str
    _is_async: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_is_async", iscoroutinefunction(self.function))

    @property
    def in_thread(self) -> JudgeFunction | None:
        """The function if it is called in a thread; otherwise None."""
        return None if self._is_async else self.function

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        """Return the function's answer.

        Raises:
            JudgeError: If the function raised this or any other exception, which the message names. A
                programming error becomes a `JudgeCodeError`.
        """
        try:
            if self._is_async:
                return reply_of(await self.function(request))
            error_of = partial(failure_of, self.judge_id)
            return reply_of(await call_user_code(self.function, request, error_of=error_of))
        except (JudgeError, BudgetError):
            raise
        # The function is user code, so any exception counts as a failure of this judge.
        except Exception as error:
            raise failure_of(self.judge_id, error) from error

    def describe(self) -> dict[str, str]:
        """Return the function's module, qualified name and code digest."""
        code = code_digest(self.function)
        return {"judge": "function", "function": qualified_name(self.function), "code": code}


@dataclass(frozen=True, slots=True)
class CheckJudge:
    """A judge that runs the criterion's own `check`."""

    is_offline: ClassVar[bool] = True

    judge_id: str = CHECK_JUDGE_ID

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        submission = request.submission
        if submission.text is None:
            raise JudgeError(f"{request.criterion.name}: the submission has no text for the check")
        if request.criterion.check is None:
            raise JudgeError(f"{request.criterion.name}: the criterion has no check")
        check = find_check(request.criterion.check)
        try:
            result = check(submission.turns if isinstance(check, TranscriptCheck) else submission.text)
        except JudgeError:
            raise
        # Checks are user code, so any exception counts as a failure of the check.
        except Exception as error:
            what = f"the check raised {type(error).__name__}"
            raise JudgeError(f"{request.criterion.name}: {what}: {error}") from error
        return _reply(request.criterion, result)


def _reply(criterion: BaseCriterion, result: Any) -> JudgeReply:
    reason = ""
    if isinstance(result, tuple):
        if len(result) != 2 or not isinstance(result[1], str):
            raise ReplyError(f"{criterion.name}: the check returned {result!r}; expected (answer, reason)")
        result, reason = result
    answer = _answer_at(criterion, float(result)) if is_number(result) else result
    return JudgeReply(answer=answer, reason=reason)


def _answer_at(criterion: BaseCriterion, value: float) -> Any:
    """Return the declared answer with a value in [0, 1], or the nearest one on an ordered scale."""
    declared = [answer for answer in criterion.answers() if answer.value is not None]
    if not declared:
        return value
    if not 0.0 <= value <= 1.0:
        raise ReplyError(f"{criterion.name}: the check returned {value:g}; a number must be between 0 and 1")
    if criterion.level == "ordinal":
        sign = 1.0 if criterion.weight >= 0 else -1.0
        return min(declared, key=lambda one: (abs((one.value or 0.0) - value), sign * (one.value or 0.0)))
    exact = [answer for answer in declared if answer.value == value]
    if len(exact) != 1:
        allowed = ", ".join(f"{answer.value:g} ({answer.label})" for answer in declared)
        raise ReplyError(f"{criterion.name}: the check returned {value:g}; allowed: {allowed}")
    return exact[0]
