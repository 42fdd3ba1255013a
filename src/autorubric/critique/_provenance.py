"""Where a reply came from, and what asking came to; failures are answers too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar

from autorubric.critique._schema import SchemaFaultError
from autorubric.errors import JudgeError, ProviderError, ProviderTimeoutError, ReplyError
from autorubric.values import Json, TokenUsage

T = TypeVar("T")

ErrorCode = Literal["JSON_PARSE_ERROR", "SCHEMA_ERROR", "PROVIDER_ERROR", "TIMEOUT"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherReply:
    """What a function may give as a teacher, where it knows more than a text.

    Attributes:
        text: The reply.
        provider: Who served it.
        selected_model: The model that answered.
        attempted_models: Models asked, in order.
        request_id: The provider's id of the reply.
        usage: What was counted, as `{"total_tokens": 450}`.
        cost: US dollars spent, where known.
        latency_s: Seconds that it took; None: as measured.
    """

    text: str
    provider: str | None = None
    selected_model: str | None = None
    attempted_models: tuple[str, ...] = ()
    request_id: str | None = None
    usage: Mapping[str, Json] | None = None
    cost: float | None = None
    latency_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a reply came from.

    Attributes:
        provider: Who served it; None where that is not known.
        asked_model: The model that was to answer.
        selected_model: The model that answered, as its provider names it; None where none did.
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
        """What a record says of it."""
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
    """What asking a teacher came to.

    Attributes:
        answer: The answer as read; None where there is none, and then `failure` says why.
        text: The last reply as it came; None where none did.
        provenance: Where it came from.
        failure: Why there is no answer.
    """

    answer: T | None
    text: str | None
    provenance: Provenance
    failure: Failure | None = None


def failed(error: Exception, asked: Provenance) -> Answered[Any]:
    """What an error comes to, with what was spent and what was replied before it."""
    text = None
    if isinstance(error, JudgeError):
        text = error.reply if isinstance(error, ReplyError) else None
        if text is None and error.replies:
            text = error.replies[-1]
        attempted = error.attempted or asked.attempted_models
        asked = replace(asked, attempted_models=attempted, usage=usage_dict(error.usage), cost=error.cost)
    return Answered(answer=None, text=text, provenance=asked, failure=failure_of(error))


def failure_of(error: Exception) -> Failure:
    """The failure that an error is."""
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
        case _:
            return Failure(
                code="PROVIDER_ERROR", message=f"the teacher raised {type(error).__name__}: {error}"
            )


def usage_dict(usage: TokenUsage | None) -> dict[str, Json] | None:
    """Tokens as a record says them; None where none were counted."""
    return None if usage is None else dict(usage.to_dict())
