"""Extracts the JSON object or list from a model's reply, ignoring surrounding text, in linear time."""

from __future__ import annotations

import ast
import html
import json
import re
import unicodedata
import warnings
from bisect import bisect
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from autorubric.errors import ReplyError
from autorubric.support.chat_tokens import INVISIBLE, restore_brackets
from autorubric.support.json_text import EXPLANATIONS, LENIENT_DECODER, unique_keys, unwrapped
from autorubric.support.names import fold_name
from autorubric.support.objects import Json

_DEEPEST: Final = 100
_REPAIRED: Final = re.compile(
    r'"(?:[^"\\]|\\.|\\\Z)*+(?:"|\Z)|,(?=\s*[}\]])|\b(?:True|False|None)\b', re.DOTALL
)
_REPLACED: Final = {",": "", "True": "true", "False": "false", "None": "null"}
_LONE_BACKSLASH: Final = re.compile(r'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|(\')|)', re.DOTALL)
_NOT_COMPARED: Final = re.compile(rf"[\s\\\"'`\u201c-\u201f\u2018-\u201b{INVISIBLE}]+")
_ESCAPED: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|[bfnrt])|%([0-9a-fA-F]{2})")
_COMMA_AT_END: Final = re.compile(r",(?=[}\]])")
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_DECORATION: Final = "`*\"' \t\r\n"
_WORD: Final = re.compile(r"[A-Za-z_]{1,20}|[+-]?[0-9.]{1,20}(?:[eE][+-]?[0-9]{1,3})?")
_THOUGHTS: Final = (
    r"(?:[a-z0-9]{1,20}[:_.-]){0,3}(?:think|thinking|thoughts?|reasoning|rationale|reflection|analysis"
    r"|scratch_?pad|planning|deliberation|monologue|cot)(?:[:_.-][a-z0-9]{1,40}){0,3}"
)
_REASONING_END: Final = re.compile(
    rf"</{_THOUGHTS}\s{{0,9}}>|\[/{_THOUGHTS}\]|<[|｜]/{_THOUGHTS}[|｜]>"
    r"|◁/think▷|<unused95>|<\|inner_suffix\|>|<channel\|>"
    rf"|<[|｜]?{_THOUGHTS}(?<=[_:.-]end)[|｜]?>|<[|｜]?end[_▁](?:of[_▁])?{_THOUGHTS}[|｜]?>"
    r"|<\|channel\|>\s*(?:final|commentary\s+(?=to=|<\|constrain))[^<{\[]*"
    r"(?:<\|[a-z]+\|>[^<{\[]*){0,4}<\|message\|>"
    r"|<\|end\|>\s*<\|(?:start|begin)\|>\s*assistant[^<{\[]*<\|(?:message|content)\|>",
    re.IGNORECASE,
)
_REASONING_START: Final = re.compile(
    rf"\s*(?:<{_THOUGHTS}(?:\s[^<>]*)?(?<!/)>|\[{_THOUGHTS}\]"
    rf"|<[|｜](?:(?:begin|start)[_▁](?:of[_▁])?)?{_THOUGHTS}[|｜]>"
    r"|◁think▷|<unused94>|<\|inner_prefix\|>|<\|channel>"
    r"|(?:<\|start\|>\s*assistant\s*)?<\|channel\|>\s*(?:analysis|commentary))",
    re.IGNORECASE,
)
# Servers that drop special tokens leave the names of the channels.
_BARE_CHANNELS: Final = re.compile(r"\s*analysis(?=\S).*assistantfinal(?=\s*[{\[])", re.DOTALL)
_END_OF_TURN: Final = re.compile(r"<[|｜](?!message)[a-z_▁]+[|｜]>|</s>|<eos>|<end_of_turn>", re.IGNORECASE)
_TOKEN_AT_END: Final = re.compile(r"<[|｜][a-z_▁]+[|｜]>\s*\Z", re.IGNORECASE)
_FENCED: Final = re.compile(r"(`{3,}|~{3,})[ \t]*\w*[ \t]*\r?\n(.*?)(?:\r?\n[ \t]*\1[ \t]*)?\Z", re.DOTALL)
_LONGEST_LITERAL: Final = 1 << 16
_MOST_BROKEN: Final = 20
_MOST_OBJECTS: Final = 200  # that are looked for in a material
_ONLY_QUOTES: Final = "the reply only quotes JSON from the text; answer with one JSON {} alone"


