"""Errors of providers as the library's errors, and keys that are missing or rejected."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

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
from autorubric.llm.names import owner_of, prefix_of
from autorubric.llm.specs import Mask
from autorubric.llm.transport import ModelReply

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
_SYSTEM: Final = r"(?:system|developer)\W{0,2}[ _]?(?:role|message|prompt|instruction)"
_ROLES: Final = re.compile(
    r"roles must alternate|\brole\W{1,3}does not support\W{1,3}(?:system|developer)\b|"
    rf"\b{_SYSTEM}s?\b.{{0,40}}?(?:\bnot\b|n['’]t\b|cannot|unsupport|unavailab|disabled|incompat)|"
    rf"(?:\bnot\b|n['’]t\b|\bno\b|unsupported|unexpected|unknown|invalid|incompatible)\W.{{0,40}}?(?:\b{_SYSTEM}|"
    r"\broles?\W{1,4}(?:system|developer)\b)|\brole\W{1,4}(?:system|developer)\W{1,4}.{0,30}"
    r"\b(?:not|invalid|disallowed)\b|only\b.{0,30}\buser\b.{1,20}\bassistant\b.{0,20}\brole|"
    r"\brole\W{1,3}(?:unsupported|unexpected|unknown|invalid)\b.{0,20}\b(?:system|developer)\b|"
    r"\b(?:be|one of|permitted|tags)\W{1,4}user\b.{1,6}\bassistant\b|"
    r"(?:first (?:message|role)|conversations?) (?:must |should |to )(?:be|start|use).{0,30}\buser",
    re.IGNORECASE,
)
_BLANKS: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]+")
_LONGEST: Final = 400
MOVED: Final = "the address redirects; set api_base to the new address"
_CHECK_KEY: Final = "the key is missing or rejected; check api_key or the provider's environment variable"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderFailure:
    model: str
    status: int  # HTTP status
    text: str  # the provider's message, complete and unchanged
    retry_after: float | None = None  # seconds to wait, if the provider specifies them
    had_schema: bool = False  # whether the request included a JSON schema
    key: str = ""  # description of the key that was sent, for errors about keys; empty if unknown
    address: str = ""  # address that the request was sent to; empty if unknown

    @property
    def not_found(self) -> str:
        where = f" at {self.address}" if self.address else ""
        missing = "" if _NO_MODEL.search(self.text) else version_advice(self.address)
        return f"no such model or endpoint{where}; check the model's name and the address{missing}"


def version_advice(address: str) -> str:
    """Return the suggestion to add `/v1` to an address without a version; empty for other addresses."""
    if not address or re.search(r"/v\d", urlsplit(address).path):
        return ""
    base = address.removesuffix("/chat/completions").rstrip("/")
    return f"; if the server expects /v1, set --api-base (api_base) to {base}/v1"


def masked_error(kind: type[ProviderError], model: str, message: str, mask: Mask) -> ProviderError:
    """Return the error with this message, first masked and then shortened."""
    return kind(f"{model}: {brief(mask.error(message))}", model=model)


def unreachable(model: str, message: str, mask: Mask) -> ProviderConnectionError:
    """Return the error for an address that could not be connected to."""
    error = ProviderConnectionError(f"{model}: {brief(mask.error(message))}", model=model)
    error.connected = False
    return error


def error_of(failure: ProviderFailure, mask: Mask) -> ProviderError:
    kind, advice = _kind_and_advice(failure)
    said = brief(mask.error(failure.text))
    message = f"{failure.model}: {mask.error(advice)} (HTTP {failure.status}{': ' + said if said else ''})"
    return kind(message, model=failure.model, status=failure.status, retry_after=failure.retry_after)


def refusal_of(failure: ProviderFailure, mask: Mask) -> ModelReply:
    """Return the refusal for a request that was blocked by a content filter."""
    refusal = brief(mask.error(failure.text))
    return ModelReply(text="", model=failure.model, finish_reason="content_filter", refusal=refusal)


def is_filtered(failure: ProviderFailure) -> bool:
    """Return whether the provider's content filter blocked the request, which counts as a refusal."""
    is_refused = failure.status in (400, 403, 422) or failure.status < 300
    return is_refused and _FILTER.search(failure.text) is not None


def asks_to_wait(error: TransientError) -> bool:
    """Return whether the provider asks to wait: status 429, or 503 with a `Retry-After`."""
    return isinstance(error, RateLimitError) or (error.status == 503 and error.retry_after is not None)


def refuses_roles(text: str) -> bool:
    """Return whether the text says that system messages, or the order of the messages, are not supported."""
    return _ROLES.search(text) is not None


def says_key_is_wrong(text: str) -> bool:
    return _KEY.search(text) is not None


