"""One interface for evaluators: models, objects with `forward`, functions, judges."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, TypeAlias

from autorubric.criteria.conditions import qualified_name
from autorubric.criteria.values import Answer, Submission
from autorubric.errors import ArgumentError, JudgeError, ReplyError
from autorubric.judges.base import (
    ClosableJudge,
    DescribedJudge,
    Judge,
    JudgeReply,
    JudgeRequest,
    ModelAsker,
    ask_judge,
)
from autorubric.judges.model import ask_truncating, asked_of
from autorubric.judges.prompts import ComposedPrompt
from autorubric.judges.questions import Asking, payload_of
from autorubric.judges.vote import read_answer, reply_text
from autorubric.llm.client import LLMClient
from autorubric.llm.config import LLMConfig
from autorubric.llm.transport import Exchange, Message
from autorubric.scoring.votes import Exchanged
from autorubric.support.concurrency import run_sync
from autorubric.support.objects import Json

EvaluatorLike: TypeAlias = Any
"""A model name, an `LLMConfig`, an `LLMClient`, a `Judge`, an object with `forward(prompt)` or
`aforward(prompt)`, or a sync or async function of the prompt."""


class Evaluator(Protocol):
    """The interface of evaluators: one parsed reply per output, in order; the first one has the usage.

    Attributes:
        reads_prompt: Whether the evaluator uses the critic's prompt; otherwise it builds its own.
    """

    reads_prompt: ClassVar[bool]

    @property
    def name(self) -> str: ...

    @property
    def models(self) -> tuple[LLMConfig, ...]: ...

    def prompt_for(self, asking: Asking) -> ComposedPrompt | None: ...

    def ask_now(self, asking: Asking) -> list[JudgeReply]: ...

    async def ask(self, asking: Asking) -> list[JudgeReply]: ...

    def describe(self) -> dict[str, Json]: ...

    async def aclose(self) -> None: ...


def evaluator_of(given: EvaluatorLike) -> Evaluator:
    """Return the evaluator for a caller's argument.

    Raises:
        ArgumentError: If the argument is not an evaluator.
    """
    if isinstance(given, str | LLMConfig):
        return _ModelEvaluator(LLMClient(given))
    if isinstance(given, LLMClient):
        return _ModelEvaluator(given)
    if not isinstance(given, type):
        sync, later = (_method(given, name) for name in ("forward", "aforward"))
        # An object that has every attribute, such as a mock, is not a judge for that reason.
        written = inspect.iscoroutinefunction(getattr(type(given), "ask", None))
        if isinstance(given, Judge) and (written or not (sync or later)):
            return _Judge(given)
    called = called_of(given)
    if called is not None:
        return called
    raise ArgumentError(
        "evaluator must be a model name, an LLMConfig, a judge, an object with forward(prompt) or "
        f"aforward(prompt), or a function of the prompt; got {given!r}"
    )


def called_of(given: Any) -> CallableEvaluator | None:
    """Wrap a function, or an object with a `forward` or `aforward` method; None for anything else."""
    if isinstance(given, type):
        return None
    sync, later = (_method(given, name) for name in ("forward", "aforward"))
    if sync or later:
        return CallableEvaluator(given, sync, later)
    if not callable(given):
        return None
    return (
        CallableEvaluator(given, None, given)
        if inspect.iscoroutinefunction(given)
        else CallableEvaluator(given, given, None)
    )


def _method(given: Any, name: str) -> Callable[[Any], Any] | None:
    found = getattr(given, name, None)
    return found if callable(found) else None


@dataclass(frozen=True, slots=True)
class _ModelEvaluator:
    client: LLMClient
    reads_prompt: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return self.client.config.model

    @property
    def models(self) -> tuple[LLMConfig, ...]:
        return (self.client.config,)

    def prompt_for(self, asking: Asking) -> ComposedPrompt:
        return ComposedPrompt(messages=_messages(asking, asking.submissions), schema=asking.schema)

    def ask_now(self, asking: Asking) -> list[JudgeReply]:
        async def once() -> list[JudgeReply]:
            async with self.client:
                return await self.ask(asking)

        return run_sync(once())

    async def ask(self, asking: Asking) -> list[JudgeReply]:
        async def ask(submissions: tuple[Submission, ...]) -> Exchange[tuple[Answer, ...]]:
            return await self.client.ask(
                _messages(asking, submissions),
                read=asking.read,
                schema=asking.schema,
                sample=asking.requests[0].sample,
            )

        policy = self.client.config.truncate
        exchange, truncated = await ask_truncating(ask, asking.submissions, policy, compared=asking.compared)
        return _replies(exchange, len(asking.requests), truncated)

    def describe(self) -> dict[str, Json]:
        return asked_of(self.client.config)

    async def aclose(self) -> None:
        await self.client.aclose()


def _messages(asking: Asking, submissions: tuple[Submission, ...]) -> tuple[Message, ...]:
    system_prompt = asking.requests[0].system_prompt
    system = [Message(role="system", content=system_prompt)] if system_prompt else []
    return (*system, Message(role="user", content=asking.prompt_of(submissions).content))


def _replies(exchange: Exchange[tuple[Answer, ...]], count: int, truncated: bool) -> list[JudgeReply]:
    answers = exchange.answer
    if answers is None:
        refused = f"the model refused: {exchange.refusal}"
        answers = (Answer(code=None, cannot_assess=True, reason=refused),) * count
    replies = [
        JudgeReply(answer=one, reason=one.reason, model=exchange.model, truncated=truncated)
        for one in answers
    ]
    messages = tuple((message.role, message.content) for message in exchange.messages)
    exchanged = Exchanged(
        messages=messages,
        replies=exchange.replies,
        dropped_params=exchange.dropped_params,
        request_id=exchange.request_id,
        attempted=exchange.attempted,
        cached=exchange.cached,
    )
    replies[0] = replace(replies[0], usage=exchange.usage, cost=exchange.cost, exchanged=exchanged)
    return replies


@dataclass(frozen=True, slots=True)
class CallableEvaluator:
    """A function, or an object with a `forward` or `aforward` method, that is called with the prompt.

    Attributes:
        source: The function or the object.
        sync: The synchronous callable; None if there is none.
        later: The asynchronous callable; None if there is none.
    """

    source: Any
    sync: Callable[[Any], Any] | None
    later: Callable[[Any], Any] | None
    reads_prompt: ClassVar[bool] = True

    @property
    def name(self) -> str:
        own = getattr(self.source, "__name__", None)
        return own if isinstance(own, str) else type(self.source).__name__

    @property
    def models(self) -> tuple[LLMConfig, ...]:
        return ()

    def prompt_for(self, asking: Asking) -> None:
        return None

    def ask_now(self, asking: Asking) -> list[JudgeReply]:
        if self.sync is None:
            return run_sync(self.ask(asking))
        # Runs in the caller's thread, because the callable may be bound to it.
        given = self.sync(asking.prompt)
        return _read(asking, run_sync(_await_value(given)) if inspect.isawaitable(given) else given)

    async def ask(self, asking: Asking) -> list[JudgeReply]:
        return _read(asking, await self.call(asking.prompt))

    async def call(self, prompt: Any) -> Any:
        """Return the raw result of calling the evaluator; a synchronous callable runs in a thread."""
        if self.later is not None:
            given = self.later(prompt)
        else:
            given = await asyncio.to_thread(self._in_thread, prompt)
        return await given if inspect.isawaitable(given) else given

    def _in_thread(self, prompt: Any) -> Any:
        assert self.sync is not None
        try:
            return self.sync(prompt)
        # A future cannot carry StopIteration out of a thread; awaiting it would never end.
        except StopIteration as error:
            raise JudgeError(f"evaluator {self.name!r} raised StopIteration: {error}") from error

    def describe(self) -> dict[str, Json]:
        return {"evaluator": qualified_name(self.source)}

    async def aclose(self) -> None:
        """Do nothing; the caller owns the object and closes it."""


async def _await_value(given: Awaitable[Any]) -> Any:
    return await given


def _read(asking: Asking, given: Any) -> list[JudgeReply]:
    try:
        answers = asking.read(payload_of(given, asking.prompt.format_override))
    except ReplyError as error:
        if error.reply is None:
            error.reply = reply_text(getattr(given, "text", given))
        raise
    return [JudgeReply(answer=answer, reason=answer.reason) for answer in answers]


@dataclass(frozen=True, slots=True)
class _Judge:
    """A judge, which receives requests and builds its own prompt."""

    judge: Judge
    reads_prompt: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return self.judge.judge_id

    @property
    def models(self) -> tuple[LLMConfig, ...]:
        return self.judge.models if isinstance(self.judge, ModelAsker) else ()

    def prompt_for(self, asking: Asking) -> ComposedPrompt | None:
        return self.judge.prompt_for(asking.requests) if isinstance(self.judge, ModelAsker) else None

    def ask_now(self, asking: Asking) -> list[JudgeReply]:
        async def once() -> list[JudgeReply]:
            try:
                return await self.ask(asking)
            finally:
                await self.aclose()

        return run_sync(once())

    async def ask(self, asking: Asking) -> list[JudgeReply]:
        asked = (self._one(request) for request in asking.requests)
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return [outcome for outcome in outcomes if isinstance(outcome, JudgeReply)]

    async def _one(self, request: JudgeRequest) -> JudgeReply:
        reply = await ask_judge(self.judge, request, judge_id=self.judge.judge_id)
        if not reply.asked:
            return reply
        answer = read_answer(request, reply)
        return replace(reply, answer=replace(answer, reason=reply.reason or answer.reason))

    def describe(self) -> dict[str, Json]:
        if isinstance(self.judge, DescribedJudge):
            return dict(self.judge.describe())
        return {"evaluator": qualified_name(type(self.judge))}

    async def aclose(self) -> None:
        if isinstance(self.judge, ClosableJudge):
            await self.judge.aclose()
