"""Checks of the tool calls and results in a conversation, which rubric files state as data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError, model_validator
from pydantic_core import SchemaError

from autorubric.criteria.conversation import ToolCall, Turn
from autorubric.errors import JudgeError
from autorubric.support.field_types import Count, NonEmptyText
from autorubric.support.objects import Json
from autorubric.support.reading_errors import short_repr

_OPTIONS: Final[dict[str, set[str]]] = {
    "tool_called": {"arguments", "at_least", "at_most", "exact"},
    "forbidden_tools": {"arguments", "exact"},
    "tool_order": {"contiguous"},
    "final_state": {"exact", "tool"},
}
_PATTERN: Final = "$pattern"
_Names = Annotated[tuple[NonEmptyText, ...], Field(min_length=1)]


class TranscriptCheck(BaseModel):
    """A check of a conversation: exactly one of the first four attributes, and options for it.

    An expected mapping equals one in which its keys have equal values, `{"$pattern": "…"}` a string that
    contains a match of the regular expression (without look-around and backreferences), and any other value
    only itself. 1 equals 1.0, but not true. Calls are in the order of turns and, in a turn, as listed.

    Attributes:
        tool_called: Tool that must be called.
        forbidden_tools: Tools that must not be called.
        tool_order: Tools that must be called in this order, possibly with other calls in between.
        final_state: JSON value, or text, that the last result of a tool must equal.
        at_least: Minimum number of calls; by default 1, or 0 with `at_most`.
        at_most: Maximum number of calls.
        arguments: Arguments that a call must have to count.
        contiguous: Whether no other call may come in between.
        tool: Tool whose last result is the final state; by default, any tool.
        exact: Whether mappings must not have other keys.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    tool_called: NonEmptyText = ""
    forbidden_tools: _Names = ()
    tool_order: _Names = ()
    final_state: JsonValue = None
    at_least: Count | None = None
    at_most: Count | None = None
    arguments: dict[str, JsonValue] | None = None
    contiguous: bool = False
    tool: NonEmptyText | None = None
    exact: bool = False

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        given = self.model_fields_set
        kind, *others = sorted(given & _OPTIONS.keys()) or ["none"]
        if others or kind == "none":
            raise ValueError(f"expected one of {', '.join(_OPTIONS)}; got {', '.join([kind, *others])}")
        if odd := given - {kind} - _OPTIONS[kind]:
            raise ValueError(f"{min(odd)} is not an option of {kind}: {', '.join(sorted(_OPTIONS[kind]))}")
        if self.at_most is not None and (self.at_least or 0) > self.at_most:
            raise ValueError(f"at_least is {self.at_least}, above at_most, which is {self.at_most}")
        try:
            # A comparison compiles all patterns.
            _difference([self.arguments, self.final_state], [self.arguments, self.final_state], False)
        except (SchemaError, TypeError) as error:
            raise ValueError(f"invalid {_PATTERN}: {' '.join(str(error).split())}") from None
        return self

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    def __call__(self, turns: Sequence[Turn]) -> tuple[bool | None, str]:
        """Return whether the check passes, or None if a result that decides it is missing, and a reason.

        Raises:
            JudgeError: If there are no turns, because the submission is not a conversation.
        """
        if not turns:
            raise JudgeError("the check needs a conversation: a list of {'role', 'content', 'tool_calls'}")
        if "final_state" in self.model_fields_set:
            return self._judge_state(turns)
        calls = [
            (f"turn {at} call {number} ({short_repr(call.name)})", call)
            for at, turn in enumerate(turns, start=1)
            for number, call in enumerate(turn.tool_calls, start=1)
        ]
        return self._judge_order(calls) if self.tool_order else self._judge_count(calls)

    def _judge_count(self, calls: Sequence[tuple[str, ToolCall]]) -> tuple[bool, str]:
        names, most = self.forbidden_tools or (self.tool_called,), 0 if self.forbidden_tools else self.at_most
        least = self.at_least if self.at_least is not None else int(most is None)
        called = [(place, self._why_other(call.arguments)) for place, call in calls if call.name in names]
        counted = [place for place, why in called if not why]
        others = [f"{place}: {why}" for place, why in called if why]
        limits = f"at least {least}" if most is None else f"{least} to {most}" if least < most else f"{most}"
        reason = f"calls of {' or '.join(names)}: {len(counted)}, expected {limits}"
        parts = {"": counted, " with other arguments": others}
        reason += "".join(f";{name} {_list(places)}" for name, places in parts.items() if places)
        return least <= len(counted) and (most is None or len(counted) <= most), reason

    def _why_other(self, given: Json) -> str | None:
        if self.arguments is None and not self.exact:
            return None
        at = "arguments" if isinstance(given, dict) else "arguments that are not a JSON object: the text"
        return _difference(self.arguments or {}, given, self.exact, at)

    def _judge_order(self, calls: Sequence[tuple[str, ToolCall]]) -> tuple[bool, str]:
        found: list[tuple[str, ToolCall]] = []
        for place, call in calls:
            if self.contiguous:
                found = [*found, (place, call)][-len(self.tool_order) :]
            elif call.name == self.tool_order[len(found)]:
                found.append((place, call))
            if tuple(one.name for _, one in found) == self.tool_order:
                return True, f"called in order: {_list([where for where, _ in found])}"
        wanted = ", ".join(self.tool_order) + ", without other calls" * self.contiguous
        return False, f"not called in order: {wanted}; calls: {_list([place for place, _ in calls])}"

    def _judge_state(self, turns: Sequence[Turn]) -> tuple[bool | None, str]:
        names: dict[str | None, str] = {}
        called, returned, what = 0, 0, self.tool or "a tool"
        for at, turn in enumerate(turns, start=1):
            for call in turn.tool_calls:
                names[call.id] = call.name
                called = at if self.tool in (None, call.name) else called
            if turn.role == "tool" and self.tool in (None, turn.name or names.get(turn.tool_call_id)):
                returned = at
        if called > returned:
            return None, f"turn {called} calls {what}, but its result is not in the conversation"
        if not returned:
            return False, f"there is no result of {what}"
        # A result is JSON or text, as the arguments of a call.
        result = ToolCall(name=what, text=turns[returned - 1].text or "").arguments
        why = _difference(self.final_state, result, self.exact)
        return not why, f"turn {returned}, result of {what}: {why or 'as expected'}"


