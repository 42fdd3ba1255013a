"""The route to one model: its config, the composed transport, and its cache."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, get_args

from autorubric.errors import ArgumentError, ContextLengthError, RequestRefusedError, SchemaRefusedError
from autorubric.llm.budget import (
    PRICE_IT,
    BudgetTransport,
    Priced,
    Pricing,
    SpendingLimit,
    own_price,
    pricing_of,
)
from autorubric.llm.cache import ReplyCache, cache_key
from autorubric.llm.config import LOGPROBS, LLMConfig, TransportName
from autorubric.llm.decision_wire import WIRES
from autorubric.llm.interception import BATCHES
from autorubric.llm.local_window import local_server
from autorubric.llm.names import is_openai_itself, provider_of, speaks_openai
from autorubric.llm.openai import OpenAITransport
from autorubric.llm.provider_errors import refuses_roles
from autorubric.llm.rate_limits import Limit, RequestLimits
from autorubric.llm.retry import Retry, RetryPolicy
from autorubric.llm.transport import (
    Allowance,
    Message,
    ModelQuestion,
    ModelReply,
    ModelRequest,
    Transport,
    with_text_at_end,
    without_system,
)
from autorubric.llm.wire import CHAT, bounded_schema, has_lengths
from autorubric.support.extensions import TRANSPORTS_GROUP, load_extension

_NAMES_REPLY = re.compile(r"max_(completion_|output_|new_)?tokens|completion", re.IGNORECASE)
"""Matches errors about the reply's token limit; the request is then sent again without the limit."""
_TOO_MANY = re.compile(r"logprob.{0,80}\b(max\w*|at most|greater|less|between|exceed\w*)\b", re.IGNORECASE)
"""Matches errors about too many log-probabilities, which the user must correct."""
_OPTIONAL = ("top_p", "seed", "temperature")
"""Parameters without which a request is sent again if the provider does not support them."""
_NOT_SUPPORTED = re.compile(
    r"\A(?!.*(?:\brange\b|\d (?:to|and) -?\d|\bup to -?\d|[\[(]\s*-?[\d.]+\s*,|\bat (?:most|least)\b|[≤≥]|"
    r"(?:less|greater) than|maximum|minimum|<=|>=)).*?(?:unsupported|unavailable|fixed at|unrecogni|unknown|"
    r"\b(?:not|n['’]t|cannot|no)\b.{0,30}\b(?:support|permi|allow|accept|recogni|valid|both|availab)|"
    r"unexpected|extraneous|deprecated|omitted|disabled|\binvalid (?:parameter|argument)|"
    r"\bonly\b.{0,40}\b(?:allowed|supported|permitted|set to)\b|"
    r"\bonly (?:support|accept|allow|permit|take)s? (?:the default|[^\d ]*\W\d++(?!.{0,5}\b(?:to|or|and)\b))|"
    r"(?:must|to|should|only) be (?:equal to |exactly )?\d++(?:\.\d++)?+(?! ?(?:-|\.\.|to|or|at|and)\b))",
    re.IGNORECASE | re.DOTALL,
)
"""Matches errors about a parameter that is not supported, or only with its default value, but not ranges."""

_DEFAULT_PARALLEL = 512
"""Default maximum of concurrent requests to a provider, below the usual limit on open files."""


def is_direct(config: LLMConfig) -> bool:
    """Return whether the direct transport is used for the config's model."""
    if config.transport in ("auto", *WIRES):
        return config.api_base is not None and (config.transport in WIRES or speaks_openai(config.model))
    return config.transport == "openai_compatible"


def is_extension(config: LLMConfig) -> bool:
    """Return whether an installed package provides the config's transport."""
    return config.transport not in get_args(TransportName)


def provider_transport(config: LLMConfig) -> Transport:
    """Return the transport for the config's provider; no connection is opened yet."""
    if is_direct(config):
        return OpenAITransport(config, WIRES.get(config.transport, CHAT))
    if is_extension(config):
        transport: Transport = load_extension(TRANSPORTS_GROUP, config.transport)(config)
        return transport
    from autorubric.llm.litellm_transport import LiteLLMDecisions, LiteLLMTransport

    return (LiteLLMDecisions if config.transport in WIRES else LiteLLMTransport)(config)


