"""The provenance of a reply, and the result of asking, which may be a failure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, Generic, Literal, TypeVar

from autorubric._files import shortened
from autorubric.critique._schema import SchemaFaultError
from autorubric.errors import ArgumentError, JudgeError, ProviderError, ProviderTimeoutError, ReplyError
from autorubric.values import Json, TokenUsage

T = TypeVar("T")

ErrorCode = Literal["JSON_PARSE_ERROR", "SCHEMA_ERROR", "PROVIDER_ERROR", "TIMEOUT"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherReply:
    """The reply of a function as a teacher, if it gives more than a text.

    Attributes:
        text: The reply.
        provider: The provider that served it.
        selected_model: The model that answered.
        attempted_models: Models asked, in order.
        request_id: The provider's id of the reply.
        usage: Token counts, such as `{"total_tokens": 450}`.
        cost: US dollars spent, where known.
        latency_s: Seconds that it took; None: as measured.

    Raises:
        ArgumentError: If a field is of another type, or cannot stand in a file.
    """

    text: str
    provider: str | None = None
    selected_model: str | None = None
    attempted_models: tuple[str, ...] = ()
    request_id: str | None = None
    usage: Mapping[str, Json] | None = None
    cost: float | None = None
    latency_s: float | None = None

    def __post_init__(self) -> None:
        # Here, where its author sees it, and not when it is written down with hours of other work.
        for name in ("text", "provider", "selected_model", "request_id"):
            given = getattr(self, name)
            if not isinstance(given, str) and (name == "text" or given is not None):
                raise ArgumentError(f"TeacherReply: {name} is {shortened(given)}; give a text")
        models = self.attempted_models
        if isinstance(models, str) or not all(isinstance(one, str) for one in models or ()):
            raise ArgumentError(f"TeacherReply: attempted_models is {shortened(models)}; give names")
        for name in ("cost", "latency_s"):
            given = getattr(self, name)
            if given is not None and not (isinstance(given, int | float) and isfinite(given)):
                raise ArgumentError(f"TeacherReply: {name} is {shortened(given)}; give a finite number")
        if self.usage is not None and not (isinstance(self.usage, Mapping) and _is_json(dict(self.usage))):
            raise ArgumentError(f"TeacherReply: usage is {shortened(self.usage)}; give JSON data by name")


def _is_json(given: object) -> bool:
    try:
        json.dumps(given, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a reply came from.

    Attributes:
        provider: The provider that served it; None if unknown.
        asked_model: The model that was to answer.
        selected_model: The model that answered, as its provider names it; None if none did.
        attempted_models: Models asked, in order.
        request_id: The provider's id of the last reply.
        latency_s: Seconds from asking to the end.
        usage: Tokens of all tries.
        cost: US dollars of all tries, where known.
        cached: Whether it was served from the reply cache.
        truncated: Whether the output was cut to fit the model's context.
    """

    provider: str | None = None
    asked_model: str | None = None
    selected_model: str | None = None
    attempted_models: tuple[str, ...] = ()
    request_id: str | None = None
    latency_s: float = 0.0
    usage: Mapping[str, Json] | None = None
    cost: float | None = None
    cached: bool = False
    truncated: bool = False

    def to_dict(self) -> dict[str, Json]:
        """Return its fields in a record."""
        return {
            "provider": self.provider,
            "selected_model": self.selected_model,
            "attempted_models": list(self.attempted_models),
            "request_id": self.request_id,
            "timing": {"latency_s": self.latency_s},
            "usage": None if self.usage is None else dict(self.usage),
            "asked_model": self.asked_model,
            "cost": self.cost,
            "cached": self.cached,
            "truncated": self.truncated,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why there is no answer.

    Attributes:
        code: What kind of failure.
        message: Why.
    """

    code: ErrorCode
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered(Generic[T]):
    """The result of asking a teacher.

    Attributes:
        answer: The parsed answer; None if there is none, with the reason in `failure`.
        text: The last reply as it came; None if none did.
        provenance: Where it came from.
        failure: Why there is no answer.
    """

    answer: T | None
    text: str | None
    provenance: Provenance
    failure: Failure | None = None


def failed(error: Exception, asked: Provenance) -> Answered[Any]:
    """Return the result of an error, with the usage and the replies before it."""
    text = None
    if isinstance(error, JudgeError):
        text = error.reply if isinstance(error, ReplyError) else None
        if text is None and error.replies:
            text = error.replies[-1]
        asked = replace(
            asked,
            selected_model=error.selected_model,
            attempted_models=error.attempted or asked.attempted_models,
            request_id=error.request_id,
            usage=usage_dict(error.usage),
            cost=error.cost,
        )
    return Answered(answer=None, text=text, provenance=asked, failure=failure_of(error))


def failure_of(error: Exception) -> Failure:
    """Return the failure that an error is."""
    match error:
        case SchemaFaultError():
            return Failure(code="SCHEMA_ERROR", message=str(error))
        case ReplyError():
            return Failure(code="JSON_PARSE_ERROR", message=str(error))
        case ProviderTimeoutError():
            return Failure(code="TIMEOUT", message=str(error))
        case TimeoutError():
            return Failure(code="TIMEOUT", message=str(error) or "no answer in time")
        case ProviderError():
            return Failure(code="PROVIDER_ERROR", message=f"{type(error).__name__}: {error}")
        case JudgeError():
            return Failure(code="PROVIDER_ERROR", message=str(error))
        case _:
            return Failure(
                code="PROVIDER_ERROR", message=f"the teacher raised {type(error).__name__}: {error}"
            )


def usage_dict(usage: TokenUsage | None) -> dict[str, Json] | None:
    """Tokens as a record says them; None if none were counted."""
    return None if usage is None else dict(usage.to_dict())
