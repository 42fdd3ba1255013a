"""Maps providers' error responses to the library's errors; used by both transports."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from autorubric.errors import (
    AuthenticationError,
    ContextLengthError,
    ModelNotFoundError,
    ProviderConnectionError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitError,
    RequestRefusedError,
    SchemaRefusedError,
    ServerError,
    TransientError,
)
from autorubric.llm._secrets import Mask
from autorubric.llm._transport import ModelReply

_CONTEXT: Final = re.compile(
    r"context[_ ]length|context[_ ]?window|maximum context|"
    r"max(?:imum)? (?:context|input|model) (?:length|tokens)|"
    r"(?:prompt|input|request) is too long|too many (?:input )?tokens|exceeds? the (?:available )?context",
    re.IGNORECASE,
)
_SCHEMA: Final = re.compile(
    r"response_format|response format|json_schema|json schema|structured output|guided_json|grammar|"
    r"output_format|output_config|\bmaxLength\b|\bm(?:in|ax)Items\b",
    re.IGNORECASE,
)
_KEY: Final = re.compile(
    r"(?:invalid|incorrect|missing|no)\b.{0,20}\bapi[ _]?key|api[ _]?key (?:not|is|was)", re.IGNORECASE
)
_NO_MODEL: Final = re.compile(
    r"model_not_found|model\b.{0,80}\b(?:not found|does not exist|not exist)", re.IGNORECASE
)
_QUOTA: Final = re.compile(r"insufficient_quota|exceeded your current quota|billing", re.IGNORECASE)
_FILTER: Final = re.compile(r"content_filter|content_policy|content management policy", re.IGNORECASE)
_BLANKS: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]+")
_LONGEST: Final = 400
MOVED: Final = "the address redirects; set api_base to the new address"
_CHECK_KEY: Final = "the key is missing or rejected; check api_key or the provider's environment variable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failed response from a provider.

    Attributes:
        model: The model that was called.
        status: HTTP status.
        text: The provider's message, complete and unchanged.
        retry_after: Seconds to wait, if the provider specifies them.
        had_schema: Whether the request included a JSON schema.
        key: Description of the key that was sent, for errors about keys; empty if unknown.
        address: Address that the request was sent to; empty if unknown.
    """

    model: str
    status: int
    text: str
    retry_after: float | None = None
    had_schema: bool = False
    key: str = ""
    address: str = ""

    @property
    def not_found(self) -> str:
        """Message for a model or an address that does not exist."""
        where = f" at {self.address}" if self.address else ""
        return f"no such model or endpoint{where}; check the model's name and the address"


def failed(kind: type[ProviderError], model: str, message: str, mask: Mask) -> ProviderError:
    """Return the error with this message, first masked and then shortened."""
    return kind(f"{model}: {brief(mask.error(message))}", model=model)


def unreachable(model: str, message: str, mask: Mask) -> ProviderConnectionError:
    """Return the error for a failed connection to a provider."""
    error = ProviderConnectionError(f"{model}: {brief(mask.error(message))}", model=model)
    error.connected = False
    return error


def error_of(failure: Failure, mask: Mask) -> ProviderError:
    """Return the error for a failed request."""
    kind, advice = _kind_and_advice(failure)
    said = brief(mask.error(failure.text))
    message = f"{failure.model}: {mask.error(advice)} (HTTP {failure.status}{': ' + said if said else ''})"
    return kind(message, model=failure.model, status=failure.status, retry_after=failure.retry_after)


def refusal_of(failure: Failure, mask: Mask) -> ModelReply:
    """Return the refusal for a request that was blocked by a content filter."""
    refusal = brief(mask.error(failure.text))
    return ModelReply(text="", model=failure.model, finish_reason="content_filter", refusal=refusal)


def is_filtered(failure: Failure) -> bool:
    """Return whether the provider's content filter blocked the request, which counts as a refusal."""
    return (failure.status in (400, 403, 422) or failure.status < 300) and _FILTER.search(
        failure.text
    ) is not None