def _kind_and_advice(failure: ProviderFailure) -> tuple[type[ProviderError], str]:
    status, text = failure.status, failure.text
    if status in (400, 413, 422):
        return _refusal(failure)
    if status < 300:
        kind, advice = _refusal(failure)
        is_failure = kind is RequestRefusedError and not refuses_roles(text)
        return (ServerError, "the provider failed") if is_failure else (kind, advice)
    if status == 404 and failure.had_schema and _SCHEMA.search(text) and not _NO_MODEL.search(text):
        return SchemaRefusedError, "the endpoint does not support the response format"
    if status == 429 and _QUOTA.search(text):
        return RequestRefusedError, "the account's quota is used up; add credit or use another model"
    advice = version_advice(failure.address)
    by_status: dict[int, tuple[type[ProviderError], str]] = {
        401: (AuthenticationError, failure.key or _CHECK_KEY),
        402: (RequestRefusedError, "the account's credit is used up; add credit or use another model"),
        403: (AuthenticationError, failure.key or "the key has no permission to use this model"),
        404: (ModelNotFoundError, failure.not_found),
        405: (ModelNotFoundError, f"the address does not accept POST requests; check api_base{advice}"),
        408: (ProviderTimeoutError, "the provider timed out waiting for the request"),
        409: (TransientError, "the provider reports a conflict"),
        425: (TransientError, "the provider asks to try again later"),
        429: (RateLimitError, "the rate limit for requests or tokens is exceeded"),
        504: (ProviderTimeoutError, "a gateway timed out waiting for the provider"),
    }
    if status in by_status:
        return by_status[status]
    if status >= 500:
        # Chat templates raise errors, which some servers report as their own.
        return _refusal(failure) if refuses_roles(text) else (ServerError, "the provider failed")
    if 300 <= status < 400:
        return RequestRefusedError, MOVED
    return RequestRefusedError, "the provider rejects the request"


def _refusal(failure: ProviderFailure) -> tuple[type[ProviderError], str]:
    text = failure.text
    if _CONTEXT.search(text):
        advice = "the request is longer than the model's context; shorten it or set truncate"
        return ContextLengthError, advice
    if failure.had_schema and _SCHEMA.search(text):
        return SchemaRefusedError, "the provider does not support the response format"
    if says_key_is_wrong(text):
        return AuthenticationError, failure.key or _CHECK_KEY
    if _NO_MODEL.search(text):
        return ModelNotFoundError, failure.not_found
    if refuses_roles(text):
        return RequestRefusedError, "the model does not support system messages or this order of messages"
    return RequestRefusedError, "the provider rejects the request"


def brief(text: str) -> str:
    """Return the text on one line, without control characters, cut to 400 characters."""
    line = _BLANKS.sub(" ", text[: 4 * _LONGEST]).strip()
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} …"


def retry_after_of(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the number of seconds, 0 or more, that the headers ask to wait; None if they specify no wait."""
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


OWN_ADDRESS: Final = frozenset(
    {
        # A resource, workspace or deployment of the customer has its own address and the provider's key.
        *("azure", "azure_ai", "azure_text", "databricks", "datarobot"),
        *("snowflake", "watsonx", "watsonx_text"),
        # The address is a private endpoint; most requests are signed, or have a short-lived token.
        *("bedrock", "bedrock_mantle", "oci", "sagemaker", "sagemaker_chat", "sagemaker_nova", "sap"),
        *("vertex_ai", "vertex_ai_beta"),
    }
)
"""Providers whose key in the environment also belongs to an address that the user sets."""
TAKES_OPENAI_KEY: Final = frozenset({"aiohttp_openai", "custom_openai", "openai", "text-completion-openai"})
_OTHER_WAYS: Final = frozenset(
    {
        *("azure", "azure_text", "bedrock", "sagemaker", "vertex_ai", "ollama", "ollama_chat", "datarobot"),
        *("github_copilot", "chatgpt"),
    }
)
"""Providers that also work without litellm's variables: through roles, sign-in or a local server."""
_UNLISTED: Final = {
    **{name: f"{name.upper()}_API_KEY" for name in ("clarifai", "compactifai", "minimax", "predibase")},
    "cohere_chat": "COHERE_API_KEY",
    "cometapi": "COMETAPI_KEY",
}
"""Variables of providers that litellm calls without a key and names no variable for."""
_AWS: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
_ALIASES: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("bedrock_mantle", "sagemaker_chat", "sagemaker_nova"), _AWS),
    **dict.fromkeys(("custom_openai", "text-completion-openai"), ("OPENAI_API_KEY",)),
    "anthropic_text": ("ANTHROPIC_API_KEY",),
    "watsonx_text": ("WATSONX_API_KEY",),
}
"""Variables of providers that share those of another provider."""
_PREFIXES: Final = {"gemini": "GOOGLE_", "huggingface": "HF_", "openrouter": "OR_"} | dict.fromkeys(
    ("cohere", "cohere_chat"), "CO_"
)
"""Additional prefixes of the variables that litellm reads for a provider."""
_ONE_KEY: Final[Mapping[str, tuple[str, ...]]] = {
    **{name: (f"{name.upper()}_API_KEY",) for name in ("anthropic", "cerebras", "cohere", "deepseek")},
    **{name: (f"{name.upper()}_API_KEY",) for name in ("groq", "mistral", "openai", "openrouter", "xai")},
    "gemini": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "together_ai": ("TOGETHERAI_API_KEY",),
}
"""Variables of providers that accept nothing but a key."""
_SECRET: Final = re.compile(r"(?:KEY|TOKEN|JWT)$")
_NO_KEY: Final = re.compile(
    r"missing credentials|no credentials found|unable to locate credentials|no usable .{0,20}credentials|"
    r"(?:missing|not set|is not set|required|no)\b.{0,40}\b(?:api[ _]?key|jwt key|api token|token)\b|"
    r"\b(?:api[ _]?key|token)\b.{0,40}\b(?:missing|not set|required|must be|not found|not provided)|"
    r"api key are not set|missing \w+ tenant id",
    re.IGNORECASE,
)
_NOT_CONNECTED: Final = frozenset(
    {
        *("ConnectError", "ConnectTimeout", "ClientConnectorError", "ClientConnectorDNSError"),
        *("ConnectionRefusedError", "gaierror", "EndpointConnectionError"),
    }
)
_CLIENTS: Final = frozenset({"aiohttp", "anthropic", "botocore", "h11", "httpcore", "httpx", "openai"})
_NO_CONNECTION: Final = re.compile(
    r"cannot connect to host|connection refused|name resolution|name or service not known|"
    r"nodename nor servname|all connection attempts failed",
    re.IGNORECASE,
)


