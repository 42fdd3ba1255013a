"""Model configs: frozen data with a model's name, request parameters and limits."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    SecretStr,
    StrictInt,
    Tag,
    ValidationError,
    ValidatorFunctionWrapHandler,
    field_serializer,
    field_validator,
)

from autorubric.errors import AuthenticationError, FileError
from autorubric.llm.names import owner_of, prefix_of, unset_variable
from autorubric.llm.specs import Spec, digest_of, holds_secret, is_digest, is_secret_name, texts_in
from autorubric.support.extensions import TRANSPORTS_GROUP, extension_names
from autorubric.support.objects import REASON_LENGTH, Json
from autorubric.support.read import dump_structured, parse_structured, read_text
from autorubric.support.write import write_text_atomic

TransportName = Literal["auto", "litellm", "openai_compatible", "systemone_decisions", "openai_decisions"]
"""Transport that reaches a model; `auto` chooses by the model's name and `api_base`."""


TruncatePolicy = Literal["start", "middle", "end"]
"""Part of a text that is removed if it is too long for the model."""

LOGPROBS: Final = ("logprobs", "top_logprobs")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED_PARAMS: Final = frozenset(
    {
        *("model", "messages", "response_format", "stream", "n", "num_retries", "headers"),
        *("temperature", "max_tokens", "top_p", "seed", "timeout", "max_retries"),
        *("api_key", "api_key_env", "api_base", "base_url", "fallbacks", "extra_headers"),
        *("input_cost_per_token", "output_cost_per_token"),
    }
)


class ThinkingLevel(StrEnum):
    """The amount of reasoning that a model does before it answers."""

    NONE = "none"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"

    @classmethod
    def _missing_(cls, value: object) -> ThinkingLevel | None:
        return next((one for one in cls if isinstance(value, str) and value.lower() == one), None)


class ThinkingConfig(Spec):
    """Options for a model's reasoning before it answers.

    Attributes:
        level: Amount of reasoning; `none` requests no reasoning.
        budget_tokens: Maximum number of reasoning tokens; sent instead of `level`, unless `level` is `none`.
    """

    level: ThinkingLevel = ThinkingLevel.MEDIUM
    budget_tokens: int | None = Field(default=None, ge=1)

    def to_params(self) -> dict[str, Json]:
        """Return the request parameters for this setting, in the provider's (OpenAI) format."""
        if self.budget_tokens is not None and self.level is not ThinkingLevel.NONE:
            return {"thinking": {"type": "enabled", "budget_tokens": self.budget_tokens}}
        return {"reasoning_effort": self.level.value}


_UNION_TAG: Final = ":"
"""Prefix of the tags of unions, so that they can be removed from paths."""
_REASONING: Final = {"thinking", "reasoning", "reasoning_effort", "chat_template_kwargs", "extra_body"}
_LENGTH_PARAMS: Final = _REASONING | {"max_tokens", "max_completion_tokens", "n_predict"}
"""Request parameters that limit the reply's length or turn on reasoning before the reply."""
_SWITCHES: Final = _REASONING | {"type", "effort", "enabled", "enable_thinking", "budget_tokens"}


def _is_off(value: Json) -> bool:
    """Return whether a parameter's value is none, or switches reasoning off."""
    if isinstance(value, dict):
        return any(_is_off(held) for name, held in value.items() if name in _SWITCHES)
    return value in (None, False, ThinkingLevel.NONE, "disabled")


def _model_name(model: str) -> str:
    name = model.strip()
    if not name or _CONTROL.search(name) or " " in name:
        raise ValueError(f"{model!r} is not a model name; use a name such as 'ollama/llama3.2'")
    return name