def asks_to_wait(error: TransientError) -> bool:
    """Return whether the provider asks to wait: status 429, or 503 with a `Retry-After`."""
    return isinstance(error, RateLimitError) or (error.status == 503 and error.retry_after is not None)


def says_key_is_wrong(text: str) -> bool:
    """Return whether a provider's message is about a missing or wrong key."""
    return _KEY.search(text) is not None


def _kind_and_advice(failure: Failure) -> tuple[type[ProviderError], str]:
    status, text = failure.status, failure.text
    if status in (400, 413, 422):
        return _refused(failure)
    if status < 300:
        kind, advice = _refused(failure)
        return (ServerError, "the provider failed") if kind is RequestRefusedError else (kind, advice)
    if status == 404 and failure.had_schema and _SCHEMA.search(text) and not _NO_MODEL.search(text):
        return SchemaRefusedError, "the endpoint does not support the response format"
    if status == 429 and _QUOTA.search(text):
        return RequestRefusedError, "the account's quota is used up; add credit or use another model"
    by_status: dict[int, tuple[type[ProviderError], str]] = {
        401: (AuthenticationError, failure.key or _CHECK_KEY),
        402: (RequestRefusedError, "the account's credit is used up; add credit or use another model"),
        403: (AuthenticationError, failure.key or "the key has no permission to use this model"),
        404: (ModelNotFoundError, failure.not_found),
        405: (ModelNotFoundError, "the address does not accept POST requests; check api_base"),
        408: (ProviderTimeoutError, "the provider timed out waiting for the request"),
        409: (TransientError, "the provider reports a conflict"),
        425: (TransientError, "the provider asks to try again later"),
        429: (RateLimitError, "the rate limit for requests or tokens is exceeded"),
        504: (ProviderTimeoutError, "a gateway timed out waiting for the provider"),
    }
    if status in by_status:
        return by_status[status]
    if status >= 500:
        return ServerError, "the provider failed"
    if 300 <= status < 400:
        return RequestRefusedError, MOVED
    return RequestRefusedError, "the provider rejects the request"


def _refused(failure: Failure) -> tuple[type[ProviderError], str]:
    text = failure.text
    if _CONTEXT.search(text):
        return (
            ContextLengthError,
            "the request is longer than the model's context; shorten it or set truncate",
        )
    if failure.had_schema and _SCHEMA.search(text):
        return SchemaRefusedError, "the provider does not support the response format"
    if says_key_is_wrong(text):
        return AuthenticationError, failure.key or _CHECK_KEY
    if _NO_MODEL.search(text):
        return ModelNotFoundError, failure.not_found
    return RequestRefusedError, "the provider rejects the request"


def brief(text: str) -> str:
    """Return the text on one line, without control characters, cut to 400 characters."""
    line = _BLANKS.sub(" ", text[: 4 * _LONGEST]).strip()
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} …"


def retry_after_of(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the number of seconds, 0 or more, that the headers ask to wait; None if they specify no wait.

    `Retry-After` is read as a number of seconds or as a date, `Retry-After-Ms` as milliseconds. Negative
    numbers and past dates become 0; a value that is neither a number nor a date, including NaN, is ignored.
    """
    milliseconds = _seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _seconds(value)
    if seconds is not None or value is None:
        return seconds
    try:
        date = parsedate_to_datetime(value)
        date = date.replace(tzinfo=date.tzinfo or UTC)
        return max(0.0, (date - (now or datetime.now(UTC))).total_seconds())
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _seconds(value: str | None) -> float | None:
    # Python's numbers may have other digits, and underscores.
    if value is None or "_" in value or not value.isascii():
        return None
    try:
        seconds = float(value)
    except ValueError:
        return None
    return None if math.isnan(seconds) else max(0.0, seconds)