class _Wanted(NamedTuple):
    """What to look for in a reply: type, name, first characters, whether drafts may differ, lists count."""

    kind: type
    name: str
    start: re.Pattern[str]
    may_differ: bool = True
    takes_list: bool = False


_QUOTED_OBJECT: Final = _Wanted(dict, "object", re.compile(r'\{\s*(?:"|\})'))
_OBJECT: Final = _QUOTED_OBJECT._replace(may_differ=False)
_OBJECT_OR_LIST: Final = _OBJECT._replace(takes_list=True)
# An object is skipped as a whole: a list inside it is not an answer.
_LIST: Final = _Wanted(
    list, "list", re.compile(r'\{\s*(?:"|\})|\[\s*(?:["\[\]{\-0-9]|true\b|false\b|null\b)')
)


class ParsedReply(NamedTuple):
    """The JSON in a reply, and the text after it."""

    payload: Json
    rest: str = ""


def parse_reply_json(text: str, *, may_differ: bool = False, material: str = "") -> Json:
    """Return the JSON object in a reply, which fences, prose and reasoning may surround.

    Args:
        text: The reply.
        may_differ: Whether the reply may contain several objects that differ, of which the last one counts.
        material: The text that the model was asked about. An object in it is a quotation, not an answer, if
            the reply contains anything else.
    """
    # If there are several complete objects, the last non-empty one is used, because models quote and draft
    # before they answer. Two objects with different values for the same key are an error, as are `NaN`,
    # infinities and repeated keys, because their meaning is ambiguous.
    return _parse(text, _QUOTED_OBJECT if may_differ else _OBJECT, material).payload


def parse_json_list(text: str) -> Json:
    """Return the JSON list in a reply, using the same rules as `parse_reply_json`."""
    return _parse(text, _LIST).payload


def without_reasoning(text: str, wanted: str = "answer", material: str = "") -> str:
    """Return the part of a reply after the last end mark of reasoning, without tokens that end the turn.

    Marks in the strings of JSON objects are text, and so are marks that the reply quotes from the material.
    """
    body = _without_end_tokens(text.strip().lstrip("\ufeff"))
    if bare := _BARE_CHANNELS.match(body):
        return body[bare.end() :].strip()
    # Most replies contain no mark, and a search for all of them is slow.
    marked = "<" in body or "[/" in body or "◁" in body
    if marked and (marks := list(_REASONING_END.finditer(body))):
        body = body[_end_of_reasoning(body, marks, material) :].strip()
    if start := _REASONING_START.match(body):
        match _objects_in(body)[0]:
            case [(at, end, payload)] if end == len(body) and _TOKEN_AT_END.search(body[start.end() : at]):
                # The only object, directly after an unknown token, is no draft.
                if not _occurs(body[at:], payload, _comparable(material)):
                    return body[at:]
        raise ReplyError(f"the reply ended within its reasoning; answer with the {wanted}", reply=text)
    return body


def _without_end_tokens(body: str) -> str:
    end = len(body)
    while end and body[end - 1] == ">":
        start = body.rfind("<", 0, end)
        if not _END_OF_TURN.fullmatch(body, start, end) or _REASONING_END.fullmatch(body, start, end):
            break
        end = start
        while end and body[end - 1].isspace():
            end -= 1
    return body[:end]


def _end_of_reasoning(body: str, marks: list[re.Match[str]], material: str) -> int:
    """Return the end of the last mark that is not a part of an object or a quotation; 0 if there is none."""
    objects, read = _objects_in(body)
    # A repair neither adds nor removes marks.
    pairs = list(zip(reversed(marks), reversed(list(_REASONING_END.finditer(read))), strict=False))
    known = _comparable(material)
    last = (mark.end() for mark, seen in pairs[:_MOST_OBJECTS] if not _is_text(read, seen, objects, known))
    end = next(last, 0)
    # An object with an error in it is not recognised; what precedes its end is no reasoning.
    starts_whole = end and unfenced(body)[:1] == "{" and not _QUOTED_OBJECT.start.search(body, end)
    return 0 if starts_whole else end


