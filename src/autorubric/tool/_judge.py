"""A judge that asks a provider about several criteria at once and keeps its other findings."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from autorubric.critic import Called, Critic, called_of
from autorubric.errors import BudgetError, JudgeError, ReplyError
from autorubric.judges import JudgeReply, JudgeRequest
from autorubric.tool._request import CritiqueRequest
from autorubric.tool._sheet import TEMPLATE, CritiqueSheet, Findings


def is_cancelled() -> bool:
    """Return whether the running task is being cancelled, and not only an object that it awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def stoppable(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Wrap a function so that its caller can stop waiting for it: a sync function runs in a separate thread.

    A thread whose result is no longer needed keeps running but does not keep the process alive.
    """
    if inspect.iscoroutinefunction(function):
        return function

    async def called(given: Any) -> Any:
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[Any] = loop.create_future()

        def settle(value: Any, error: BaseException | None) -> None:
            if outcome.done():
                return
            if error is None:
                outcome.set_result(value)
            else:
                outcome.set_exception(error)

        def work() -> None:
            value: Any = None
            failure: BaseException | None = None
            try:
                value = function(given)
            except BaseException as error:
                # An exit would end the loop, and a future cannot carry StopIteration: both become failures.
                told = isinstance(error, Exception) and not isinstance(error, StopIteration)
                failure = error if told else JudgeError(f"{type(error).__name__} was raised: {error}")
            with contextlib.suppress(RuntimeError):  # the loop is closed, so the result is not needed
                loop.call_soon_threadsafe(settle, value, failure)

        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(work,), name="autorubric-provider", daemon=True).start()
        made = await outcome
        return await made if inspect.isawaitable(made) else made

    return called


@dataclass(kw_only=True)
class CritiqueJudge:
    """A judge that asks one evaluator about all criteria of a request at once.

    Attributes:
        judge_id: Name of the provider.
        evaluator: The evaluator: any value accepted by `Critic`.
        request: The request to evaluate.
        content_note: A note about the content for the critic.
        findings: The findings in the reply; None until the reply has arrived.
        reply: The reply with its usage and cost; None until the reply has arrived.
        failure: The error that occurred; None if no error occurred.
    """

    judge_id: str
    evaluator: Any
    request: CritiqueRequest
    content_note: str
    findings: Findings | None = field(default=None, init=False)
    reply: JudgeReply | None = field(default=None, init=False)
    failure: JudgeError | None = field(default=None, init=False)

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        """Ask the evaluator about one criterion and return the answer."""
        return (await self.ask_many([request]))[0]

    async def ask_many(self, requests: Sequence[JudgeRequest]) -> list[JudgeReply]:
        """Ask the evaluator about several criteria in one request and return the answers.

        Raises:
            JudgeError: If the evaluator failed or refused.
        """
        sheet = CritiqueSheet(
            name="critique",
            parts=tuple(one.criterion for one in requests),
            mode=self.request.evaluation_mode,
            content_note=self.content_note,
            max_issues=self.request.max_issues,
            is_pass_fail=self.request.scoring_scale == "pass-fail",
        )
        try:
            reply = await self._reply(sheet, requests[0])
            self.reply, self.findings = reply, sheet.findings(reply.answer.evaluation)
        except JudgeError as error:
            self.failure = error
            raise
        # An evaluator is user code: any exception, including an exit, is a failure of the provider, unless
        # the caller cancelled the call.
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) or is_cancelled():
                raise
            self.failure = JudgeError(f"provider {self.judge_id!r} raised {type(error).__name__}: {error}")
            raise self.failure from error
        answers = [self.findings.answers[one.criterion.name or ""] for one in requests]
        replies = [JudgeReply(answer=answer, reason=answer.reason, model=reply.model) for answer in answers]
        replies[0] = JudgeReply(
            answer=answers[0],
            reason=answers[0].reason,
            model=reply.model,
            usage=reply.usage,
            cost=reply.cost,
            truncated=reply.truncated,
        )
        return replies

    def _named(self, called: Called) -> Callable[[Any], Awaitable[Any]]:
        """Wrap the provider's function so that its errors name the provider."""

        async def ask(prompt: Any) -> Any:
            try:
                return await called.call(prompt)
            except (JudgeError, BudgetError):
                raise
            except Exception as error:
                message = f"provider {self.judge_id!r} raised {type(error).__name__}: {error}"
                raise JudgeError(message) from error

        return ask

    async def _reply(self, sheet: CritiqueSheet, first: JudgeRequest) -> JudgeReply:
        evaluator = self.evaluator
        if (called := called_of(evaluator)) is not None:
            if called.later is None and called.sync is not None:
                called = replace(called, later=stoppable(called.sync))
            evaluator = self._named(called)
        told = "\n\n".join(text for text in (first.guidelines, self.request.context) if text)
        async with Critic(evaluator, sheet, TEMPLATE) as critic:
            reply = await critic.ask(
                JudgeRequest(
                    criterion=sheet, submission=first.submission, guidelines=told or None, shuffle=False
                )
            )
        if reply.answer.cannot_assess:
            error = ReplyError(reply.answer.reason or "the evaluator returned no evaluation")
            error.usage, error.cost = reply.usage, reply.cost
            raise error
        return reply
