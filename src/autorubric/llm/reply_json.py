"""Extracts the JSON object or list from a model's reply, ignoring surrounding text, in linear time."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, NoReturn

from autorubric.errors import ReplyError
from autorubric.support.objects import Json

_DEEPEST: Final = 100
_STRING_OR_COMMA: Final = re.compile(r'"(?:[^"\\]|\\.|\\\Z)*+(?:"|\Z)|,(?=\s*[}\]])', re.DOTALL)
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_DECORATION: Final = "`*\"' \t\r\n"
_WORD: Final = re.compile(r"[A-Za-z_]{1,20}|[+-]?[0-9.]{1,20}(?:[eE][+-]?[0-9]{1,3})?")
_THINK_END: Final = re.compile(r"</think(?:ing)?>")


class _Wanted(NamedTuple):
    """What to look for in a reply: type, name, possible first characters, and whether drafts may differ."""

    kind: type
    name: str
    start: re.Pattern[str]
    may_differ: bool = True


_QUOTED_OBJECT: Final = _Wanted(dict, "object", re.compile(r'\{\s*(?:"|\})'))
_OBJECT: Final = _QUOTED_OBJECT._replace(may_differ=False)
# An object is skipped as a whole: a list inside it is not an answer.
_LIST: Final = _Wanted(
    list, "list", re.compile(r'\{\s*(?:"|\})|\[\s*(?:["\[\]{\-0-9]|true\b|false\b|null\b)')
)


_PROSE_KEYS: Final = frozenset(
    {"reason", "reasoning", "explanation", "rationale", "justification", "evidence", "summary", "thoughts"}
)


def parse_reply_json(text: str, *, may_differ: bool = False) -> Json:
    """Return the JSON object in a reply, which fences, prose and a `<think>` block may surround."""
    # If there are several complete objects, the last non-empty one is used, because models quote and draft
    # before they answer. Two objects with different values for the same key are an error, as are `NaN`,
    # infinities and repeated keys, because their meaning is ambiguous.
    return _parse(text, _QUOTED_OBJECT if may_differ else _OBJECT)


def parse_json_list(text: str) -> Json:
    """Return the JSON list in a reply, using the same rules as `parse_json`."""
    return _parse(text, _LIST)


def without_thinking(text: str, wanted: str = "answer") -> str:
    """Return a reply without its leading `<think>` block."""
    body = text.strip()
    if not body.startswith("<think"):
        return body
    ended = _THINK_END.search(body)
    if not ended:
        raise ReplyError(f"the reply ended within its reasoning; answer with the {wanted}", reply=text)
    return body[ended.end() :].strip()


def _parse(text: str, wanted: _Wanted) -> Json:
    body = without_thinking(text, f"JSON {wanted.name}")
    try:
        return _parse_body(body, wanted)
    except _Unreadable as error:
        # Some servers omit the tag that opens the block.
        ended = _THINK_END.search(body)
        if not ended:
            raise ReplyError(str(error), reply=text) from None
    try:
        return _parse_body(body[ended.end() :], wanted)
    except _Unreadable as error:
        raise ReplyError(str(error), reply=text) from None


def parse_reply(text: str) -> Json:
    """Return the JSON object in a reply, or the reply itself, undecorated, if it is one word or number."""
    try:
        return parse_reply_json(text)
    except ReplyError:
        # A number may begin with a point or a sign, so only decoration is removed.
        word = _THINK_END.split(text)[-1].strip().lstrip(_DECORATION).rstrip(_DECORATION + ".!")
        if not _WORD.fullmatch(word):
            raise
        return word


class _Unreadable(Exception):
    """Raised with the reason if a text contains no readable object."""


def _parse_body(text: str, wanted: _Wanted) -> Any:
    body = text.strip()
    if not body:
        raise _Unreadable(f"the reply is empty; answer with one JSON {wanted.name}")
    try:
        whole, end = _DECODER.raw_decode(body)
    except RecursionError as error:
        raise _explain(error, wanted) from None
    except ValueError:
        end = -1
    if end != len(body):
        return _find(body, wanted)
    if wanted.kind is dict and isinstance(whole, list) and len(whole) == 1:
        whole = whole[0]
    if not isinstance(whole, wanted.kind):
        raise _Unreadable(f"the reply is {_kind(whole)}; answer with one JSON {wanted.name}")
    return _clean(whole, body, wanted)


def _find(text: str, wanted: _Wanted) -> Any:
    found: list[Any] = []
    repaired = False
    start = wanted.start.search(text)
    while start:
        try:
            payload, end = _DECODER.raw_decode(text, start.start())
        except json.JSONDecodeError as error:
            if repaired:
                raise _explain(error, wanted) from None
            # Strings are recognised by their quotes, so the repair starts where JSON starts.
            text, repaired = text[start.start() :], True
            text = _STRING_OR_COMMA.sub(lambda match: "" if match[0] == "," else match[0], text)
            start = wanted.start.match(text)
            continue
        except (RecursionError, ValueError) as error:
            raise _explain(error, wanted) from None
        if isinstance(payload, wanted.kind):
            found.append(payload)
        start = wanted.start.search(text, end)
    if not found:
        raise _Unreadable(f"the reply has no JSON {wanted.name}; answer with one JSON {wanted.name}")
    answer = next((one for one in reversed(found) if one), found[-1])
    if not wanted.may_differ and any(_contradict(one, answer) for one in found):
        raise _Unreadable(
            f"the reply has several JSON {wanted.name}s that contradict each other; answer with one"
        )
    return _clean(answer, text, wanted)


def _contradict(one: Mapping[str, Json], other: Mapping[str, Json]) -> bool:
    """Return whether two objects have different values for the same key; explanations may differ."""
    shared = one.keys() & other.keys() - _PROSE_KEYS
    return any(not _agree(one[key], other[key]) for key in shared)


def _agree(one: Json, other: Json) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() - _PROSE_KEYS == other.keys() - _PROSE_KEYS and not _contradict(one, other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_agree, one, other))
    if isinstance(one, str) and isinstance(other, str):
        return one.strip().casefold() == other.strip().casefold()
    return type(one) is type(other) and bool(one == other)


def _clean(payload: Any, text: str, wanted: _Wanted) -> Any:
    """Return the payload without lone surrogates, which cannot be written to a file, and check its depth."""
    if text.count("{") + text.count("[") > _DEEPEST and _is_deep(payload):
        raise _explain(RecursionError(), wanted)
    if "\\u" not in text or not _SURROGATE.search(text):
        return payload
    return json.loads(json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace"))


def _is_deep(payload: Json) -> bool:
    layer = [payload]
    for _ in range(_DEEPEST):
        layer = [
            child
            for held in layer
            if isinstance(held, dict | list)
            for child in (held.values() if isinstance(held, dict) else held)
        ]
    return any(isinstance(held, dict | list) for held in layer)


def _explain(error: Exception, wanted: _Wanted) -> _Unreadable:
    if isinstance(error, RecursionError):
        return _Unreadable(
            f"the reply is nested over {_DEEPEST} levels deep; answer with a flat JSON {wanted.name}"
        )
    if isinstance(error, json.JSONDecodeError):
        return _Unreadable(
            f"the reply's JSON is broken or cut off: {error.msg} at line {error.lineno}, "
            f"column {error.colno}; answer with one complete JSON {wanted.name}"
        )
    return _Unreadable(f"the reply's JSON cannot be read: {error}; answer with one JSON {wanted.name}")


def _kind(value: Json) -> str:
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return {dict: "an object", str: "a text", bool: "a truth value", type(None): "null"}.get(
        type(value), "a number"
    )


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not allowed")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"the number {digits[:20]} is too large")
    return number


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    payload = dict(pairs)
    if len(payload) != len(pairs):
        repeated = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {repeated[:80]!r} appears twice")
    return payload


_DECODER: Final = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_unique, strict=False
)