def _difference(expected: Json, value: Json, exact: bool, at: str = "") -> str | None:
    """Return the first difference from an expected value; None if there is none."""
    pairs: list[tuple[Any, Json, Json]] = []
    if isinstance(expected, dict) and expected.keys() == {_PATTERN}:
        try:
            # The engine takes no lone surrogates, which JSON can contain.
            text = value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
            _matcher(expected[_PATTERN]).validate_python(text)
        except ValidationError:
            return f"{at or 'the value'} is {short_repr(value)}, expected a match of {expected[_PATTERN]!r}"
    elif isinstance(expected, dict) and isinstance(value, dict):
        if odd := expected.keys() - value.keys() or (exact and value.keys() - expected.keys()):
            return f"{at}/{min(odd)} is {'missing' if odd <= expected.keys() else 'not expected'}"
        pairs = [(key, one, value[key]) for key, one in expected.items()]
    elif isinstance(expected, list) and isinstance(value, list) and len(expected) == len(value):
        pairs = [(i, one, other) for i, (one, other) in enumerate(zip(expected, value, strict=True))]
    elif isinstance(expected, bool) is not isinstance(value, bool) or expected != value:
        return f"{at or 'the value'} is {short_repr(value)}, expected {short_repr(expected)}"
    found = [_difference(one, other, exact, f"{at}/{key}") for key, one, other in pairs]
    return next(filter(None, found), None)


@cache
def _matcher(pattern: str) -> TypeAdapter[str]:
    # Pydantic's default engine needs time linear in the text, whatever the pattern.
    return TypeAdapter(Annotated[str, Field(pattern=pattern, strict=True)])


def _list(texts: Sequence[str]) -> str:
    return ", ".join([*texts[:5], *[f"and {len(texts) - 5} more"] * (len(texts) > 5)]) or "none"