def _address(base: str) -> str:
    try:
        parts = urlsplit(base.strip())
        port_is_fine = parts.port is None or parts.port >= 0
    except ValueError:
        parts, port_is_fine = urlsplit(""), False
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError(
            "api_base must not have a user, query or fragment; pass credentials as api_key or extra_headers"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_fine:
        # A text without a colon or slash may be a key, and one with an @ may have a password.
        shown = repr(base) if re.search("[:/]", base) and "@" not in base else "api_base"
        raise ValueError(f"{shown} is not an http(s) URL; use a URL such as 'http://localhost:8000/v1'")
    if _CONTROL.search(base.strip()) or " " in base.strip():
        raise ValueError(f"{base!r} contains spaces or control characters")
    return base.strip().rstrip("/")


class LLMConfig(Spec):
    """Configuration of a model: its name, request parameters and limits.

    Attributes:
        model: Model name, with a provider prefix if it needs one: `gpt-6-luna`,
            `anthropic/claude-sonnet-5-5`, `hosted_vllm/Qwen/Qwen3-8B`.
        temperature: Sampling temperature, 0 to 2; None uses the provider's default.
        max_tokens: Maximum number of tokens in a reply, including reasoning. If None, a limit is derived from
            the reply's schema, provided that the schema bounds the length and the model is not known to
            reason; a reply that is still cut off is requested again without a limit.
        max_reason_chars: Maximum number of characters in a judge's reason, sent as `maxLength` in the reply's
            schema; None for no bound. Omitted for providers whose schemas do not support it, such as OpenAI
            and Anthropic.
        top_p: Probability mass for nucleus sampling, above 0 and at most 1.
        timeout: Maximum number of seconds for one request, from connecting to the last byte. If it is not
            set, a local server gets at least ten times the seconds of its first answer.
        max_retries: Maximum number of retries after a temporary failure, counted separately for each class of
            failure (`ServerError`, `ProviderConnectionError`, `ProviderTimeoutError`); 0 disables retries.
            Waits requested by the provider (429, or 503 with `Retry-After`) do not use up retries during the
            first `max_retries * retry_max_wait` seconds. The call fails at once if a `Retry-After` ends later
            than that, or if the address has never been reached. At most `3 * (max_retries + 1)` requests are
            sent for a vote, whatever the reasons.
        retry_min_wait: Minimum wait before a retry, in seconds; after a 429, waits begin at 3 ms.
        retry_max_wait: Maximum wait before a retry, in seconds, unless the provider requests a longer one.
        max_parallel_requests: Maximum number of concurrent requests to the provider; None means 512, and for
            a local server 2 at first.
        requests_per_minute: Maximum number of requests to the provider in any 60 seconds.
        tokens_per_minute: Maximum number of tokens, sent and received, in any 60 seconds.
        cache_enabled: Whether to cache readable replies and reuse them for identical requests.
        cache_dir: Folder of the reply cache.
        cache_ttl: Number of seconds for which a cached reply is valid; None for no expiry.
        api_key: The provider's API key; never shown, written or cached. If None, the key in `api_key_env` is
            used. If both are None, the variable is the provider's without `api_base`, and otherwise
            `OPENAI_API_KEY` for OpenAI's own address and `AUTORUBRIC_API_KEY` for any other.
        api_key_env: Name of the environment variable with the key; read when the model is first used.
        api_base: Address of the API, such as `http://localhost:8000/v1`.
        transport: `litellm`, `openai_compatible` (direct; requires `api_base`), or `auto`, which is direct if
            `api_base` is set and the model's prefix is OpenAI-compatible, unknown or missing; else `litellm`.
            `systemone_decisions` and `openai_decisions` are the contracts of a `DecisionModelJudge`.
        fallbacks: Models to try, in order, if this model fails permanently. A plain name inherits this config
            except its prices; it inherits address, key and headers only if its provider prefix is the same.
        thinking: Reasoning options; the name of a level is also accepted.
        prompt_caching: Whether to mark the shared prefix of prompts for providers that require this.
        seed: Sampling seed, for providers that support one.
        extra_headers: Additional HTTP headers. Their values are never shown; manifests contain their digests.
        extra_params: Additional request parameters in the provider's format. If a name indicates a secret
            (`accessToken`, `x_key`, `password`), the parameter is treated like a header and never cached.
        logprobs: Number of most probable tokens, 1 to 20, whose log-probabilities are requested for each
            token of a reply, so that votes have the probabilities of all answers.
        truncate: Part to omit from a submission that is too long for the model: its `start`, `middle` or
            `end`. Of a conversation, whole turns are omitted. The model is shown what is omitted, and the
            vote records the rest. None raises a `ContextLengthError` instead.
        takes_images: Whether the model takes images. None if this is unknown; a model takes them then only if
            litellm lists it as one that does, and a submission with images is refused otherwise.
        input_cost_per_token: Cost in US dollars per token sent, at least 0, such as 0.15e-6 for 15 cents per
            million; overrides litellm's price list and must be set together with `output_cost_per_token`.
        output_cost_per_token: Cost in US dollars per token received, including reasoning, at least 0.
    """

    model: Annotated[str, AfterValidator(_model_name)]
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1)
    max_reason_chars: int | None = Field(default=REASON_LENGTH, ge=1)
    top_p: float | None = Field(default=None, gt=0, le=1)
    timeout: float = Field(default=60.0, gt=0)
    max_retries: int = Field(default=3, ge=0)
    retry_min_wait: float = Field(default=1.0, ge=0)
    retry_max_wait: float = Field(default=60.0, ge=0)
    max_parallel_requests: int | None = Field(default=None, ge=1)
    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)
    cache_enabled: bool = False
    cache_dir: Path = Path(".autorubric_cache")
    cache_ttl: float | None = Field(default=None, gt=0)
    api_key: SecretStr | None = Field(default=None, exclude=True, repr=False)
    api_key_env: str | None = None
    api_base: Annotated[str, AfterValidator(_address)] | None = None
    transport: TransportName | str = "auto"
    fallbacks: tuple[
        Annotated[
            Annotated[str, Tag(f"{_UNION_TAG}name")] | Annotated[LLMConfig, Tag(f"{_UNION_TAG}config")],
            Discriminator(lambda given: f"{_UNION_TAG}{'name' if isinstance(given, str) else 'config'}"),
        ],
        ...,
    ] = ()
    thinking: ThinkingConfig | None = None
    prompt_caching: bool = True
    seed: int | None = None
    extra_headers: dict[str, SecretStr] = Field(default_factory=dict, exclude=True, repr=False)
    extra_params: dict[str, Any] = Field(default_factory=dict)
    logprobs: StrictInt | None = Field(default=None, ge=1, le=20)
    truncate: TruncatePolicy | None = None
    takes_images: bool | None = None
    input_cost_per_token: float | None = Field(default=None, ge=0)
    output_cost_per_token: float | None = Field(default=None, ge=0)

    @field_validator(
        *("temperature", "max_tokens", "top_p", "timeout", "max_retries", "retry_min_wait", "retry_max_wait"),
        *("max_parallel_requests", "requests_per_minute", "tokens_per_minute", "cache_ttl", "seed"),
        *("max_reason_chars", "logprobs", "transport", "truncate", "cache_enabled", "prompt_caching"),
        *("input_cost_per_token", "output_cost_per_token"),
        mode="wrap",
    )
    @classmethod
    def _show_given(cls, given: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(given)
        except ValidationError as error:
            faults = "; ".join(fault["msg"] for fault in error.errors(include_url=False))
            raise ValueError(f"{faults}; got {given!r}") from None

    @field_validator("transport")
    @classmethod
    def _check_transport(cls, name: str) -> str:
        if name not in get_args(TransportName) and name not in extension_names(TRANSPORTS_GROUP):
            allowed = ", ".join(map(repr, [*get_args(TransportName), *extension_names(TRANSPORTS_GROUP)]))
            raise ValueError(
                f"should be {allowed} or in the entry point group {TRANSPORTS_GROUP!r}; got {name!r}"
            )
        return name

    @field_validator("api_key", mode="before")
    @classmethod
    def _check_key(cls, key: Any) -> Any:
        text = key.get_secret_value() if isinstance(key, SecretStr) else key
        if not isinstance(text, str):
            return key
        text = text.strip()
        if not text:
            return None
        if _CONTROL.search(text) or not text.isascii():
            raise ValueError("the key has line breaks, control or non-ASCII characters; pass only the key")
        return SecretStr(text)

    @field_validator("api_key_env")
    @classmethod
    def _check_variable(cls, name: str | None) -> str | None:
        # A key given by mistake must not be shown in the error.
        if name is not None and not _VARIABLE.fullmatch(name):
            raise ValueError("api_key_env must be the name of an environment variable, such as MY_API_KEY")
        return name

    @field_validator("fallbacks", mode="before")
    @classmethod
    def _check_fallbacks(cls, given: Any) -> Any:
        given = (given,) if isinstance(given, str | LLMConfig) else given
        if isinstance(given, list | tuple):
            return tuple(_model_name(one) if isinstance(one, str) else one for one in given)
        return given

    @field_validator("thinking", mode="before")
    @classmethod
    def _check_thinking(cls, given: Any) -> Any:
        return {"level": given.lower()} if isinstance(given, str) else given

    @field_validator("extra_headers")
    @classmethod
    def _check_headers(cls, headers: dict[str, SecretStr]) -> dict[str, SecretStr]:
        for name, value in headers.items():
            if not _HEADER_NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not a valid header name; use letters, digits and -")
            if _CONTROL.search(value.get_secret_value()):
                raise ValueError(f"the value of header {name!r} has line breaks or control characters")
            if is_digest(value.get_secret_value()):
                raise ValueError(
                    f"the value of header {name!r} is a digest from a manifest; pass the value itself"
                )
        return headers

    @field_validator("extra_params")
    @classmethod
    def _check_params(cls, params: dict[str, Any]) -> dict[str, Any]:
        reserved = sorted(_RESERVED_PARAMS & set(params))
        if reserved:
            raise ValueError(
                f"extra_params must not contain {', '.join(reserved)}, which the library sets itself; "
                "use the LLMConfig parameter for it, if there is one"
            )
        digests = sorted(name for name, value in params.items() if is_digest(value))
        if digests:
            raise ValueError(
                f"{', '.join(digests)} in extra_params is a digest from a manifest; pass the value itself"
            )
        try:
            json.dumps(params, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            raise ValueError(
                "extra_params must be plain JSON: None, bool, numbers, strings, lists, dicts"
            ) from None
        return params

    def check_together(self) -> None:
        """Reject parameters that contradict each other."""
        if self.retry_max_wait < self.retry_min_wait:
            raise ValueError(
                "retry_max_wait must be at least retry_min_wait; "
                f"got {self.retry_max_wait} and {self.retry_min_wait}"
            )
        if self.transport == "openai_compatible" and self.api_base is None:
            raise ValueError(
                "transport 'openai_compatible' requires api_base, such as 'https://api.openai.com/v1'"
            )
        if self.api_key is not None and self.api_key_env is not None:
            raise ValueError("api_key and api_key_env are both set; set only one of them")
        if (self.input_cost_per_token is None) != (self.output_cost_per_token is None):
            raise ValueError(
                f"input_cost_per_token is {self.input_cost_per_token}, but output_cost_per_token is "
                f"{self.output_cost_per_token}; set both (0 if free) or neither"
            )
        if self.logprobs is not None and not self.extra_params.keys().isdisjoint(LOGPROBS):
            raise ValueError("logprobs and extra_params both request log-probabilities; set only logprobs")
        nested = [f.model for f in self.fallbacks if isinstance(f, LLMConfig) and f.fallbacks]
        if nested:
            raise ValueError(f"fallback {nested[0]!r} has its own fallbacks; list all models here, in order")

    @field_serializer("extra_params")
    def _public_params(self, params: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in params.items() if not holds_secret(name, value)}

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Yield the parameters shown in the repr: those that differ from their defaults, without secrets."""
        known = type(self).model_fields
        for name, value in super().__repr_args__():
            if name == "extra_params":
                value = self._public_params(self.extra_params)
            if name is None or name == "model" or value != known[name].get_default(call_default_factory=True):
                yield name, value

    @classmethod
    def from_yaml(cls, path: str | Path) -> LLMConfig:
        """Read a config from a YAML file that maps parameter names to values.

        Raises:
            FileError: If the file cannot be read or has errors; all errors are reported at once.
        """
        document = parse_structured(read_text(path), "yaml", source=str(path))
        faults = document.faults()
        if not isinstance(document.data, dict):
            faults.add((), "must be a mapping of parameters, such as 'model: gpt-6-luna'")
            faults.raise_as(FileError)
        try:
            return cls.model_validate(document.data)
        except ValidationError as error:
            for detail in error.errors(include_url=False, include_context=False, include_input=False):
                place = tuple(part for part in detail["loc"] if not str(part).startswith(_UNION_TAG))
                faults.add(place, detail["msg"])
        faults.raise_as(FileError)
        raise AssertionError("a failed validation must have errors")

    def to_yaml(self, path: str | Path) -> None:
        """Write the config to a YAML file, without keys, header values and other secrets.

        Raises:
            FileError: If the file cannot be written.
        """
        write_text_atomic(path, dump_structured(self.model_dump(mode="json"), "yaml"))

    def to_dict(self) -> dict[str, Json]:
        """Return every parameter as JSON, as stored in a run's manifest.

        The key and the name of its variable are omitted. The values of headers and of secret parameters are
        replaced by digests (`sha256:1a2b3c4d`), so that changes can be detected.
        """
        said = self.model_dump(mode="json")
        del said["api_key_env"]
        said["fallbacks"] = [one if isinstance(one, str) else one.to_dict() for one in self.fallbacks]
        said["extra_params"] |= {name: digest_of(value) for name, value in self.secret_params().items()}
        if self.extra_headers:
            said["extra_headers"] = {name: digest_of(value) for name, value in self.headers().items()}
        return said

    def request_params(self) -> dict[str, Json]:
        """Return sampling and extra request parameters in the provider's (OpenAI) format, without secrets."""
        given = {name: getattr(self, name) for name in ("temperature", "top_p", "max_tokens", "seed")}
        params = {name: value for name, value in given.items() if value is not None}
        thinking = self.thinking.to_params() if self.thinking else {}
        tokens = {} if self.logprobs is None else dict(zip(LOGPROBS, (True, self.logprobs), strict=True))
        return {**params, **thinking, **tokens, **self._public_params(self.extra_params)}

    @property
    def bounds_replies(self) -> bool:
        """Whether the parameters limit the reply's length or make the model reason before it replies."""
        params = {name for name, value in self.request_params().items() if not _is_off(value)}
        return not _LENGTH_PARAMS.isdisjoint(params)

    def secret_params(self) -> dict[str, Json]:
        """Return the extra parameters that contain secrets; they are sent but never shown or stored."""
        return {name: value for name, value in self.extra_params.items() if holds_secret(name, value)}

    def headers(self) -> dict[str, str]:
        """Return the extra headers with their real values."""
        return {name: value.get_secret_value() for name, value in self.extra_headers.items()}

    def public_headers(self) -> dict[str, str]:
        """Return the extra headers, with empty values for headers that contain a secret."""
        return {name: "" if is_secret_name(name) else value for name, value in self.headers().items()}

    def key(self) -> str | None:
        """Return the key from `api_key` or the variable named by `api_key_env`, or None if neither is set.

        Raises:
            AuthenticationError: If the environment variable is not set or is empty.
        """
        if self.api_key is not None:
            return self.api_key.get_secret_value()
        if self.api_key_env is None:
            return None
        key = os.environ.get(self.api_key_env, "").strip()
        if not key:
            why = unset_variable("api_key_env", self.api_key_env)
        elif _CONTROL.search(key) or not key.isascii():
            why = f"the key in {self.api_key_env} has control or non-ASCII characters"
        else:
            return key
        raise AuthenticationError(f"{self.model}: {why}", model=self.model)

    def secrets(self) -> tuple[str, ...]:
        """Return all secrets in the config, for masking them in texts."""
        held = self.api_key.get_secret_value() if self.api_key else None
        if held is None and self.api_key_env is not None:
            held = os.environ.get(self.api_key_env, "").strip()
        key = (held,) if held else ()
        return (*key, *self.headers().values(), *texts_in(self.secret_params()))

    def fallback_configs(self) -> tuple[LLMConfig, ...]:
        """Return the fallbacks as configs, in order; a key is passed on only to the same provider."""
        return tuple(self._fallback(one) if isinstance(one, str) else one for one in self.fallbacks)

    def _fallback(self, model: str) -> LLMConfig:
        update: dict[str, Any] = {"model": model, "fallbacks": ()}
        # Another model has another price, and may not take images.
        update |= dict.fromkeys(("input_cost_per_token", "output_cost_per_token", "takes_images"))
        # Names without a prefix can belong to several providers, but not at one address.
        is_same = prefix_of(model) == prefix_of(self.model) if self.api_base else False
        if not is_same and owner_of(model) != owner_of(self.model):
            update |= {
                **dict.fromkeys(("api_base", "api_key", "api_key_env")),
                "extra_headers": {},
                "transport": "auto",
                "extra_params": self._public_params(self.extra_params),
            }
        return self.model_copy(update=update)
