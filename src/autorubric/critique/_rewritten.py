"""Parsing of rewritten outputs, which must be of the same kind as the draft's output, and their check."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

from autorubric._files import parse_structured, shortened
from autorubric.critique._evidence import data_of
from autorubric.critique._prompts import json_kind
from autorubric.critique._schema import SchemaFaultError
from autorubric.errors import ArgumentError, BudgetError, FileError, ReplyError
from autorubric.llm import parse_json, parse_json_list, without_thinking
from autorubric.values import Json

Validate = Callable[[Json], Json]

_LONGEST_FAULT = 1000


class Rewritten(NamedTuple):
    """A rewritten output and the result of an automatic check; None if there was no check."""

    output: Json
    contract: Json


def read_rewritten(text: str, before: Json, validate: Validate | None) -> Rewritten:
    """Parse and check the rewritten output in a reply.

    Args:
        text: The unparsed reply.
        before: The output of the draft. The result is of the same kind: data, JSON text or other text.
        validate: A function that checks the output and returns its contract; None to check that no top-level
            key of the draft's output is lost.

    Raises:
        ReplyError: If the reply does not contain such an output or the check rejects it.
        ArgumentError: If the check returns a value that is not JSON.
        BudgetError: If the check sends requests that the budget does not allow.
    """
    output = _read(text, before)
    if validate is None:
        _check_keys(output, before)
        return Rewritten(output, None)
    try:
        contract = validate(output)
    except BudgetError:
        raise
    # The function is user code: any other exception means that the output is not acceptable.
    except Exception as error:
        told = f"{type(error).__name__}: {error}"[:_LONGEST_FAULT]
        raise SchemaFaultError(
            f"the rewritten output was refused by its check: {told}", reply=text
        ) from error
    try:
        json.dumps(contract, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise ArgumentError(
            "validate must return JSON data or None, and raise an exception if the output is not acceptable; "
            f"it returned {shortened(contract)}"
        ) from None
    return Rewritten(output, contract)


def canonical(output: Json) -> str:
    """Return a canonical form of an output that does not depend on whitespace or the order of keys."""
    if json_kind(output) is None:
        return "text:" + " ".join(str(output).split())
    return "json:" + json.dumps(data_of(output), sort_keys=True, ensure_ascii=True)


def _read(text: str, before: Json) -> Json:
    kind = json_kind(before)
    body = without_thinking(text, "rewritten output")
    if not body:
        raise ReplyError("the rewritten output is empty; give the whole of it", reply=text)
    if kind is None:
        return body
    if kind is dict:
        data = parse_json(text, may_differ=True)
    elif kind is list:
        data = parse_json_list(text)
    else:
        data = _scalar(body)
        if json_kind(data) is not kind:
            asked = "true or false" if kind is bool else "a number"
            raise ReplyError(f"the reply is {shortened(body)}; answer with {asked} alone", reply=text)
    return json.dumps(data, ensure_ascii=False) if isinstance(before, str) else data


def _scalar(text: str) -> Json:
    try:
        return parse_structured(text, "json").data
    except FileError:
        return None


def _check_keys(output: Json, before: Json) -> None:
    old, new = data_of(before), data_of(output)
    if isinstance(old, dict) and isinstance(new, dict) and (lost := [key for key in old if key not in new]):
        named = ", ".join(repr(key) for key in lost[:10])
        raise SchemaFaultError(
            f"the rewritten output lacks {named}; keep every key at the top of the output", reply=None
        )
