"""The provenance of replies, and the result of asking a teacher, which may be a failure."""

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
    """A reply with metadata, which a teacher function can return instead of a string.

    Attributes:
        text: Text of the reply.
        provider: The provider that served the reply.
        selected_model: The model that answered.
        attempted_models: The models that were called, in order.
        request_id: The id that the provider assigned to the request.
        usage: Token counts, such as `{"total_tokens": 450}`.
        cost: Cost in US dollars; None if unknown.
        latency_s: Latency in seconds; None to use the measured time.

    Raises:
        ArgumentError: If a field has the wrong type or cannot be written as JSON.
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
        # Checked here, so that an error is raised in the caller's code and not when the record is written.
        for name in ("text", "provider", "selected_model", "request_id"):
            given = getattr(self, name)
            if not isinstance(given, str) and (name == "text" or given is not None):
                raise ArgumentError(f"TeacherReply: {name} must be a string; got {shortened(given)}")
        models = self.attempted_models
        if isinstance(models, str) or not all(isinstance(one, str) for one in models or ()):
            raise ArgumentError(f"TeacherReply: attempted_models must be strings; got {shortened(models)}")
        for name in ("cost", "latency_s"):
            given = getattr(self, name)
            if given is not None and not (isinstance(given, int | float) and isfinite(given)):
                raise ArgumentError(f"TeacherReply: {name} must be a finite number; got {shortened(given)}")
        if self.usage is not None and not (isinstance(self.usage, Mapping) and _is_json(dict(self.usage))):
            raise ArgumentError(f"TeacherReply: usage must be a JSON mapping; got {shortened(self.usage)}")


def _is_json(given: object) -> bool:
    try:
        json.dumps(given, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The origin and the cost of a reply.

    Attributes:
        provider: The provider that served the reply; None if unknown.
        asked_model: The model that was requested.
        selected_model: The model that answered, as named by its provider; None if no model answered.
        attempted_models: The models that were called, in order.
        request_id: The provider's id of the last request.
        latency_s: Time from the first request to the last reply in seconds.
        usage: Token counts of all attempts.
        cost: Cost of all attempts in US dollars; None if unknown.
        cached: Whether the reply came from the model response cache.
        truncated: Whether the output was truncated to fit the model's context.
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
        """Return the fields of a record that describe the provenance."""
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
    """The reason why there is no answer.

    Attributes:
        code: Kind of failure.
        message: Description of the error.
    """

    code: ErrorCode
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered(Generic[T]):
    """The result of asking a teacher.

    Attributes:
        answer: The parsed answer; None if asking failed.
        text: The last reply, unparsed; None if there was no reply.
        provenance: The origin and the cost of the answer.
        failure: The reason why there is no answer; None if there is an answer.
    """

    answer: T | None
    text: str | None
    provenance: Provenance
    failure: Failure | None = None


def failed(error: Exception, asked: Provenance) -> Answered[Any]:
    """Return the result for an error, with the usage and the last reply before it."""
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
    """Return the failure code and message for an error."""
    match error:
        case SchemaFaultError():
            return Failure(code="SCHEMA_ERROR", message=str(error))
        case ReplyError():
            return Failure(code="JSON_PARSE_ERROR", message=str(error))
        case ProviderTimeoutError():
            return Failure(code="TIMEOUT", message=str(error))
        case TimeoutError():
            return Failure(code="TIMEOUT", message=str(error) or "the request timed out")
        case ProviderError():
            return Failure(code="PROVIDER_ERROR", message=f"{type(error).__name__}: {error}")
        case JudgeError():
            return Failure(code="PROVIDER_ERROR", message=str(error))
        case _:
            return Failure(
                code="PROVIDER_ERROR", message=f"the teacher raised {type(error).__name__}: {error}"
            )


def usage_dict(usage: TokenUsage | None) -> dict[str, Json] | None:
    """Return token counts in the form used in records; None if no usage was reported."""
    return None if usage is None else dict(usage.to_dict())