def _objects_in(body: str) -> tuple[list[tuple[int, int, Json]], str]:
    """Return the place and value of each object, and the text, repaired from the first error on."""
    objects, at, broken = list[tuple[int, int, Json]](), 0, 0
    while broken < _MOST_BROKEN and (start := _QUOTED_OBJECT.start.search(body, at)):
        at = start.start()
        try:
            payload, end = LENIENT_DECODER.raw_decode(body, at)
        except (ValueError, RecursionError):
            body, at = (body, start.end()) if broken else (body[:at] + _repair(body[at:]), at)
            broken += 1
        else:
            objects.append((at, end, payload))
            at = end
    return objects, body


def _is_text(body: str, mark: re.Match[str], objects: list[tuple[int, int, Json]], known: str) -> bool:
    """Return whether a mark is in an object or, with the object or all after it, in a comparable text."""
    place = bisect(objects, mark.start(), key=lambda one: one[0])
    if place and mark.start() < objects[place - 1][1]:
        return True
    if not known or _comparable(mark[0]) not in known:
        return False
    for start, end, payload in objects[place : place + 1]:
        return _occurs(body[start:end], payload, known)
    return _comparable(body[mark.start() :]) in known or not re.search(r"\w", body[mark.end() :])


def unfenced(body: str) -> str:
    """Return the content of a reply that is one fenced block, whose end may be missing."""
    return fenced[2].strip() if (fenced := _FENCED.match(body)) else body


def _parse(text: str, wanted: _Wanted, material: str = "") -> ParsedReply:
    body = without_reasoning(text, f"JSON {wanted.name}", material)
    try:
        return _parse_body(body, wanted, material)
    except (_Unreadable, ValueError, RecursionError) as error:
        raise ReplyError(_explain(error, wanted), reply=text) from None


def parse_reply(
    text: str, *, material: Callable[[], str] = str, bare: bool = False, listed: bool = False
) -> ParsedReply:
    """Return the JSON object in a reply, and what follows it.

    Args:
        text: The reply.
        material: Returns the text of `parse_reply_json`; not called for a reply that is one object.
        bare: Whether a reply of one word or number, without decoration, is an answer too.
        listed: Whether a reply that is a list of several elements is an answer too.
    """
    if text[:1] == "{":
        try:
            payload, end = LENIENT_DECODER.raw_decode(text)
            if end == len(text):
                return ParsedReply(_clean(payload, text, _OBJECT))
        except (ValueError, RecursionError, _Unreadable):
            pass
    try:
        return _parse(text, _OBJECT_OR_LIST if listed else _OBJECT, material())
    except ReplyError:
        word = bare_word(without_reasoning(text, material=material())) if bare else None
        if word is None:
            raise
        return ParsedReply(word)


def bare_word(text: str) -> str | None:
    """Return the word or number that a text consists of, without decoration; None if there is more."""
    # A number may begin with a point or a sign, so only decoration is removed.
    word = text.strip().lstrip(_DECORATION).rstrip(_DECORATION + ".!")
    return word if _WORD.fullmatch(word) else None


class _Unreadable(Exception):
    """Raised with the reason if a text contains no readable object."""


def _parse_body(text: str, wanted: _Wanted, material: str) -> ParsedReply:
    body = text.strip()
    if not body:
        raise _Unreadable(f"the reply is empty; answer with one JSON {wanted.name}")
    try:
        whole = _whole(body)
    except ValueError:
        return _find(body, wanted, material)
    if wanted.kind is dict and isinstance(whole, list) and len(whole) == 1:
        whole = whole[0]
    if not isinstance(whole, wanted.kind) and not (wanted.takes_list and isinstance(whole, list)):
        raise _Unreadable(f"the reply is {_kind(whole)}; answer with one JSON {wanted.name}")
    return ParsedReply(_clean(whole, body, wanted))


