"""A common interface for teachers, which may be models, functions or other objects."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from pydantic import BaseModel

from autorubric.apps.drafts.prompts import TeacherPrompt
from autorubric.apps.drafts.provenance import (
    Answered,
    Provenance,
    TeacherFailure,
    TeacherReply,
    error_record,
    failure_result,
    usage_dict,
)
from autorubric.criteria.values import Submission
from autorubric.errors import ArgumentError, BudgetError, JudgeError, ReplyError
from autorubric.judges.answering import (
    CallableSource,
    ModelSource,
    Question,
    Submissions,
    is_judge,
    source_of,
)
from autorubric.judges.vote import Clock
from autorubric.llm.config import LLMConfig
from autorubric.llm.names import prefix_of
from autorubric.llm.transport import Exchange, ReplySchema
from autorubric.support.concurrency import NoStrayCancellation
from autorubric.support.objects import Json
from autorubric.support.reading_errors import short_repr

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherQuestion(Generic[T]):
    """A question to a teacher."""

    prompt_of: Callable[[str], TeacherPrompt]  # builds the prompt for the output, or the truncated output
    output: str  # the output of the draft
    read: Callable[[str], T]  # converts a reply to the answer; raises `ReplyError` if it cannot
    schema: ReplySchema | None = None  # JSON schema of the reply; None for text
    may_cut: bool = True  # whether the output may be truncated to fit a model, if its config allows this


class Teacher(Protocol):
    """The interface of objects that answer questions and return failures as part of the answer.

    Attributes:
        parallel: Maximum number of drafts in progress at a time; None if not set.
        models: The models that the teacher calls, without their fallbacks; empty for a function.
    """

    @property
    def parallel(self) -> int | None: ...

    @property
    def models(self) -> tuple[LLMConfig, ...]: ...

    def describe(self) -> dict[str, Json]: ...

    async def ask(self, question: TeacherQuestion[T]) -> Answered[T]: ...

    async def aclose(self) -> None: ...


def teacher_of(
    teacher: Any, config: Mapping[str, Json] | None = None, *, clock: Clock = time.perf_counter
) -> Teacher:
    """Return the teacher for a caller's argument; `clock` returns the time in seconds."""
    if is_judge(teacher):
        raise ArgumentError(
            f"teacher {teacher.judge_id!r} is a judge, which votes on criteria and does not write critiques; "
            "pass rubric as well, or a model as the teacher"
        )
    source = source_of(model_config(teacher, config) if isinstance(teacher, str) else teacher)
    if isinstance(source, ModelSource):
        return _ModelTeacher(source, clock)
    if isinstance(source, CallableSource):
        # A thread cannot be interrupted.
        timeout = None if source.asynchronous is None else timeout_of(config)
        return _FunctionTeacher(source, clock, timeout, parallel_of(source, config))
    raise ArgumentError(
        "teacher must be a model name, an LLMConfig, an object with forward(prompt) or aforward(prompt), "
        f"or a function of the prompt; got {short_repr(teacher)}"
    )


def model_config(name: str, config: Mapping[str, Json] | None) -> LLMConfig:
    """Create the configuration of a model from its name and the settings in `config`."""
    generation = _generation(config)
    models = (config or {}).get("models") or []
    if not isinstance(models, list | tuple):
        raise ArgumentError(_CONFIG_FORM)
    if own := {"model", "fallbacks"} & set(generation):
        raise ArgumentError(f'config: "generation" must not set {min(own)!r}; use teacher and "models"')
    fallbacks = tuple(model for model in models if model != name)
    try:
        return LLMConfig(**{"model": name, "fallbacks": fallbacks, **generation})
    except ValueError as error:
        raise ArgumentError(f"config: {error}") from None


def timeout_of(config: Mapping[str, Json] | None) -> float | None:
    """Return the configured timeout for an answer in seconds; None if not set."""
    seconds = _generation(config).get("timeout")
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < inf:
        raise ArgumentError(f'config: "timeout" must be positive, in seconds; got {short_repr(seconds)}')
    return float(seconds)


def parallel_of(source: CallableSource, config: Mapping[str, Json] | None) -> int | None:
    """Return the maximum number of concurrent calls of a function; None if there is no limit.

    A sync function is called for one draft at a time unless the config allows more, because it might not be
    safe to run in several threads.
    """
    most = _generation(config).get("max_parallel_requests")
    if most is None:
        return 1 if source.asynchronous is None else None
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise ArgumentError(
            f'config: "max_parallel_requests" must be a positive integer; got {short_repr(most)}'
        )
    return most


_CONFIG_FORM = 'config: "models" must be a list of names and "generation" a mapping of settings'


def _generation(config: Mapping[str, Json] | None) -> Mapping[str, Json]:
    generation = (config or {}).get("generation") or {}
    if not isinstance(generation, Mapping):
        raise ArgumentError(_CONFIG_FORM)
    return generation


