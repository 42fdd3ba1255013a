"""Converts the results of evaluators to answers, and answers to evaluations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from autorubric._files import shortened
from autorubric.criteria import BaseCriterion, TextField
from autorubric.critic._prompt import Case
from autorubric.errors import ReplyError
from autorubric.llm import parse_json
from autorubric.values import Answer, Json


def payload_of(given: Any, schema: type[BaseModel]) -> Json:
    """Return an evaluator's result as JSON data.

    Raises:
        ReplyError: If the result is not JSON text, data, an evaluation, or an object whose `.text` is JSON.
    """
    if isinstance(given, schema):
        return given.model_dump()
    if isinstance(given, str):
        return parse_json(given)
    if isinstance(given, Mapping | list):
        return given
    text = getattr(given, "text", None)
    if isinstance(text, str):
        return parse_json(text)
    if isinstance(given, BaseModel):
        return given.model_dump()
    raise ReplyError(
        f"the evaluator returned {shortened(given)}; expected JSON text, a dict, an instance of "
        f"{schema.__name__}, or an object whose .text is JSON text"
    )


def read_single(case: Case, payload: Json) -> tuple[Answer, ...]:
    """Return the answer to a single output.

    Raises:
        ReplyError: If the payload is not an evaluation.
    """
    if not isinstance(payload, Mapping):
        raise ReplyError(f"{shortened(payload)} is not an evaluation; return one object")
    return (case.criterion.read(payload, case.shown),)


def read_batch(cases: Sequence[Case], payload: Json) -> tuple[Answer, ...]:
    """Return the answers to several outputs, in order.

    Raises:
        ReplyError: If there is not one evaluation per output, or some cannot be read; all errors are listed.
    """
    evaluations = payload.get("evaluations") if isinstance(payload, Mapping) else payload
    if not isinstance(evaluations, list):
        raise ReplyError('the reply is not an object with a list "evaluations"')
    if len(evaluations) != len(cases):
        raise ReplyError(
            f"there are {len(cases)} outputs and {len(evaluations)} evaluations; return one per output, "
            "in the same order"
        )
    answers: list[Answer] = []
    faults = []
    for number, (case, evaluation) in enumerate(zip(cases, evaluations, strict=True), 1):
        try:
            answers += read_single(case, evaluation)
        except ReplyError as error:
            faults.append(f"evaluation {number}: {error}")
    if faults:
        raise ReplyError("; ".join(faults))
    return tuple(answers)


def evaluation_of(criterion: BaseCriterion, answer: Answer) -> BaseModel:
    """Return an answer as an evaluation, an instance of the criterion's schema.

    Raises:
        ReplyError: If the evaluator abstained, which the schema cannot express, or the fields are invalid.
    """
    fields = answer.evaluation
    if fields is None:
        if answer.code is None:
            raise ReplyError(
                f"{criterion.name or 'criterion'}: the evaluator reports that it cannot judge: "
                f"{answer.reason or 'no reason given'}"
            )
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
    return (
        {**read.evaluation, **dict.fromkeys(texts[:1], answer.reason)} if answer.reason else read.evaluation
    )
