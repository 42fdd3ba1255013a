"""The teacher that a pass asks: its prompts, and one interface for models, functions and other objects."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from math import inf
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel

from autorubric.apps.drafts.drafts import Draft, data_of, json_text
from autorubric.apps.drafts.provenance import (
    Answered,
    CritiqueSchema,
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
from autorubric.judges.critic_prompt import PromptTemplate
from autorubric.judges.prompts import MATERIAL_RULE, delimit, item_tag, neutralise
from autorubric.judges.vote import Clock
from autorubric.llm.config import LLMConfig
from autorubric.llm.names import prefix_of
from autorubric.llm.transport import ReplySchema
from autorubric.support.concurrency import NoStrayCancellation
from autorubric.support.objects import Json
from autorubric.support.read import read_text
from autorubric.support.reading_errors import short_repr

_CRITIQUE_VARIABLES: Final = ("id", "prompt", "output", "contract", "material", "schema", "rule")
_REWRITE_VARIABLES: Final = ("id", "prompt", "output", "remarks", "contract", "material", "form", "rule")
_JSON_FORM: Final = "The output is JSON, and so is your reply: {kind}."
_KINDS: Final = {
    dict: "an object of the same shape",
    list: "a list of the same shape",
    bool: "true or false",
    float: "a number",
}
_TEXT_FORM: Final = "The output is a text, and so is your reply."

TeacherTask = Literal["critique", "rewrite"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherPrompt:
    """The prompt passed to a teacher function or to a teacher object's `forward` method.

    Attributes:
        role: Role of the message, always `"user"`.
        content: Text of the prompt: the filled-in template.
        task: The task, `"critique"` or `"rewrite"`.
        draft_id: Id of the draft.
        schema: JSON schema of the critique; None for a rewrite.
    """

    role: str = "user"
    content: str
    task: TeacherTask
    draft_id: str
    schema: Mapping[str, Json] | None = None

    def __str__(self) -> str:
        return self.content


def load_critique_prompt_template(path: str | Path | None = None) -> str:
    """Load the built-in critique prompt template (v1), or a template from a file.

    Raises:
        FileError: If the file cannot be read.
    """
    return _shipped_text("critique_v1.txt") if path is None else read_text(path)


def critique_template(given: str | Path | None) -> PromptTemplate:
    """Return the critique template with this text or path; the built-in one for None."""
    return _template(given, "critique_v1.txt", _CRITIQUE_VARIABLES, "template")


def rewrite_template(given: str | Path | None) -> PromptTemplate:
    """Return the rewrite template with this text or path; the built-in one for None."""
    return _template(given, "rewrite_v1.txt", _REWRITE_VARIABLES, "rewrite")


def _template(given: object, shipped: str, known: tuple[str, ...], parameter: str) -> PromptTemplate:
    if given is not None and not isinstance(given, str | Path):
        raise ArgumentError(f"{parameter} must be a template text or a Path to it; got {short_repr(given)}")
    if given is None:
        given = _shipped_text(shipped)
    template = PromptTemplate.parse(read_text(given) if isinstance(given, Path) else given, known)
    template.fill(dict.fromkeys(known, "text"))
    if not {"output", "material"} & set(template.names):
        raise ArgumentError(f"{parameter} must contain {{output}} or {{material}} to show the output")
    return template


def template_text(template: PromptTemplate) -> str:
    """Return the text of a template, for its digest."""
    return "".join(f"{literal}{variable or ''}" for literal, variable in template.pieces)


def critique_prompt(
    template: PromptTemplate, schema: CritiqueSchema, draft: Draft, *, output: str | None = None
) -> TeacherPrompt:
    """Return the prompt for the critique of a draft."""
    content = template.fill(
        {
            **_material(draft, draft.output_text if output is None else output),
            "schema": schema.shown_text,
            "rule": MATERIAL_RULE,
        },
        composed=_CRITIQUE_VARIABLES,
    )
    return TeacherPrompt(content=content, task="critique", draft_id=draft.id, schema=schema.schema)


def rewrite_prompt(template: PromptTemplate, draft: Draft, critique: Mapping[str, Json]) -> TeacherPrompt:
    """Return the prompt for rewriting a draft based on its critique."""
    shown = _material(draft, draft.output_text, remarks=_remarks(critique))
    kind = json_kind(draft.output)
    form = _TEXT_FORM if kind is None else _JSON_FORM.format(kind=_KINDS[kind])
    values = {**shown, "form": form, "rule": MATERIAL_RULE}
    content = template.fill(values, composed=_REWRITE_VARIABLES)
    return TeacherPrompt(content=content, task="rewrite", draft_id=draft.id)


def _material(draft: Draft, output: str, remarks: str | None = None) -> dict[str, str]:
    """Return the delimited parts of a draft, individually and joined."""
    prompt = "" if draft.prompt is None else json_text(draft.prompt)
    contract = "" if draft.contract is None else json_text(draft.contract)
    # An id is untrusted text: on one line, it cannot pass for a part of the prompt.
    key = neutralise(" ".join(draft.id.split())[:200])
    tag = item_tag(prompt, output, contract, remarks)
    parts = {"prompt": delimit("query", prompt, tag) if prompt else ""}
    parts["output"] = delimit("submission", output, tag)
    parts["contract"] = delimit("context", contract, tag, name="contract") if contract else ""
    if remarks is not None:
        parts["remarks"] = delimit("context", remarks, tag, name="remarks")
    return {**parts, "id": key, "material": "\n\n".join(part for part in parts.values() if part)}


def _remarks(critique: Mapping[str, Json]) -> str:
    """Return the instructions and issues of a critique as text."""
    lines = []
    instructions = critique.get("rewrite_instructions")
    if isinstance(instructions, str):
        instructions = [instructions]
    if isinstance(instructions, list) and instructions:
        lines += ["Instructions:", *(f"- {json_text(one)}" for one in instructions)]
    issues = critique.get("issues")
    if isinstance(issues, list) and issues:
        lines.append("Issues:")
        lines += [_issue(issue) for issue in issues]
    return "\n".join(lines) or "Improve it as a whole."


def _issue(issue: Json) -> str:
    if not isinstance(issue, Mapping):
        return f"- {json_text(issue)}"
    where = f" (at {issue['evidence_path']})" if issue.get("evidence_path") else ""
    # A custom schema may have other keys.
    kind = ", ".join(str(issue[name]) for name in ("type", "severity") if issue.get(name))
    text = issue.get("message") or json_text({key: value for key, value in issue.items() if value})
    return f"- {kind}: {text}{where}" if kind else f"- {text}{where}"


def json_kind(output: Json) -> type | None:
    """Return `dict` or `list` for such data or its JSON text, `bool` or `float` for scalars, or None."""
    data = data_of(output)
    if isinstance(data, dict | list):
        return type(data)
    if isinstance(output, bool):
        return bool
    return float if isinstance(output, int | float) else None


def _shipped_text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


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
    """The interface of objects that answer questions and return failures as part of the answer."""

    @property
    def parallel(self) -> int | None: ...  # maximum number of drafts in progress at a time
    @property
    def models(self) -> tuple[LLMConfig, ...]: ...  # without their fallbacks; empty for a function
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
    """Return the maximum number of concurrent calls of a function; None if there is no limit."""
    most = _generation(config).get("max_parallel_requests")
    if most is None:
        # It might not be safe to run a sync function in several threads.
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
                answer, exchange, part = await self.source.ask(to_source)
        except JudgeError as error:
            return failure_result(error, replace(asked, latency_s=self.clock() - started))
        assert exchange is not None
        provenance = replace(
            asked,
            selected_model=exchange.model,
            attempted_models=exchange.attempted,
            request_id=exchange.request_id,
            latency_s=self.clock() - started,
            usage=usage_dict(exchange.usage),
            cost=exchange.cost,
            cached=exchange.cached,
            truncated=part is not None,
        )
        if exchange.refusal is not None:
            refused = TeacherFailure(
                code="JSON_PARSE_ERROR", message=f"the model refused: {exchange.refusal}"
            )
            text = exchange.replies[-1] or exchange.refusal
            return Answered(answer=None, text=text, provenance=provenance, failure=refused)
        return Answered(answer=answer, text=exchange.replies[-1], provenance=provenance)

    async def aclose(self) -> None:
        await self.source.aclose()


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
        started = self.clock()
        try:
            reply = await self._reply(question.prompt_of(question.output))
        # Not an error of the function: it is called again by the pass that resumes.
        except BudgetError:
            raise
        # The function is user code: any exception that it raises is a failure of the teacher.
        except Exception as error:
            asked = Provenance(
                provider="function",
                asked_model=name,
                attempted_models=(name,),
                latency_s=self.clock() - started,
            )
            return failure_result(error, asked)
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