@dataclass(frozen=True, slots=True)
class _ModelTeacher:
    source: ModelSource
    clock: Clock

    @property
    def parallel(self) -> int | None:
        return self._config.max_parallel_requests

    @property
    def models(self) -> tuple[LLMConfig, ...]:
        return self.source.models

    @property
    def _config(self) -> LLMConfig:
        return self.source.client.config

    def describe(self) -> dict[str, Json]:
        return self.source.describe("teacher")

    async def ask(self, question: TeacherQuestion[T]) -> Answered[T]:
        asked = Provenance(provider=provider_name(self._config), asked_model=self.source.name)
        started = self.clock()

        def prompt_of(submissions: Submissions) -> TeacherPrompt:
            output = submissions[0].text if submissions else question.output
            return question.prompt_of(output or "")

        submissions = (Submission(text=question.output),) if question.may_cut else ()
        to_source = Question(
            prompt_of=prompt_of, read=question.read, submissions=submissions, schema=question.schema
        )
        try:
            with NoStrayCancellation(f"teacher {self.source.name!r}"):
                answer, exchange, truncated = await self.source.ask(to_source)
        except JudgeError as error:
            spent = replace(asked, latency_s=self.clock() - started)
            return failure_result(error, spent)
        assert exchange is not None
        spent = replace(asked, latency_s=self.clock() - started, truncated=truncated)
        provenance = _provenance_of(exchange, spent)
        if exchange.refusal is not None:
            refused = TeacherFailure(
                code="JSON_PARSE_ERROR", message=f"the model refused: {exchange.refusal}"
            )
            text = exchange.replies[-1] or exchange.refusal
            return Answered(answer=None, text=text, provenance=provenance, failure=refused)
        return Answered(answer=answer, text=exchange.replies[-1], provenance=provenance)

    async def aclose(self) -> None:
        await self.source.aclose()


def _provenance_of(exchange: Exchange[Any], asked: Provenance) -> Provenance:
    return replace(
        asked,
        selected_model=exchange.model,
        attempted_models=exchange.attempted,
        request_id=exchange.request_id,
        usage=usage_dict(exchange.usage),
        cost=exchange.cost,
        cached=exchange.cached,
    )


@dataclass(frozen=True, slots=True)
class _FunctionTeacher:
    source: CallableSource
    clock: Clock
    timeout: float | None
    parallel: int | None
    models: ClassVar[tuple[LLMConfig, ...]] = ()

    def describe(self) -> dict[str, Json]:
        return self.source.describe("teacher")

    async def ask(self, question: TeacherQuestion[T]) -> Answered[T]:
        name = self.source.name
        asked = Provenance(provider="function", asked_model=name, attempted_models=(name,))
        started = self.clock()
        try:
            reply = await self._reply(question.prompt_of(question.output))
        # Not an error of the function: it is called again by the pass that resumes.
        except BudgetError:
            raise
        # The function is user code: any exception that it raises is a failure of the teacher.
        except Exception as error:
            return failure_result(error, replace(asked, latency_s=self.clock() - started))
        measured = self.clock() - started
        provenance = Provenance(
            provider=reply.provider or "function",
            asked_model=name,
            selected_model=reply.selected_model or name,
            attempted_models=tuple(reply.attempted_models or ()) or (reply.selected_model or name,),
            request_id=reply.request_id,
            latency_s=measured if reply.latency_s is None else reply.latency_s,
            usage=reply.usage,
            cost=reply.cost,
        )
        try:
            return Answered(answer=question.read(reply.text), text=reply.text, provenance=provenance)
        except ReplyError as error:
            return Answered(answer=None, text=reply.text, provenance=provenance, failure=error_record(error))

    async def _reply(self, prompt: TeacherPrompt) -> TeacherReply:
        try:
            async with asyncio.timeout(self.timeout) as limit:
                with NoStrayCancellation(f"teacher {self.source.name!r}"):
                    return _read_reply(await self.source.call(prompt))
        except TimeoutError as error:
            if limit.expired():
                raise TimeoutError(f"no answer within {self.timeout:g} seconds") from error
            raise

    async def aclose(self) -> None:
        """Do nothing; the caller owns the resources of the function or object."""


def provider_name(config: LLMConfig) -> str | None:
    """Return the provider of a model, inferred from its name prefix or `api_base`; None if unknown."""
    prefix = prefix_of(config.model)
    if prefix:
        return prefix
    return "openai_compatible" if config.api_base else None


def _read_reply(result: Any) -> TeacherReply:
    """Convert the value returned by a teacher function to a reply."""
    if isinstance(result, TeacherReply):
        return result
    if isinstance(result, str):
        return TeacherReply(text=result)
    text = getattr(result, "text", None)
    if isinstance(text, str):
        return TeacherReply(text=text)
    if isinstance(result, BaseModel):
        result = result.model_dump(mode="json")
    if isinstance(result, Mapping | list):
        try:
            return TeacherReply(text=json.dumps(result, ensure_ascii=False, allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise ReplyError(f"the teacher returned data that is not JSON: {error}") from None
    raise ReplyError(
        "the teacher must return a string, a dict, a TeacherReply, or an object with a string attribute "
        f"'text'; it returned {short_repr(result)}"
    )