def _whole(body: str) -> Any:
    """Return the value that a body, or its only fenced block, consists of; raises `ValueError` otherwise."""
    with suppress(ValueError):
        return _decode_whole(body)
    block = unfenced(body)
    if block is not body:
        with suppress(ValueError):
            return _decode_whole(block)
    if block[:1] in ("{", "[", '"'):
        with suppress(ValueError):
            return _decode_whole(_repair(block))
    return _python_literal(block)


def _decode_whole(text: str) -> Any:
    value = LENIENT_DECODER.decode(text)
    # A JSON text that contains a JSON text has one reading.
    if isinstance(value, str) and (inner := unfenced(value.strip()))[:1] in ("{", "["):
        with suppress(ValueError):
            return LENIENT_DECODER.decode(inner)
        return LENIENT_DECODER.decode(_repair(inner))
    return value


def _repair(text: str) -> str:
    """Return JSON without trailing commas, lone backslashes in strings, and Python's constants."""

    def repair(match: re.Match[str]) -> str:
        token = match[0]
        if "\\" not in token:
            return _REPLACED.get(token, token)
        return _LONE_BACKSLASH.sub(lambda lone: lone[0] if lone[1] else "'" if lone[2] else r"\\", token)

    return _REPAIRED.sub(repair, text)


def _python_literal(text: str) -> Any:
    """Return a dict or list in Python's notation, which is parsed and never executed."""
    if text[:1] not in ("{", "[") or "'" not in text or len(text) > _LONGEST_LITERAL:
        raise ValueError("not a literal")
    try:
        with warnings.catch_warnings(action="ignore"):  # of invalid escapes
            tree = ast.parse(text, mode="eval")
        for node in ast.walk(tree):
            if isinstance(node, ast.Dict):
                unique_keys([(ast.unparse(key), None) for key in node.keys if key is not None])
        written = json.dumps(ast.literal_eval(tree), allow_nan=False)
    except (SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(str(error)) from None
    return LENIENT_DECODER.decode(written)


def _literal_in_prose(text: str, wanted: _Wanted, material: str) -> ParsedReply:
    """Return the dict in Python's notation that prose surrounds; raises `ValueError` if there is none."""
    start, end = text.find("{"), text.rfind("}") + 1
    literal = text[start:end]
    payload = _python_literal(literal)
    if not isinstance(payload, dict):
        raise ValueError("not a dict")
    if material and _occurs(literal, payload, _comparable(material)):
        raise _Unreadable(_ONLY_QUOTES.format(wanted.name))
    return ParsedReply(_clean(payload, literal, wanted), text[end:])


def _find(text: str, wanted: _Wanted, material: str) -> ParsedReply:
    objects: list[Any] = []
    repaired, end, known = False, 0, ""
    quotations: dict[str, bool] = {}
    start = wanted.start.search(text)
    while start:
        try:
            payload, end = LENIENT_DECODER.raw_decode(text, start.start())
        except json.JSONDecodeError:
            if repaired:
                raise
            # Strings are recognised by their quotes, so the repair starts where JSON starts.
            text, repaired = _repair(text[start.start() :]), True
            start = wanted.start.match(text)
            continue
        if isinstance(payload, wanted.kind):
            known = known or _comparable(material)
            written = text[start.start() : end]
            if payload and known and written not in quotations:
                quotations[written] = _occurs(written, payload, known)
                if len(quotations) > _MOST_OBJECTS:
                    raise _Unreadable(f"the reply has over {_MOST_OBJECTS} objects; answer with one")
            if not quotations.get(written):
                objects.append(payload)
        start = wanted.start.search(text, end)
    if not objects:
        if any(quotations.values()):
            raise _Unreadable(_ONLY_QUOTES.format(wanted.name))
        if wanted.kind is dict and "'" in text:
            with suppress(ValueError):
                return _literal_in_prose(text, wanted, material)
        raise _Unreadable(f"the reply has no JSON {wanted.name}; answer with one JSON {wanted.name}")
    answer = next((one for one in reversed(objects) if one), objects[-1])
    if not wanted.may_differ and any(
        _contradict(one, answer) or _contradict(*([held, *unwrapped(held)][-1] for held in (one, answer)))
        for one in objects
    ):
        raise _Unreadable(
            f"the reply has several JSON {wanted.name}s that contradict each other; answer with one"
        )
    return ParsedReply(_clean(answer, text, wanted), text[end:])


def _comparable(text: str) -> str:
    """Return a text in the form in which quoted JSON can be found, whatever its notation.

    It has no white space, quotes, escapes, entities, trailing commas or invisible characters; folded case.
    """
    text = html.unescape(html.unescape(text))
    text = _ESCAPED.sub(lambda match: chr(int(match[1] or match[2] or match[3] or "20", 16)), text)
    shown = restore_brackets(_NOT_COMPARED.sub("", unicodedata.normalize("NFKC", text)))
    return _COMMA_AT_END.sub("", unicodedata.normalize("NFC", shown).casefold())


def _occurs(written: str, payload: Json, known: str) -> bool:
    """Return whether JSON occurs in a comparable text, as it is written or in another notation."""
    values = [payload, *unwrapped(payload)]
    with suppress(RecursionError):  # such a payload is refused anyway
        forms = [json.dumps(value, ensure_ascii=ascii) for value in values for ascii in (False, True)]
        return any(_comparable(form) in known for form in (written, *forms, *map(repr, values)))
    return False


def check_quotation(payload: Json, material: str) -> None:
    """Raise `ReplyError` if JSON that a reply contains with other values occurs in the material."""
    if _occurs(json.dumps(payload), payload, _comparable(material)):
        raise ReplyError(_ONLY_QUOTES.format("object"))


def _contradict(one: Mapping[str, Json], other: Mapping[str, Json]) -> bool:
    """Return whether two objects have different values for the same key; explanations may differ."""
    first, second = _folded(one), _folded(other)
    return any(not _agree(first[key], second[key]) for key in first.keys() & second.keys())


def _folded(payload: Mapping[str, Json]) -> dict[str, Json]:
    """Return an object by folded key, without explanations."""
    folded = {fold_name(key): value for key, value in payload.items()}
    return {key: value for key, value in folded.items() if key not in EXPLANATIONS}


def _agree(one: Json, other: Json) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return _folded(one).keys() == _folded(other).keys() and not _contradict(one, other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_agree, one, other))
    if isinstance(one, str) and isinstance(other, str):
        return fold_name(one) == fold_name(other)
    return type(one) is type(other) and bool(one == other)


