"""The litellm transport, for about a hundred providers; the only module that imports litellm.

The import happens at the first send.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Final, NoReturn

from autorubric.errors import (
    AuthenticationError,
    BudgetError,
    MissingDependencyError,
    ModelNotFoundError,
    ProviderConnectionError,
    ProviderError,
    ProviderTimeoutError,
    RequestRefusedError,
    SchemaRefusedError,
    ServerError,
)
from autorubric.llm.config import LLMConfig
from autorubric.llm.decision_wire import decisions_in
from autorubric.llm.interception import interception_in_force
from autorubric.llm.local_window import TimeLimit
from autorubric.llm.names import OPENAI_COMPATIBLE, UNKNOWN_TO_LITELLM, needs_address, prefix_of, wire_name
from autorubric.llm.openai import key_of, rejected_key
from autorubric.llm.provider_errors import (
    OWN_ADDRESS,
    TAKES_OPENAI_KEY,
    ProviderFailure,
    advice_before_import,
    error_of,
    is_filtered,
    key_advice,
    masked_error,
    missing_variables,
    named_variables,
    never_connected,
    refusal_of,
    retry_after_of,
    says_key_is_missing,
    says_key_is_wrong,
    unreachable,
    was_sent,
)
from autorubric.llm.specs import Mask, environment_secrets
from autorubric.llm.transport import LARGEST_ANSWER, Message, ModelReply, ModelRequest
from autorubric.llm.wire import error_in, reply_in, response_format, token_limit
from autorubric.support.objects import Json

if TYPE_CHECKING:
    from autorubric.llm.litellm_clients import Guard


_STOLEN_VERSIONS: Final = ("1.82.7", "1.82.8")
_DROPPABLE: Final = frozenset(
    {
        *("temperature", "top_p", "max_tokens", "max_completion_tokens", "seed", "stop", "user", "verbosity"),
        *("reasoning_effort", "thinking", "logprobs", "top_logprobs", "logit_bias", "service_tier"),
        *("frequency_penalty", "presence_penalty"),
    }
)
"""Parameters with the same meaning for all providers; omitted for providers that do not support them."""
_MOST_MARKS: Final = 4
_FIRST_FAILURE: Final = 300
_SHOWN: Final = 200
_TRACEBACK: Final = "Traceback (most recent call last)"


class LiteLLMTransport:
    expected = "a chat completion"

    def __init__(self, config: LLMConfig) -> None:
        self._config = config
        self._limit = TimeLimit(config)
        self._mask = Mask(config.secrets())
        self._is_claude = "claude" in config.model.lower()
        self._refused_params: set[str] = set()
        self._fixed: dict[str, Any] | None = None
        self._supported: frozenset[str] | None = None
        # Reasoning would count towards a limit on the reply's tokens.
        self._reasons = True
        self._provider = ""
        self._key_note = ""
        self._forbidden: dict[str, str] = {}

    async def send(self, request: ModelRequest) -> ModelReply:
        if self._fixed is None and self._uses_own_key() and advice_before_import(self._config.model):
            self._fail(AuthenticationError, advice_before_import(self._config.model))
        if self._config.api_base is None and needs_address(self._config.model):
            self._fail(ModelNotFoundError, "the address of your server is not set; use --api-base (api_base)")
        litellm = _litellm() if _litellm.cache_info().currsize else await asyncio.to_thread(_litellm)
        # Imported here, because the module loads httpx.
        from autorubric.llm.litellm_clients import close_with_loop

        await close_with_loop(litellm)
        if self._fixed is None:
            self._fixed = self._fixed_arguments(litellm)
        while True:
            arguments, dropped = self._arguments(request, self._fixed)
            outcome = await self._outcome(litellm, arguments)
            if not isinstance(outcome, litellm.UnsupportedParamsError):
                break
            # litellm names the parameters that the model does not support with these values.
            said = str(outcome)
            named = {name for name in _DROPPABLE | {"response_format"} if name in arguments and name in said}
            if not named:
                self._fail(RequestRefusedError, said)
            self._refused_params |= named
        if isinstance(outcome, ModelReply):
            return outcome
        if isinstance(outcome, ProviderError | BudgetError):
            raise outcome
        if isinstance(outcome, TimeoutError):
            self._fail(ProviderTimeoutError, f"no answer within {self._limit.seconds:g} s")
        if isinstance(outcome, Exception):
            return self._refuse(litellm, request, outcome)
        return self._read(request, outcome, dropped)

    async def _outcome(self, litellm: Any, arguments: Mapping[str, Any]) -> Any:
        """Return litellm's response or its error; raising the error would chain it, including any keys."""
        from autorubric.llm.litellm_clients import Guard, guard_requests

        guard = Guard(LARGEST_ANSWER, self._forbidden)
        try:
            with guard_requests(litellm, guard):
                async with asyncio.timeout(self._limit.seconds):
                    # Our own timeout fires first; this one keeps litellm from stopping earlier.
                    limit, began = self._limit.seconds + 5.0, time.perf_counter()
                    response = await self._call(litellm, {**arguments, "timeout": limit})
                    self._limit.note_answer(time.perf_counter() - began)
                    return response
        except Exception as error:
            # The clients of many providers end here, and may raise any exception.
            interception = interception_in_force()
            if interception is not None and interception.request and interception.reply is None:
                return BudgetError("the request is kept for a batch")
            if guard.problem is not None:
                return masked_error(guard.problem[0], self._config.model, guard.problem[1], self._mask)
            # For errors about keys.
            key, variable = self._config.api_key, self._config.api_key_env
            variable = variable or guard.sent_variable(environment_secrets())
            if not self._key_note and guard.request is not None and (key or variable):
                self._key_note = rejected_key(None if key else variable, guard.address())
            if guard.is_complete and not isinstance(error, litellm.ContentPolicyViolationError):
                return self._unusable(guard, had_schema="response_format" in arguments) or error
            return error

    async def _call(self, litellm: Any, arguments: Mapping[str, Any]) -> Any:
        return await litellm.acompletion(**arguments)

    def _unusable(self, guard: Guard, *, had_schema: bool) -> ProviderError | ModelReply | None:
        """Return the error or refusal in a successful response that litellm cannot read."""
        # litellm's own errors have a status that the server did not send.
        if guard.request is None or guard.status >= _FIRST_FAILURE:
            return None
        address, model = guard.request.url.copy_with(query=None), self._config.model
        try:
            envelope = json.loads(guard.body)
        except (ValueError, RecursionError):
            shown = self._mask.error(guard.body.decode("utf-8", "replace"))[:_SHOWN]
            what = f"the response from {address} is not JSON: {shown!r}"
            return masked_error(ServerError, model, what, self._mask)
        if (fault := error_in(envelope)) is None:
            what = f"the response from {address} is not {self.expected}; check api_base"
            return masked_error(ServerError, model, what, self._mask)
        failure = ProviderFailure(
            model=model,
            status=fault[0] or guard.status,
            text=fault[1],
            had_schema=had_schema,
            key=self._key_note,
            address=str(address),
        )
        return refusal_of(failure, self._mask) if is_filtered(failure) else error_of(failure, self._mask)

    async def aclose(self) -> None:
        if _litellm.cache_info().currsize:
            from autorubric.llm.litellm_clients import close_idle

            await close_idle(_litellm())

    def _fixed_arguments(self, litellm: Any) -> dict[str, Any]:
        """Return the arguments that are the same in every call to this model."""
        config = self._config
        name, provider = self._name_and_provider(litellm)
        # litellm returns None for models that it does not know.
        self._supported = frozenset(litellm.get_supported_openai_params(model=name) or ()) or None
        # Anthropic's models reason only if they are asked to, and `Route` then sets no limit.
        self._reasons = _reasons(litellm, name) and not self._is_claude
        key = config.key()
        self._provider = provider
        if self._uses_own_key() and missing_variables(litellm, name, provider):
            # The provider's response may take long.
            self._fail_without_key(litellm, name)
        secrets = environment_secrets()
        if config.api_base is not None and provider not in OWN_ADDRESS:
            key, self._key_note = key_of(config)
            self._mask = Mask((*config.secrets(), key or ""))
            own = "\n".join((key or "", *config.secrets(), config.api_base))
            self._forbidden = {one: value for one, value in secrets.items() if value not in own}
            # Without a key, litellm sends the provider's key, or OPENAI_API_KEY, to any address.
            key = key or "none"
        elif key is None and provider not in TAKES_OPENAI_KEY:
            # litellm sends it to many providers whose own key is missing.
            foreign = secrets.pop("OPENAI_API_KEY", None)
            if foreign is not None and foreign not in secrets.values():
                self._forbidden = {"OPENAI_API_KEY": foreign}
        given = {"api_key": key, "api_base": config.api_base, "extra_headers": config.headers() or None}
        return {
            "model": name,
            "num_retries": 0,
            "max_retries": 0,
            **{argument: value for argument, value in given.items() if value is not None},
            **config.secret_params(),
        }

    def _uses_own_key(self) -> bool:
        """Return whether the key is the one that litellm reads for the provider's usual address."""
        one = self._config
        return not (one.api_base or one.api_key or one.api_key_env or one.secret_params() or one.headers())

    def _fail_without_key(self, litellm: Any, name: str) -> NoReturn:
        names = named_variables(litellm, name, self._provider)
        self._fail(AuthenticationError, key_advice(self._provider, names))

    def _name_and_provider(self, litellm: Any) -> tuple[str, str]:
        model, base = self._config.model, self._config.api_base
        if prefix_of(model) in UNKNOWN_TO_LITELLM:
            return f"openai/{wire_name(model)}", "openai"
        try:
            provider: str = litellm.get_llm_provider(model=model, api_base=base)[1]
        except litellm.BadRequestError:
            provider = ""
        if provider:
            return model, provider
        if base is not None:
            return f"openai/{model}", "openai"
        prefixes = ", ".join(sorted(OPENAI_COMPATIBLE - UNKNOWN_TO_LITELLM))
        why = (
            "the name has no known provider; add a prefix, such as 'anthropic/…', "
            f"or set api_base for your own server (prefixes: {prefixes})"
        )
        raise masked_error(ModelNotFoundError, model, why, self._mask)

    def _arguments(
        self, request: ModelRequest, fixed: Mapping[str, Any]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        unsupported = {name for name in request.params if name in _DROPPABLE and not self._takes(name)}
        if request.schema is not None and not self._takes("response_format"):
            self._fail(SchemaRefusedError, "the provider does not support response formats")
        params = {name: value for name, value in request.params.items() if name not in unsupported}
        wants_marks = self._config.prompt_caching and self._is_claude
        marked = [place for place, one in enumerate(request.messages) if wants_marks and one.cache_prefix > 0]
        kept = set(marked[-_MOST_MARKS:])
        messages = [
            {"role": one.role, "content": _mark_prefix(one) if place in kept else one.wire_content()}
            for place, one in enumerate(request.messages)
        ]
        arguments = {**params, **fixed, "messages": messages}
        if request.schema is not None:
            if request.schema.max_chars is not None and self._takes("max_tokens") and not self._reasons:
                arguments.setdefault("max_tokens", token_limit(request.schema.max_chars))
            arguments["response_format"] = response_format(request.schema)
        return arguments, tuple(sorted(unsupported))

    def _takes(self, name: str) -> bool:
        return name not in self._refused_params and (self._supported is None or name in self._supported)

    def _read(self, request: ModelRequest, response: Any, dropped: tuple[str, ...]) -> ModelReply:
        reply = self._reply_in(response, request.model)
        if reply is None:
            self._fail(ServerError, f"the response is not {self.expected}; check api_base")
        cost = (getattr(response, "_hidden_params", None) or {}).get("response_cost")
        known = float(cost) if isinstance(cost, int | float) else None
        return self._mask.reply(reply)._replace(cost=known, dropped_params=dropped)

    def _reply_in(self, response: Any, model: str) -> ModelReply | None:
        return reply_in(_envelope(response), model)

    def _refuse(self, litellm: Any, request: ModelRequest, error: Exception) -> ModelReply:
        text = str(error).partition(_TRACEBACK)[0]
        is_connection = isinstance(error, litellm.APIConnectionError)
        if never_connected(error):
            advice = "check the network, or set api_base for your own server"
            raise unreachable(
                self._config.model, f"cannot connect to the provider; {advice}: {text}", self._mask
            )
        if not self._key_note and not _headers_of(error) and says_key_is_missing(text):
            self._fail_without_key(litellm, (self._fixed or {}).get("model", self._config.model))
        status = 0
        with suppress(TypeError, ValueError):
            status = int(getattr(error, "status_code", 0) or 0)
        failure = ProviderFailure(
            model=request.model,
            # litellm detects a missing key before it sends anything, and often reports a broken connection.
            status=401 if is_connection and says_key_is_wrong(text) else status,
            text=text,
            retry_after=retry_after_of(_headers_of(error)),
            had_schema=request.schema is not None,
            key=self._key_note,
            address=self._config.api_base or "" if prefix_of(request.model) in OPENAI_COMPATIBLE else "",
        )
        if isinstance(error, litellm.ContentPolicyViolationError) or is_filtered(failure):
            return refusal_of(failure, self._mask)
        if isinstance(error, litellm.Timeout):
            self._fail(ProviderTimeoutError, f"no answer within {self._limit.seconds:g} s: {text}")
        if (is_connection and failure.status != 401) or "Connection error" in text:
            if not was_sent(error):
                raise unreachable(self._config.model, f"the request could not be sent: {text}", self._mask)
            self._fail(ProviderConnectionError, f"the connection failed: {text}")
        if failure.status == 0:
            self._fail(RequestRefusedError, f"{type(error).__name__}: {text}")
        raise error_of(failure, self._mask)

    def _fail(self, kind: type[ProviderError], message: str) -> NoReturn:
        raise masked_error(kind, self._config.model, message, self._mask)


class LiteLLMDecisions(LiteLLMTransport):
    """A transport for decision models of any provider, through litellm's `systemone` and `decisions`."""

    expected = "an answer to questions"

    async def _call(self, litellm: Any, arguments: Mapping[str, Any]) -> Any:
        return await (litellm.asystemone if "state" in arguments else litellm.adecisions)(**arguments)

    def _arguments(self, request: ModelRequest, fixed: Mapping[str, Any]) -> Any:
        return {**request.params, **json.loads(request.messages[0].content), **fixed}, ()

    def _reply_in(self, response: Any, model: str) -> ModelReply | None:
        return decisions_in(response.model_dump(mode="json"), model)


@cache
def listed_price(model: str, suffix: str = "") -> tuple[float, float] | None:
    """Return the prices, or those in batches (`_batches`), in US dollars per token sent and received."""
    entry = _listed(model)
    sent, received = (entry.get(f"{side}_cost_per_token{suffix}") for side in ("input", "output"))
    if isinstance(sent, int | float) and isinstance(received, int | float):
        return float(sent), float(received)
    return None


def is_listed_with_images(model: str) -> bool:
    return bool(_listed(model).get("supports_vision"))


def _listed(model: str) -> Mapping[str, Any]:
    """Return a model's entry in litellm's table; empty if it has none."""
    # litellm's own lookup is not used, because it queries local servers over the network.
    listed = _litellm().model_cost
    entry = listed.get(model)
    if entry is None and prefix_of(model):
        entry = listed.get(model.partition("/")[2])
        if entry is not None and entry.get("litellm_provider") != prefix_of(model):
            return {}
    return entry or {}


@cache
def _litellm() -> Any:
    """Import litellm, without output and telemetry and with its bundled price map."""
    try:
        found = version("litellm")
    except PackageNotFoundError:
        raise MissingDependencyError(
            "litellm is not installed; install it with `pip install litellm`, or use your own server "
            "with transport='openai_compatible'"
        ) from None
    if found in _STOLEN_VERSIONS:
        raise MissingDependencyError(
            f"litellm {found} was published by an attacker and steals credentials, so it is not imported. "
            "Install another version, and replace all keys that this environment has access to"
        )
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    for name in ("LiteLLM", "LiteLLM Proxy", "LiteLLM Router"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # These loggers write headers and addresses, which may contain keys.
    for name in ("httpcore", "httpx", "openai"):
        logging.getLogger(name).setLevel(logging.WARNING)
    return litellm


def _reasons(litellm: Any, name: str) -> bool:
    """Return whether litellm's table says that the model reasons; litellm's own function uses the network."""
    known = litellm.model_cost.get(name) or litellm.model_cost.get(name.partition("/")[2]) or {}
    return bool(known.get("supports_reasoning"))


def _mark_prefix(message: Message) -> list[dict[str, Json]]:
    start, rest = message.content[: message.cache_prefix], message.content[message.cache_prefix :]
    parts = message.wire_content()
    if isinstance(parts, str):
        parts = [{"type": "text", "text": text} for text in (start, rest) if text]
    parts[-2 if rest else -1]["cache_control"] = {"type": "ephemeral"}
    return parts


def _envelope(response: Any) -> dict[str, Json]:
    """Return the parts of litellm's response that are read, in OpenAI format; a full dump is slower."""
    choices = []
    for choice in (getattr(response, "choices", None) or [])[:1]:
        message = choice.message
        extras = getattr(message, "provider_specific_fields", None) or {}
        said = {
            "content": message.content,
            "refusal": getattr(message, "refusal", None) or extras.get("refusal"),
            "reasoning_content": getattr(message, "reasoning_content", None),
        }
        logprobs: Any = getattr(choice, "logprobs", None)
        told = logprobs.model_dump() if hasattr(logprobs, "model_dump") else logprobs
        choices.append({"finish_reason": choice.finish_reason, "message": said, "logprobs": told})
    return {
        "id": getattr(response, "id", None),
        "model": response.model,
        "choices": choices,
        "usage": _usage(getattr(response, "usage", None)),
    }


def _usage(usage: Any) -> dict[str, Json] | None:
    if usage is None:
        return None
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    caches = ("cache_creation_input_tokens", "cache_read_input_tokens")
    details = getattr(usage, "prompt_tokens_details", None)
    return {
        **{name: getattr(usage, name, 0) for name in (*names, *caches)},
        "prompt_tokens_details": {"cached_tokens": getattr(details, "cached_tokens", 0)},
    }


def _headers_of(error: Exception) -> Mapping[str, str]:
    response = getattr(error, "response", None)
    for headers in (getattr(error, "litellm_response_headers", None), getattr(response, "headers", None)):
        if headers:
            return {str(name).lower(): str(value) for name, value in dict(headers).items()}
    return {}
