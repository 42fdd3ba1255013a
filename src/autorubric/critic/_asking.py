"""Builds the question to an evaluator from a caller's or a panel's arguments."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from autorubric._files import shortened
from autorubric.criteria import BaseCriterion, Shown, object_schema
from autorubric.critic._prompt import COMPOSED, Call, Case, Prompt, variables
from autorubric.critic._reading import read_batch, read_single
from autorubric.critic._template import Template, text_of
from autorubric.errors import ArgumentError
from autorubric.judges import JudgeRequest, is_blank
from autorubric.llm import ReplySchema
from autorubric.values import Answer, Json, Submission


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """One question to an evaluator.

    Attributes:
        prompt: The complete prompt.
        prompt_of: Builds the prompt for the submissions, which may have been shortened to fit the model.
        schema: The JSON schema of a model's reply.
        read: Converts the reply's data to one answer per output; raises `ReplyError` if it is invalid.
        requests: The same question as one `JudgeRequest` per output, for judges.
        compared: Whether the prompt shows candidates to compare rather than a single text.
    """

    prompt: Prompt
    prompt_of: Callable[[tuple[Submission, ...]], Prompt]
    schema: ReplySchema
    read: Callable[[Json], tuple[Answer, ...]]
    requests: tuple[JudgeRequest, ...]
    compared: bool

    @property
    def submissions(self) -> tuple[Submission, ...]:
        """The submissions to judge, one per output."""
        return tuple(request.submission for request in self.requests)


def asking_of(criterion: BaseCriterion, template: Template, cases: Sequence[Case], call: Call) -> Asking:
    """Return the question for one call of a critic.

    Raises:
        ArgumentError: If the template has an unknown variable, a variable cannot be formatted, or the
            criterion needs a reference and there is none.
    """
    if is_blank(call.reference):
        call = replace(call, reference=None)
        if criterion.needs_reference:
            raise ArgumentError(f"{criterion.name or 'the criterion'} requires a reference; pass reference=…")
    schema = criterion.batch_evaluation_schema if call.batch else criterion.evaluation_schema
    next_to_input = not {"input", "inputs"} & set(template.names)

    def prompt_of(submissions: tuple[Submission, ...]) -> Prompt:
        left = [case.cut_to(submission) for case, submission in zip(cases, submissions, strict=True)]
        content = template.fill(variables(left, call, next_to_input=next_to_input), composed=COMPOSED)
        return Prompt(role="user", content=content, format_override=schema)

    return Asking(
        prompt=prompt_of(tuple(case.submission for case in cases)),
        prompt_of=prompt_of,
        schema=_wire_schema(criterion, cases, batch=call.batch, may_abstain=call.request is not None),
        read=partial(read_batch, cases) if call.batch else partial(read_single, cases[0]),
        requests=tuple(_request(case, call) for case in cases),
        compared=bool(cases[0].shown.names),
    )


def case_of(criterion: BaseCriterion, output: Any, given: Any) -> Case:
    """Return the case for a caller's output.

    Raises:
        ArgumentError: If the output is not a submission for this criterion.
    """
    compares = criterion.level == "ranking"
    if compares or _is_submission(output):
        submission = _parsed("" if output is None else output)
        value = submission.text
    else:
        submission, value = Submission(text=text_of(output)), output
    facing, shown = criterion, Shown()
    if compares:
        facing = criterion.facing(submission)
        if (misfit := facing.misfit(submission)) is not None:
            raise ArgumentError(misfit)
        shown = facing.show(submission, None)
    return Case(output=value, input=given, submission=submission, criterion=facing, shown=shown)


def case_in_panel(request: JudgeRequest) -> Case:
    """Return the case for a panel's request."""
    rng = random.Random(request.seed) if request.shuffle else None
    shown = request.criterion.show(request.submission, rng)
    return Case(
        output=request.submission.text,
        input=request.query,
        submission=request.submission,
        criterion=request.criterion,
        shown=replace(shown, names=request.order) if request.order else shown,
    )


def cases_of_batch(criterion: BaseCriterion, outputs: Sequence[Any], inputs: Any) -> list[Case]:
    """Return the cases for a batch of outputs.

    Raises:
        ArgumentError: If outputs or inputs are not lists or differ in length, or an output is not a
            submission for this criterion.
    """
    if not _is_list(outputs) or not outputs:
        raise ArgumentError(f"outputs must be a non-empty list; got {shortened(outputs)}")
    if inputs is None:
        inputs = [None] * len(outputs)
    if not _is_list(inputs):
        raise ArgumentError(
            f"inputs must be a list with one input per output, or None; got {shortened(inputs)}"
        )
    if len(inputs) != len(outputs):
        raise ArgumentError(f"got {len(outputs)} outputs and {len(inputs)} inputs; pass one input per output")
    return [case_of(criterion, output, given) for output, given in zip(outputs, inputs, strict=True)]


def _is_list(given: Any) -> bool:
    return isinstance(given, Sequence) and not isinstance(given, str | bytes | bytearray)


def _is_submission(output: Any) -> bool:
    """Return whether an output is text with thinking, or a conversation, rather than data to show."""
    if isinstance(output, Mapping):
        return "output" in output and set(output) <= {"thinking", "output"}
    if isinstance(output, list | tuple):
        turns = (isinstance(turn, Mapping) and set(turn) == {"role", "content"} for turn in output)
        return bool(output) and all(turns)
    return isinstance(output, Submission)


def _parsed(output: Any) -> Submission:
    try:
        return Submission.parse(output)
    except ArgumentError as error:
        raise ArgumentError(f"output: {error}") from None


def _request(case: Case, call: Call) -> JudgeRequest:
    reference = None if call.reference is None else text_of(call.reference)
    if call.request is not None:
        return replace(call.request, reference_submission=reference)
    return JudgeRequest(
        criterion=case.criterion,
        submission=case.submission,
        query=None if case.input is None else text_of(case.input),
        reference_submission=reference,
        guidelines=None if call.context is None else text_of(call.context),
        shuffle=False,
        order=case.shown.names,
    )


def _wire_schema(
    criterion: BaseCriterion, cases: Sequence[Case], *, batch: bool, may_abstain: bool
) -> ReplySchema:
    schema = cases[0].criterion.wire_schema
    if any(case.criterion.wire_schema != schema for case in cases):
        schema = criterion.wire_schema
    if not may_abstain:
        fields = {k: v for k, v in schema["properties"].items() if k != "cannot_assess"}
        schema = object_schema(fields)
    if not batch:
        return ReplySchema(name="evaluation", schema=schema, strict=criterion.strict)
    several = object_schema({"evaluations": {"type": "array", "items": schema}})
    return ReplySchema(name="evaluations", schema=several, strict=criterion.strict)