def _clean(payload: Any, text: str, wanted: _Wanted) -> Any:
    """Return the payload without lone surrogates, which cannot be written to a file, and check its depth."""
    if text.count("{") + text.count("[") > _DEEPEST and _is_deep(payload):
        raise RecursionError
    if "\\u" not in text or not _SURROGATE.search(text):
        return payload
    return json.loads(json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace"))


def _is_deep(payload: Json) -> bool:
    layer = [payload]
    for _ in range(_DEEPEST):
        nested = [held for held in layer if isinstance(held, dict | list)]
        layer = [part for held in nested for part in (held.values() if isinstance(held, dict) else held)]
    return any(isinstance(held, dict | list) for held in layer)


def _explain(error: Exception, wanted: _Wanted) -> str:
    if isinstance(error, _Unreadable):
        return str(error)
    if isinstance(error, RecursionError):
        return f"the reply is nested over {_DEEPEST} levels deep; answer with a flat JSON {wanted.name}"
    if isinstance(error, json.JSONDecodeError):
        return (
            f"the reply's JSON is broken or cut off: {error.msg} at line {error.lineno}, "
            f"column {error.colno}; answer with one complete JSON {wanted.name}"
        )
    return f"the reply's JSON cannot be read: {error}; answer with one JSON {wanted.name}"


def _kind(value: Json) -> str:
    if isinstance(value, list):
        return f"a list of {len(value)}"
    kinds = {dict: "an object", str: "a text", bool: "a truth value", type(None): "null"}
    return kinds.get(type(value), "a number")
