"""Conversations in the chat format: turns with tool calls and tool results, and their text for judges."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from autorubric.errors import ArgumentError
from autorubric.support.json_text import parse_json
from autorubric.support.objects import Json
from autorubric.support.reading_errors import SyntaxFault, short_repr

Omitted: TypeAlias = Literal["start", "middle", "end"]
"""Part of a text that is omitted if the text is too long for a model."""

_ROLE: Final = re.compile(r"[A-Za-z][\w-]*")
# Everything that may be shown as the start of a new line, with the line break of Windows as one.
_LINE_BREAK: Final = re.compile("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_KEYS: Final = ("role", "content", "name", "tool_calls", "tool_call_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call of a tool in a turn of a conversation.

    Attributes:
        name: Name of the tool.
        id: Id of the call, to which the tool's result refers; None if it has none.
        text: The arguments as they were written, usually a JSON object.
    """

    name: str
    id: str | None = None
    text: str = "{}"

    @property
    def arguments(self) -> Json:
        """The arguments as a new copy of the parsed JSON; the text itself if it is not valid JSON."""
        try:
            return parse_json(self.text)
        except (SyntaxFault, RecursionError):
            return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message of a conversation.

    Attributes:
        role: Role of the author: `system`, `user`, `assistant`, `tool` or another single word.
        text: The text of the content; None if the turn has no content.
        name: Name of the author or, for a tool's result, of the tool; None if it has none.
        tool_calls: The calls of tools, in order.
        tool_call_id: Id of the call of which the content is the result; None if it is not a result.
    """

    role: str
    text: str | None = None
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


def is_turn(value: Any) -> bool:
    """Return whether a value looks like a message in the chat format, rather than like other data."""
    if not isinstance(value, Mapping) or not {"role"} < set(value) <= {*_KEYS}:
        return False
    return "content" in value or "tool_calls" in value


def read_turns(messages: Sequence[Any]) -> tuple[Turn, ...]:
    """Return the messages of a conversation as turns; `ArgumentError` if one is not in the chat format."""
    if not messages:
        raise ArgumentError("to_grade is an empty list; a conversation needs at least one turn")
    return tuple(_read_turn(message, f"to_grade[{place}]") for place, message in enumerate(messages))


def _read_turn(message: Any, at: str) -> Turn:
    if not isinstance(message, Mapping) or "role" not in message:
        raise ArgumentError(f"{at} must be a mapping with 'role' and 'content'; got {short_repr(message)}")
    # Clients write out every field of a message, such as `"refusal": None` and `"annotations": []`.
    given = {key: value for key, value in message.items() if key in _KEYS or value not in (None, [], {})}
    if unknown := [key for key in given if key not in _KEYS]:
        raise ArgumentError(f"{at} has the keys {unknown!r}; allowed: {', '.join(map(repr, _KEYS))}")
    role, calls = given["role"], _read_calls(given.get("tool_calls"), f"{at}.tool_calls")
    if not isinstance(role, str) or not _ROLE.fullmatch(role):
        raise ArgumentError(f"{at}: a role must be one word, such as 'user'; got {short_repr(role)}")
    if "content" not in given and not calls:
        raise ArgumentError(f"{at} must have 'content' or 'tool_calls'; got {short_repr(message)}")
    call_id = _read_name(given, "tool_call_id", at)
    if role == "tool" and calls:
        raise ArgumentError(f"{at}: a tool's result has no tool_calls; they belong to the assistant's turn")
    if role != "tool" and call_id is not None:
        raise ArgumentError(f"{at}: only a turn with the role 'tool' has a tool_call_id; got role {role!r}")
    return Turn(
        role=role,
        text=_read_content(given.get("content"), f"{at}.content"),
        name=_read_name(given, "name", at),
        tool_calls=calls,
        tool_call_id=call_id,
    )


def _read_content(content: Any, at: str) -> str | None:
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, Sequence) or isinstance(content, bytes):
        raise ArgumentError(f"{at} must be a string, None or a list of parts; got {short_repr(content)}")
    texts = []
    for place, part in enumerate(content):
        text = part.get("text") if isinstance(part, Mapping) and part.get("type") == "text" else None
        if not isinstance(text, str):
            raise ArgumentError(
                f"{at}[{place}] must be {{'type': 'text', 'text': a string}}; got {short_repr(part)}"
            )
        texts.append(text)
    return "\n".join(texts)


def _read_calls(calls: Any, at: str) -> tuple[ToolCall, ...]:
    if calls is None:
        return ()
    if not isinstance(calls, Sequence) or isinstance(calls, str | bytes):
        raise ArgumentError(f"{at} must be a list of calls; got {short_repr(calls)}")
    return tuple(_read_call(call, f"{at}[{place}]") for place, call in enumerate(calls))


def _read_call(call: Any, at: str) -> ToolCall:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or call.get("type", "function") != "function":
        form = "{'id', 'type': 'function', 'function': {'name', 'arguments'}}"
        raise ArgumentError(f"{at} must be {form}; got {short_repr(call)}")
    name = _read_name(function, "name", f"{at}.function")
    if name is None:
        raise ArgumentError(f"{at}.function must have a 'name'; got {short_repr(function)}")
    arguments = function.get("arguments")
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, str | Mapping):
        raise ArgumentError(
            f"{at}.function.arguments must be a JSON string or an object; got {short_repr(arguments)}"
        )
    try:
        text = arguments if isinstance(arguments, str) else json.dumps(dict(arguments), ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(f"{at}.function.arguments cannot be written as JSON: {error}") from None
    return ToolCall(name=name, id=_read_name(call, "id", at), text=text)


def _read_name(given: Mapping[Any, Any], key: str, at: str) -> str | None:
    name = given.get(key)
    if name is None or (isinstance(name, str) and name):
        return name
    raise ArgumentError(f"{at}.{key} must be a string that is not empty; got {short_repr(name)}")


def conversation_text(turns: Sequence[Turn]) -> str:
    """Return the text of a conversation, in which only the heads of turns and calls are not indented."""
    blocks = []
    for turn in turns:
        head = turn.role if turn.name is None else f"{turn.role} {_quote(turn.name)}"
        if turn.tool_call_id is not None:
            head += f", result of call {_quote(turn.tool_call_id)}"
        if turn.text or (turn.text is not None and not turn.tool_calls):
            blocks.append(f"{head}:\n{_indent(turn.text)}")
        elif not turn.tool_calls:
            blocks.append(f"{head}: (no content)")
        for call in turn.tool_calls:
            number = "" if call.id is None else f", call {_quote(call.id)}"
            blocks.append(f"{head} calls tool {_quote(call.name)}{number}:\n{_indent(call.text)}")
    return "\n".join(blocks)


class Shortened(NamedTuple):
    """A shortened text, with the description of the part that is left."""

    text: str
    shown: str


def shorten_text(text: str, most: int, omitted: Omitted) -> Shortened:
    """Return `most` characters of a text, with a mark in place of the others."""
    head = {"start": 0, "middle": most // 2, "end": most}[omitted]
    tail = len(text) - (most - head)
    before, after = f"{text[:head]}\n[…]" if head else "[…]", f"\n{text[tail:]}" if tail < len(text) else ""
    return Shortened(before + after, f"characters {_spans((1, head), (tail + 1, len(text)))} of {len(text)}")


def shorten_turns(turns: Sequence[Turn], most: int, omitted: Omitted) -> Shortened:
    """Return the text of the turns that fit about `most` characters, with a mark in place of the others.

    A turn that takes more than half of them is shortened within its content.
    """
    count = len(turns)
    long = {place for place, size in enumerate(_sizes(turns)) if size > most // 2}
    turns = [_shorten_turn(one, most // 3, omitted) if at in long else one for at, one in enumerate(turns)]
    sizes = _sizes(turns)
    head = 0 if omitted == "start" else max(1, _fitting(sizes, most // 2 if omitted == "middle" else most))
    room = most - sum(sizes[:head])
    tail = (
        0
        if omitted == "end"
        else max(int(omitted == "start"), _fitting(sizes[: max(head - 1, 0) : -1], room))
    )
    stop = count - tail
    parts = conversation_text(turns[:head]), _mark(head, stop, count), conversation_text(turns[stop:])
    shown = f"turns {_spans((1, head), (stop + 1, count))} of {count}"
    if in_part := sorted(place + 1 for place in long if place < head or place >= stop):
        shown += f" ({_spans(*((place, place) for place in in_part))} in part)"
    return Shortened("\n".join(filter(None, parts)), shown)


def _sizes(turns: Sequence[Turn]) -> list[int]:
    return [len(conversation_text([turn])) + 1 for turn in turns]


def _fitting(sizes: Sequence[int], most: int) -> int:
    """Return how many of the first sizes are at most `most` together."""
    return sum(total <= most for total in accumulate(sizes))


def _shorten_turn(turn: Turn, most: int, omitted: Omitted) -> Turn:
    """Return the turn without a part of its content and of the arguments of its calls."""
    each = most // (1 + len(turn.tool_calls))

    def shorten(text: str) -> str:
        return text if len(text) <= each else shorten_text(text, each, omitted).text

    calls = tuple(replace(call, text=shorten(call.text)) for call in turn.tool_calls)
    return replace(turn, text=turn.text and shorten(turn.text), tool_calls=calls)


def _mark(start: int, stop: int, count: int) -> str:
    """Return the line in place of the turns from position `start` to `stop`; empty if there are none."""
    number = stop - start
    turns = f"{number} turn{'s' if number > 1 else ''}"
    return f"[{turns} omitted: {_spans((start + 1, stop))} of {count}]" if number else ""


def _spans(*spans: tuple[int, int]) -> str:
    """Return the ranges that are not empty as text, such as `1-3, 7`."""
    found = [f"{first}-{last}" if first < last else f"{first}" for first, last in spans if first <= last]
    return ", ".join(found)


def _indent(text: str) -> str:
    """Indent every line, so that no content can be mistaken for another turn or call."""
    return "  " + _LINE_BREAK.sub(r"\g<0>  ", text)


def _quote(name: str) -> str:
    return json.dumps(name, ensure_ascii=not name.isprintable())
