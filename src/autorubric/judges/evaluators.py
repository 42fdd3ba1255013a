"""The evaluators of critics: sources that receive the critic's prompt, and judges, which build their own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, TypeAlias

from autorubric.criteria.conditions import qualified_name
from autorubric.criteria.values import Answer
from autorubric.errors import ArgumentError
from autorubric.judges.answering import Reply, Source, is_judge, source_of
from autorubric.judges.base import (
    ClosableJudge,
    DescribedJudge,
    Judge,
    JudgeReply,
    JudgeRequest,
    ModelAsker,
    ask_judge,
)
from autorubric.judges.model import model_reply, refused_answer
from autorubric.judges.prompts import ComposedPrompt
from autorubric.judges.questions import CriticQuestion
from autorubric.judges.vote import read_answer
from autorubric.llm.config import LLMConfig
from autorubric.support.concurrency import run_sync
from autorubric.support.objects import Json

EvaluatorLike: TypeAlias = Any
"""A model name, an `LLMConfig`, an `LLMClient`, a `Judge`, an object with `forward(prompt)` or
`aforward(prompt)`, or a sync or async function of the prompt."""


class Evaluator(Protocol):
    """The interface of evaluators: one parsed reply per output, in order; the first one has the usage."""

    reads_prompt: ClassVar[bool]  # whether the evaluator uses the critic's prompt, or builds its own

    @property
    def name(self) -> str: ...

    @property
    def models(self) -> tuple[LLMConfig, ...]: ...

    def prompt_for(self, question: CriticQuestion) -> ComposedPrompt | None: ...

    def ask_now(self, question: CriticQuestion) -> Sequence[JudgeReply]: ...

    async def ask(self, question: CriticQuestion) -> Sequence[JudgeReply]: ...

    def describe(self) -> dict[str, Json]: ...

    async def aclose(self) -> None: ...


def evaluator_of(value: EvaluatorLike) -> Evaluator:
    """Return the evaluator for a caller's argument."""
    if is_judge(value):
        return _JudgeEvaluator(value)
    source = source_of(value)
    if source is None:
        raise ArgumentError(
            "evaluator must be a model name, an LLMConfig, a judge, an object with forward(prompt) or "
            f"aforward(prompt), or a function of the prompt; got {value!r}"
        )
    return _SourceEvaluator(source)


@dataclass(frozen=True, slots=True)
class _SourceEvaluator:
    source: Source
    reads_prompt: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def models(self) -> tuple[LLMConfig, ...]:
        return self.source.models

    def prompt_for(self, question: CriticQuestion) -> ComposedPrompt | None:
        return question.composed if self.models else None

    def ask_now(self, question: CriticQuestion) -> Sequence[JudgeReply]:
        return _judge_replies(self.source.ask_now(question), len(question.requests))

    async def ask(self, question: CriticQuestion) -> Sequence[JudgeReply]:
        return _judge_replies(await self.source.ask(question), len(question.requests))

    def describe(self) -> dict[str, Json]:
        return self.source.describe("evaluator")

    async def aclose(self) -> None:
        await self.source.aclose()


def _judge_replies(reply: Reply[tuple[Answer, ...]], count: int) -> list[JudgeReply]:
    exchange = reply.exchange
    if exchange is None:
        return [JudgeReply(answer=answer, reason=answer.reason) for answer in reply.answer or ()]
    answers = reply.answer if reply.answer is not None else (refused_answer(exchange),) * count
    first, *others = (model_reply(exchange, answer, reply.truncated) for answer in answers)
    return [first, *(replace(other, usage=None, cost=None, exchanged=None) for other in others)]


@dataclass(frozen=True, slots=True)
class _JudgeEvaluator:
    judge: Judge
    reads_prompt: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return self.judge.judge_id

    @property
    def models(self) -> tuple[LLMConfig, ...]:
        return self.judge.models if isinstance(self.judge, ModelAsker) else ()

    def prompt_for(self, question: CriticQuestion) -> ComposedPrompt | None:
        return self.judge.prompt_for(question.requests) if isinstance(self.judge, ModelAsker) else None

    def ask_now(self, question: CriticQuestion) -> Sequence[JudgeReply]:
        async def ask_once() -> Sequence[JudgeReply]:
            try:
                return await self.ask(question)
            finally:
                await self.aclose()

        return run_sync(ask_once())

    async def ask(self, question: CriticQuestion) -> Sequence[JudgeReply]:
        replies = (self._ask_one(request) for request in question.requests)
        outcomes = await asyncio.gather(*replies, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return [outcome for outcome in outcomes if isinstance(outcome, JudgeReply)]

    async def _ask_one(self, request: JudgeRequest) -> JudgeReply:
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
