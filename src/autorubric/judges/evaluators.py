"""The evaluators of critics, from the question that one is asked to the answer that its result becomes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

from pydantic import BaseModel, ValidationError

from autorubric.criteria.base import BaseCriterion, Shown
from autorubric.criteria.conditions import qualified_name
from autorubric.criteria.conversation import TURN_KEYS
from autorubric.criteria.declaration import object_schema
from autorubric.criteria.fields import TextField
from autorubric.criteria.values import Answer, Submission
from autorubric.errors import ArgumentError, ReplyError
from autorubric.judges.answering import Question, Reply, Source, Submissions, is_judge, source_of
from autorubric.judges.base import (
    ClosableJudge,
    DescribedJudge,
    Judge,
    JudgeReply,
    JudgeRequest,
    ModelAsker,
    call_judge,
    is_blank,
    reply_of,
)
from autorubric.judges.critic_prompt import (
    COMPOSED,
    Case,
    EvaluatorCall,
    Prompt,
    PromptTemplate,
    variable_text,
    variables,
)
from autorubric.judges.model import model_reply, read_payload, refused_answer, show_request
from autorubric.judges.prompts import ComposedPrompt
from autorubric.judges.vote import read_answer, reply_text
from autorubric.llm.config import LLMConfig
from autorubric.llm.reply_json import parse_reply_json
from autorubric.llm.transport import ReplySchema
from autorubric.support.concurrency import run_sync
from autorubric.support.objects import Json
from autorubric.support.reading_errors import short_repr


def _payload_of(result: Any, schema: type[BaseModel], material: str) -> Json:
    if isinstance(result, schema):
        return result.model_dump()
    if isinstance(result, Mapping | list):
        return result
    text = result if isinstance(result, str) else getattr(result, "text", None)
    if isinstance(text, str):
        return parse_reply_json(text, material=material)
    if isinstance(result, BaseModel):
        return result.model_dump()
    raise ReplyError(
        f"the evaluator returned {short_repr(result)}; expected JSON text, a dict, an instance of "
        f"{schema.__name__}, or an object whose .text is JSON text"
    )


def _read_single(cases: Sequence[Case], payload: Json, material: str) -> tuple[Answer, ...]:
    if not isinstance(payload, Mapping):
        raise ReplyError(f"{short_repr(payload)} is not an evaluation; return one object")
    return (read_payload(cases[0].criterion, payload, cases[0].shown, lambda: material),)


def _read_batch(cases: Sequence[Case], payload: Json, material: str) -> tuple[Answer, ...]:
    """Return the answers to several outputs, in order; the error lists all errors."""
    evaluations = payload.get("evaluations") if isinstance(payload, Mapping) else payload
    if not isinstance(evaluations, list):
        raise ReplyError('the reply is not an object with a list "evaluations"')
    if len(evaluations) != len(cases):
        counts = f"{len(cases)} outputs and {len(evaluations)} evaluations"
        raise ReplyError(f"there are {counts}; return one per output, in the same order")
    answers: list[Answer] = []
    faults = []
    for number, (case, evaluation) in enumerate(zip(cases, evaluations, strict=True), 1):
        try:
            answers += _read_single([case], evaluation, material)
        except ReplyError as error:
            faults.append(f"evaluation {number}: {error}")
    if faults:
        raise ReplyError("; ".join(faults))
    return tuple(answers)


def evaluation_of(criterion: BaseCriterion, answer: Answer) -> BaseModel:
    """Return an answer as an instance of the criterion's schema, which cannot express an abstention."""
    fields = answer.evaluation
    if fields is None:
        if answer.code is None:
            why = f"the evaluator reports that it cannot judge: {answer.reason or 'no reason given'}"
            raise ReplyError(f"{criterion.name or 'criterion'}: {why}")
        fields = _from_code(criterion, answer)
    try:
        return criterion.evaluation_schema.model_validate(fields)
    except ValidationError as error:
        raise ReplyError(f"{criterion.name or 'criterion'}: {error}") from None


def _from_code(criterion: BaseCriterion, answer: Answer) -> Mapping[str, Json]:
    """Return the fields of an evaluation, made from an answer's code and reason."""
    read = criterion.parse_truth(answer.code)
    if read is None or read.evaluation is None:
        names = [name for name in criterion.evaluation_schema.model_fields if name != "criterion_name"]
        return {name: answer.reason if name == "reason" else answer.code for name in names}
    texts = [name for name, field in criterion.eval_fields.items() if isinstance(field, TextField)]
    return {**read.evaluation, **dict.fromkeys(texts[:1] if answer.reason else (), answer.reason)}


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticQuestion(Question[tuple[Answer, ...]]):
    """One question to an evaluator, which has one submission, and one answer, per output."""

    schema: ReplySchema
    requests: tuple[JudgeRequest, ...]  # the same question as one request per output, for judges

    @property
    def composed(self) -> ComposedPrompt:
        return ComposedPrompt(self.for_model(self.submissions).messages, self.schema)