def pricings_of(config: LLMConfig) -> tuple[Pricing, ...]:
    """Return the prices for the config's model and its fallbacks, in order."""
    configs = (config, *config.fallback_configs())
    return tuple(pricing_of(one, direct=is_direct(one) or is_extension(one)) for one in configs)


def demand_images(config: LLMConfig) -> None:
    """Raise an `ArgumentError` if it is not known that the model takes images."""
    if config.transport in WIRES:
        raise ArgumentError(
            f"the decision model {config.model!r} is asked about texts only, but the submission or its "
            "prompt has images; use another judge"
        )
    takes = config.takes_images
    if takes is None and (config.api_base is None or is_openai_itself(config.api_base)):
        from autorubric.llm.litellm_transport import is_listed_with_images

        with suppress(ImportError):
            takes = is_listed_with_images(config.model)
    if not takes:
        known = "does not take" if config.takes_images is False else "is not known to take"
        raise ArgumentError(
            f"the model {config.model!r} {known} images, which the submission or its prompt has; use a model "
            "that takes them, or set takes_images=True in its LLMConfig (takes_images: true in a run file)"
        )


class Route:
    """A route to one model, which remembers the features that its provider does not support."""

    def __init__(self, config: LLMConfig, transport: Transport | None = None) -> None:
        self.config = config
        self.cache = ReplyCache(config.cache_dir, ttl=config.cache_ttl) if config.cache_enabled else None
        self._params = config.request_params()
        name = "openai_compatible" if is_direct(config) else "litellm"
        self._endpoint = {
            "api_base": config.api_base,
            "transport": config.transport if is_extension(config) else name,
            "headers": config.public_headers(),
        }
        provider = transport or provider_transport(config)
        price = own_price(config)
        self.provider = provider if price is None else Priced(provider, price)
        policy = RetryPolicy(
            max_retries=config.max_retries, min_wait=config.retry_min_wait, max_wait=config.retry_max_wait
        )
        limits = RequestLimits(
            parallel=config.max_parallel_requests or _DEFAULT_PARALLEL,
            requests_per_minute=config.requests_per_minute,
            tokens_per_minute=config.tokens_per_minute,
            local=local_server(config),
            patience=policy.patience,
        )
        limited = Limit(self.provider, provider_of(config.model, config.api_base), limits)
        # The budget is outside the limits, so that a request that waits for it holds no slot.
        budgeted = BudgetTransport(limited, partial(pricing_of, config, direct=is_direct(config)))
        self.transport = Retry(budgeted, policy)
        self._takes_schema = self._takes_system = True
        self._refused_params: tuple[str, ...] = ()
        is_openai = config.api_base is not None and is_openai_itself(config.api_base)
        self.is_own = own = transport is not None or is_extension(config)
        self._takes_lengths = own or (is_direct(config) and not is_openai)
        # At OpenAI's own address, models reason, and the limit includes their reasoning.
        self._limits_tokens = not config.bounds_replies and not is_openai

    def request(self, question: ModelQuestion[Any], allowance: Allowance | None = None) -> ModelRequest:
        if any(message.images for message in question.messages):
            demand_images(self.config)
        model, asked = self.config.model, question
        return ModelRequest(model, asked.messages, asked.schema, asked.sample, self._params, allowance)

    def key(self, request: ModelRequest) -> str:
        return cache_key(request, self._endpoint)

    def as_sent(self, request: ModelRequest) -> ModelRequest:
        """Return the request in a supported form: what was rejected is omitted or moves into the prompt."""
        if self._refused_params:
            params = {k: v for k, v in request.params.items() if k not in self._refused_params}
            request = request._replace(params=params)
        if not self._takes_system:
            request = request._replace(messages=without_system(request.messages))
        if request.schema is None:
            return request
        if self._takes_schema:
            bound = self.config.max_reason_chars
            schema = bounded_schema(request.schema, bound, enforced=self._takes_lengths)
            if not self._limits_tokens and schema.max_chars is not None:
                schema = replace(schema, max_chars=None)
            return request._replace(schema=schema)
        return _with_schema_in_prompt(request)

    def messages_sent(self, request: ModelRequest, reply: ModelReply) -> tuple[Message, ...]:
        """Return the messages of the request in the form that got the reply."""
        if request.schema is not None and "response_format" in reply.dropped_params:
            request = _with_schema_in_prompt(request)
        return without_system(request.messages) if "system" in reply.dropped_params else request.messages

    async def send(self, request: ModelRequest) -> ModelReply:
        """Return the reply to the request, sent again without parts that the provider does not support."""
        batches = BATCHES.get()
        if batches is None or not batches[1]:
            return await self._send(request, None)
        # A reply must not change other requests, which could not be recognized in the next process.
        return await copy(self)._send(request, batches)

    async def _send(self, request: ModelRequest, batches: tuple[Any, tuple[str, ...]] | None) -> ModelReply:
        refused = 0
        while True:
            sent = self.as_sent(request)
            try:
                if batches is None:
                    reply = await self.transport.send(sent)
                else:
                    reply = await batches[0].answer([self.key(request), refused, *batches[1]], sent, self)
                break
            except RequestRefusedError as error:
                if request.allowance is not None and not request.allowance.left:
                    raise
                request, refused = self._without_refused(request, sent, error), refused + 1
        dropped = [name for name in self._refused_params if name in request.params]
        if request.schema is not None and sent.schema is None:
            dropped.append("response_format")
        if request.messages[0].role != sent.messages[0].role:
            dropped.append("system")
        return reply._replace(dropped_params=(*reply.dropped_params, *dropped)) if dropped else reply

    def note_cut_off(self, reply: ModelReply) -> None:
        """Stop limiting tokens if a cut-off reply shows that the model reasons before it replies."""
        if BATCHES.get() is None and (reply.reasoning or "{" not in reply.text):
            self._limits_tokens = False

    def _without_refused(
        self, request: ModelRequest, sent: ModelRequest, error: RequestRefusedError
    ) -> ModelRequest:
        """Return the request to send after a rejection, without the parts that may be unsupported."""
        if self.config.logprobs and "logprobs" in sent.params and "logprob" in str(error).lower():
            if _TOO_MANY.search(str(error)):
                raise error
            self._refused_params += LOGPROBS
            return request
        if sent.messages[0].role == "system" and refuses_roles(str(error)):
            self._takes_system = False
            return request
        is_unsupported = type(error) is RequestRefusedError and _NOT_SUPPORTED.search(str(error))
        if is_unsupported and (
            named := [p for p in _OPTIONAL if p in sent.params and p in str(error).lower()]
        ):
            self._refused_params += (named[0],)
            return request
        if sent.schema is None:
            raise error
        if isinstance(error, SchemaRefusedError):
            is_exact = request.schema is not None and request.schema.exact is not sent.schema.exact
            if is_exact or has_lengths(sent.schema):
                self._takes_lengths = False
            else:
                self._takes_schema = False
            return request
        bounded = request.schema if sent.schema.max_chars is not None else None
        if bounded is None or not _NAMES_REPLY.search(str(error)):
            raise error
        if not isinstance(error, ContextLengthError):
            self._limits_tokens = False
        # Servers count the reply's tokens towards the context length.
        return request._replace(schema=replace(bounded, max_chars=None))

    async def aclose(self) -> None:
        await self.transport.aclose()
        if self.cache is not None:
            self.cache.close()


def _with_schema_in_prompt(request: ModelRequest) -> ModelRequest:
    written = json.dumps(dict(request.schema.schema if request.schema else {}), ensure_ascii=False)
    text = f"Reply with one JSON object and nothing else. It must follow this JSON schema:\n{written}"
    return request._replace(messages=with_text_at_end(request.messages, text), schema=None)


def spending_limit(
    models: Sequence[LLMConfig], *, max_calls: int | None, max_cost: float | None
) -> SpendingLimit:
    """Return a budget for requests to these models, without limits if none are set; dollars are US ones."""
    limit = SpendingLimit(max_calls=max_calls, max_cost=max_cost)
    if max_cost is not None and (unknown := unknown_prices(models)):
        told = "; ".join(f"{model} ({reason})" for model, reason in unknown.items())
        raise ArgumentError(
            f"max_cost requires the price of each model, but some are unknown: {told}; {PRICE_IT}, or set "
            "max_calls"
        )
    return limit


def unknown_prices(models: Sequence[LLMConfig]) -> dict[str, str | None]:
    """Return the models without a known price, with the reason for each."""
    return {one.model: one.reason for config in models for one in pricings_of(config) if one.price is None}