def missing_variables(litellm: Any, model: str, provider: str) -> tuple[str, ...]:
    """Return the environment variables of missing keys; empty if no key is known to be missing."""
    if provider in _OTHER_WAYS or litellm.secret_manager_client is not None or litellm.api_key:
        return ()
    # litellm may read the key from another variable whose name begins with the provider's name.
    if any(_SECRET.search(name) and os.environ[name] for name in _variables_of(provider)):
        return ()
    return tuple(name for name in named_variables(litellm, model, provider) if _SECRET.search(name))


def advice_before_import(model: str) -> str:
    """Return advice if a hosted model's key is certainly missing; empty otherwise."""
    # litellm takes seconds to import. Once it is imported, or if it may read a `.env` file, a key may come
    # from elsewhere.
    # `claude-…@…` and `claude-…:…` are names at Google and Amazon.
    is_bare = re.fullmatch(r"(?:claude|gpt)-[\w.-]+", model)
    provider = owner_of(model) if is_bare else prefix_of(model)
    names = _ONE_KEY.get(provider, ())
    spec = find_spec("litellm") if names and "litellm" not in sys.modules else None
    if spec is None or any(os.environ[name] for name in _variables_of(provider)):
        return ""
    folders = (*Path(spec.origin or "").parents, Path.cwd(), *Path.cwd().parents)
    return "" if any((one / ".env").exists() for one in folders) else key_advice(provider, names)


def _variables_of(provider: str) -> list[str]:
    """Return the environment variables whose names begin with the provider's name."""
    stem = re.sub(r"_ai$|_chat$", "", provider).replace("-", "_").upper()
    prefixes = (stem, stem.replace("_", ""), _PREFIXES.get(provider, stem))
    return [name for name in os.environ if name.startswith(prefixes)]


def key_advice(provider: str, names: Sequence[str]) -> str:
    """Return advice for a missing key, with the environment variable to set."""
    names = _ALIASES.get(provider, ()) or names
    secret = [name for name in names if _SECRET.search(name) or name.startswith("AWS_")]
    shown = secret or names or (f"{re.sub(r'[^A-Z0-9]', '_', provider.upper())}_API_KEY",)
    both = " and " if shown[0].startswith("AWS_") else " or "
    return (
        f"no key for {provider}; set {both.join(shown)} in the environment, or use --api-key-env NAME "
        "(api_key_env in an LLMConfig)"
    )


def says_key_is_missing(text: str) -> bool:
    return _NO_KEY.search(text) is not None


def never_connected(error: BaseException) -> bool:
    """Return whether the error or one of its causes reports that no connection could be established."""
    return any(
        type(one).__name__ in _NOT_CONNECTED or _NO_CONNECTION.search(str(one)) for one in _chain(error)
    )


def was_sent(error: BaseException) -> bool:
    """Return whether the error came from a network client and not from litellm's own preparation."""
    return any(
        isinstance(one, OSError | EOFError) or type(one).__module__.partition(".")[0] in _CLIENTS
        for one in _chain(error)
    )


def named_variables(litellm: Any, model: str, provider: str) -> tuple[str, ...]:
    """Return the provider's variables, from litellm or the tables here; empty if neither names any."""
    if provider in _UNLISTED:
        return (_UNLISTED[provider],)
    if provider in ("github_copilot", "chatgpt"):
        # litellm signs in over the network to answer.
        return ()
    return tuple(litellm.validate_environment(model=model)["missing_keys"])


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        following = following.__cause__ or following.__context__