def critic_question(
    criterion: BaseCriterion, template: PromptTemplate, cases: Sequence[Case], call: EvaluatorCall
) -> CriticQuestion:
    if is_blank(call.reference):
        call = replace(call, reference=None)
        if criterion.needs_reference:
            raise ArgumentError(f"{criterion.name or 'the criterion'} requires a reference; pass reference=…")
    schema = criterion.batch_evaluation_schema if call.batch else criterion.evaluation_schema
    next_to_input = not {"input", "inputs"} & set(template.names)

    def fill(submissions: Submissions) -> Prompt:
        left = [case.cut_to(submission) for case, submission in zip(cases, submissions, strict=True)]
        content = template.fill(variables(left, call, next_to_input=next_to_input), composed=COMPOSED)
        return Prompt(role="user", content=content, format_override=schema)

    def read(result: Any) -> tuple[Answer, ...]:
        try:
            payload = _payload_of(result, schema, prompt.content)
            return (_read_batch if call.batch else _read_single)(cases, payload, prompt.content)
        except ReplyError as error:
            if error.reply is None:
                error.reply = reply_text(getattr(result, "text", result))
            raise

    requests = tuple(_request(case, call) for case in cases)
    whole = tuple(case.submission for case in cases)
    prompt = fill(whole)
    return CriticQuestion(
        prompt_of=lambda submissions: prompt if submissions is whole else fill(submissions),
        read=read,
        submissions=whole,
        compared=bool(cases[0].shown.names),
        schema=_wire_schema(criterion, cases, call),
        system_prompt=requests[0].system_prompt,
        sample=requests[0].sample,
        requests=requests,
    )


def case_of(criterion: BaseCriterion, output: Any, input: Any) -> Case:
    compares = criterion.level == "ranking"
    if compares or _is_submission(output):
        try:
            submission = Submission.parse("" if output is None else output)
        except ArgumentError as error:
            raise ArgumentError(f"output: {error}") from None
        value = submission.text
    else:
        submission, value = Submission(text=variable_text(output)), output
    bound, shown = criterion, Shown()
    if compares:
        bound = criterion.bind(submission)
        if (problem := bound.why_inapplicable(submission)) is not None:
            raise ArgumentError(problem)
        shown = bound.show(submission, None)
    return Case(output=value, input=input, submission=submission, criterion=bound, shown=shown)


def case_in_panel(request: JudgeRequest) -> Case:
    return Case(
        output=request.submission.text,
        input=request.query,
        submission=request.submission,
        criterion=request.criterion,
        shown=show_request(request),
    )


def cases_of_batch(criterion: BaseCriterion, outputs: Sequence[Any], inputs: Any) -> list[Case]:
    if not _is_list(outputs) or not outputs:
        raise ArgumentError(f"outputs must be a non-empty list; got {short_repr(outputs)}")
    if inputs is None:
        inputs = [None] * len(outputs)
    if not _is_list(inputs):
        wanted = "a list with one input per output, or None"
        raise ArgumentError(f"inputs must be {wanted}; got {short_repr(inputs)}")
    if len(inputs) != len(outputs):
        raise ArgumentError(f"got {len(outputs)} outputs and {len(inputs)} inputs; pass one input per output")
    return [case_of(criterion, output, one) for output, one in zip(outputs, inputs, strict=True)]


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def _is_submission(output: Any) -> bool:
    """Return whether an output is text with thinking, or a conversation, rather than data to show."""
    if isinstance(output, Mapping):
        return "output" in output and set(output) <= {"thinking", "output"}
    if isinstance(output, list | tuple):
        turns = (isinstance(one, Mapping) and {"role", "content"} <= {*one} <= {*TURN_KEYS} for one in output)
        return bool(output) and all(turns)
    return isinstance(output, Submission)


def _request(case: Case, call: EvaluatorCall) -> JudgeRequest:
    reference = None if call.reference is None else variable_text(call.reference)
    if call.request is not None:
        return replace(call.request, reference_submission=reference)
    return JudgeRequest(
        criterion=case.criterion,
        submission=case.submission,
        query=None if case.input is None else variable_text(case.input),
        reference_submission=reference,
        guidelines=None if call.context is None else variable_text(call.context),
        shuffle=False,
        order=case.shown.names,
    )


def _wire_schema(criterion: BaseCriterion, cases: Sequence[Case], call: EvaluatorCall) -> ReplySchema:
    schema = cases[0].criterion.wire_schema
    if any(case.criterion.wire_schema != schema for case in cases):
        schema = criterion.wire_schema
    if call.request is None:
        schema = object_schema({k: v for k, v in schema["properties"].items() if k != "cannot_assess"})
    if not call.batch:
        return ReplySchema(name="evaluation", schema=schema, strict=criterion.strict)
    several = object_schema({"evaluations": {"type": "array", "items": schema}})
    return ReplySchema(name="evaluations", schema=several, strict=criterion.strict)


EvaluatorLike: TypeAlias = Any
"""A model name, an `LLMConfig`, an `LLMClient`, a `Judge`, an object with `forward(prompt)` or
`aforward(prompt)`, or a sync or async function of the prompt."""


def evaluator_of(value: EvaluatorLike) -> Evaluator:
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
    reads_prompt: ClassVar[bool] = True  # rather than building its own

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
    first, *others = (model_reply(exchange, answer, reply.shown) for answer in answers)
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
            async with aclosing(self):
                return await self.ask(question)

        return run_sync(ask_once())

    async def ask(self, question: CriticQuestion) -> Sequence[JudgeReply]:
        replies = (self._ask_one(request) for request in question.requests)
        outcomes = await asyncio.gather(*replies, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return [outcome for outcome in outcomes if isinstance(outcome, JudgeReply)]

    async def _ask_one(self, request: JudgeRequest) -> JudgeReply:
        reply = reply_of(await call_judge(self.judge.ask, request, self.judge.judge_id))
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


Evaluator: TypeAlias = _SourceEvaluator | _JudgeEvaluator
"""Returns one parsed reply per output, in order; the first one has the usage."""
