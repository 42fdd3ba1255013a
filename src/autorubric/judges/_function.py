"""A plain function, sync or async, as a judge."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from autorubric.criteria import code_digest, qualified_name
from autorubric.errors import BudgetError, JudgeError
from autorubric.judges._base import JudgeReply, JudgeRequest
from autorubric.judges._failures import failure_of, reply_of

JudgeFunction: TypeAlias = Callable[[JudgeRequest], Any]
"""Takes a `JudgeRequest` and returns a `JudgeReply` or a bare answer, or an awaitable of either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionJudge:
    """A judge that calls a function; a synchronous function runs in a thread, so it can block.

    Attributes:
        function: The function, called with each `JudgeRequest`.
        judge_id: Name of the judge in votes and metrics.
    """

    function: JudgeFunction
    judge_id: str

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        """Return the function's answer.

        Raises:
            JudgeError: If the function raised this or any other exception, which the message names. A
                programming error becomes a `JudgeCodeError`.
        """
        try:
            if inspect.iscoroutinefunction(self.function):
                answer = await self.function(request)
            else:
                answer = await asyncio.to_thread(self._call, request)
                if inspect.isawaitable(answer):
                    answer = await answer
        except (JudgeError, BudgetError):
            raise
        # The function is user code, so any exception counts as a failure of this judge.
        except Exception as error:
            raise failure_of(self.judge_id, error) from error
        return reply_of(answer)

    def _call(self, request: JudgeRequest) -> Any:
        try:
            return self.function(request)
        # A future cannot carry StopIteration out of a thread; awaiting it would never end.
        except StopIteration as error:
            raise failure_of(self.judge_id, error) from error

    def describe(self) -> dict[str, str]:
        """Return the function's module, qualified name and code digest."""
        return {
            "judge": "function",
            "function": qualified_name(self.function),
            "code": code_digest(self.function),
        }
