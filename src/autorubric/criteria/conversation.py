"""Conversations in the chat format: turns with tool calls and tool results, and their text for judges."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Final, Literal, TypeAlias

from autorubric.errors import ArgumentError
from autorubric.support.images import Image, read_image
from autorubric.support.json_text import parse_json
from autorubric.support.objects import Json, maker_of
from autorubric.support.reading_errors import SyntaxFault, short_repr

Omitted: TypeAlias = Literal["start", "middle", "end"]

_ROLE: Final = re.compile(r"[A-Za-z][\w-]*")
_LABEL: Final = re.compile(r"\[(?=(?:query )?image \d)")
TURN_KEYS: Final = ("role", "content", "name", "tool_calls", "tool_call_id")


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


_make_turn: Final = maker_of(Turn)


def read_turns(messages: Sequence[Any], images: list[Image]) -> tuple[Turn, ...]:
    """Return the messages of a conversation as turns, and add their images."""
    if not messages:
        raise ArgumentError("to_grade is an empty list; a conversation needs at least one turn")
    return tuple(_read_turn(message, f"to_grade[{at}]", images) for at, message in enumerate(messages))


def _read_turn(message: Any, at: str, images: list[Image]) -> Turn:
    if not isinstance(message, Mapping) or "role" not in message:
        raise ArgumentError(f"{at} must be a mapping with 'role' and 'content'; got {short_repr(message)}")
    # Clients write out every field of a message, such as `"refusal": None` and `"annotations": []`.
    given = {key: value for key, value in message.items() if key in TURN_KEYS or value not in (None, [], {})}
    if unknown := [key for key in given if key not in TURN_KEYS]:
        raise ArgumentError(f"{at} has the keys {unknown!r}; allowed: {', '.join(map(repr, TURN_KEYS))}")
    role, calls = given["role"], given.get("tool_calls") or ()
    if not isinstance(role, str) or not _ROLE.fullmatch(role):
        raise ArgumentError(f"{at}: a role must be one word, such as 'user'; got {short_repr(role)}")
    if not isinstance(calls, list | tuple):
        raise ArgumentError(f"{at}.tool_calls must be a list of calls; got {short_repr(calls)}")
    if "content" not in given and not calls:
        raise ArgumentError(f"{at} must have 'content' or 'tool_calls'; got {short_repr(message)}")
    content, call_id = given.get("content"), _read_name(given, "tool_call_id", at)
    if content is not None and not isinstance(content, str):
        content = read_parts(content, f"{at}.content", images)
    if role != "tool" and call_id is not None:
        raise ArgumentError(f"{at}: only a turn with the role 'tool' has a tool_call_id; got role {role!r}")
    return _make_turn(
        role=role,
        text=content,
        name=_read_name(given, "name", at),
        tool_calls=tuple([_read_call(call, f"{at}.tool_calls[{i}]") for i, call in enumerate(calls)]),
        tool_call_id=call_id,
    )


def are_parts(value: Any) -> bool:
    """Return whether a value is a list of content parts, rather than a conversation."""
    first = value[0] if isinstance(value, list | tuple) and value else None
    return isinstance(first, Mapping) and "type" in first and "role" not in first


def read_parts(parts: Any, at: str, images: list[Image], name: str = "image") -> str:
    """Return the text of content parts, in which labels stand for images, and add the images."""
    texts = []
    if not isinstance(parts, list | tuple):
        raise ArgumentError(f"{at} must be a string, None or a list of parts; got {short_repr(parts)}")
    for place, part in enumerate(parts):
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "image_url":
            label = f"{name} {len(images) + 1}"
            images.append(read_image(part.get("image_url"), f"{at}[{place}].image_url", label))
            texts.append(f"[{label}]")
        elif kind == "text" and isinstance(part.get("text"), str):
            texts.append(_LABEL.sub("⟦", part["text"]))
        else:
            form = "{'type': 'text', 'text': a string} or {'type': 'image_url', 'image_url': {'url'}}"
            raise ArgumentError(f"{at}[{place}] must be {form}; got {short_repr(part)}")
    return "\n".join(texts)


def _read_call(call: Any, at: str) -> ToolCall:
    function: Any = call.get("function") if isinstance(call, Mapping) else {}
    name = _read_name(function, "name", f"{at}.function") if isinstance(function, Mapping) else None
    if name is None or call.get("type", "function") != "function":
        form = "{'id', 'type': 'function', 'function': {'name', 'arguments'}}"
        raise ArgumentError(f"{at} must be {form}; got {short_repr(call)}")
    text = {} if function.get("arguments") is None else function["arguments"]
    if isinstance(text, Mapping):
        with suppress(TypeError, ValueError, RecursionError):
            text = json.dumps(dict(text), ensure_ascii=False)
    if not isinstance(text, str):
        raise ArgumentError(f"{at}.function.arguments must be JSON text or an object; got {short_repr(text)}")
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


def shorten_text(text: str, most: int, omitted: Omitted) -> tuple[str, str]:
    """Return `most` characters of a text, with a mark in place of the others, and what they are."""
    head = {"start": 0, "middle": most // 2, "end": most}[omitted]
    tail = len(text) - (most - head)
    before, after = f"{text[:head]}\n[…]" if head else "[…]", f"\n{text[tail:]}" if tail < len(text) else ""
    return before + after, f"characters {_spans((1, head), (tail + 1, len(text)))} of {len(text)}"


def shorten_turns(turns: Sequence[Turn], most: int, omitted: Omitted) -> tuple[str, str]:
    """Return the text of the turns that fit about `most` characters, with a mark, and which they are."""
    count = len(turns)
    sizes = [len(conversation_text([turn])) + 1 for turn in turns]
    long = [size > most // 2 for size in sizes]
    turns = [_shorten_turn(one, most // 3, omitted) if long[at] else one for at, one in enumerate(turns)]
    sizes = [len(conversation_text([turn])) + 1 for turn in turns]
    head = 0 if omitted == "start" else max(1, _fitting(sizes, most // 2 if omitted == "middle" else most))
    behind = [] if omitted == "end" else sizes[: max(head - 1, 0) : -1]
    tail = _fitting(behind, most - sum(sizes[:head])) or int(omitted == "start")
    stop = count - tail
    parts = [conversation_text(turns[:head]), conversation_text(turns[stop:])]
    if head < stop:
        parts.insert(1, f"[turns omitted: {stop - head} ({_spans((head + 1, stop))} of {count})]")
    shown = f"turns {_spans((1, head), (stop + 1, count))} of {count}"
    if in_part := [(at, at) for at, cut in enumerate(long, 1) if cut and not head < at <= stop]:
        shown += f" ({_spans(*in_part)} in part)"
    return "\n".join(filter(None, parts)), shown


def _fitting(sizes: Sequence[int], most: int) -> int:
    """Return how many of the first sizes are at most `most` together."""
    return sum(total <= most for total in accumulate(sizes))


def _shorten_turn(turn: Turn, most: int, omitted: Omitted) -> Turn:
    """Return the turn without a part of its content and of the arguments of its calls."""
    each = most // (1 + len(turn.tool_calls))
    texts = [turn.text or "", *(call.text for call in turn.tool_calls)]
    text, *rest = [one if len(one) <= each else shorten_text(one, each, omitted)[0] for one in texts]
    calls = tuple(replace(call, text=one) for call, one in zip(turn.tool_calls, rest, strict=True))
    return replace(turn, text=text or turn.text, tool_calls=calls)


def _spans(*spans: tuple[int, int]) -> str:
    """Return the ranges that are not empty as text, such as `1-3, 7`."""
    return ", ".join(f"{a}-{b}" if a < b else f"{a}" for a, b in spans if a <= b)


def _indent(text: str) -> str:
    """Indent every line, also an empty last one, so that no content can pass for another turn or call."""
    return "  ".join(["", *f"{text}.".splitlines(keepends=True)])[:-1]


def _quote(name: str) -> str:
    return json.dumps(name, ensure_ascii=not name.isprintable())
