"""Language models: configs, the transport interface, and the client that sends questions to them.

A request passes through `Cache(Retry(Spend(Limit(Provider))))`: a cache hit costs nothing and takes no slot,
and a retry holds no slot while it waits. No heavy module is imported and no connection is opened before the
first request is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from autorubric._late import loading

if TYPE_CHECKING:
    from autorubric.llm._cache import CacheStats, ReplyCache
    from autorubric.llm._client import LLMClient, generate, generate_sync
    from autorubric.llm._config import LLMConfig, ThinkingConfig, ThinkingLevel, TransportName, TruncatePolicy
    from autorubric.llm._exchange import Exchange
    from autorubric.llm._json import parse_json, parse_json_list, parse_reply, without_thinking
    from autorubric.llm._names import owner_of, prefix_of, unset_variable
    from autorubric.llm._prices import CHARACTERS_PER_TOKEN, PRICE_IT, Price, Pricing, prompt_tokens
    from autorubric.llm._retry import listen_to_retries, without_retries
    from autorubric.llm._route import pricings_of, spending_limit, unknown_prices
    from autorubric.llm._secrets import holds_secret
    from autorubric.llm._spending import (
        Budget,
        Spending,
        SpendingLimit,
        SpendingLimitName,
        budget_in_force,
        one_call,
        spending_within,
    )
    from autorubric.llm._transport import Message, ModelReply, ModelRequest, ReplySchema, Role, Transport

__all__ = [
    "CHARACTERS_PER_TOKEN", "PRICE_IT", "Budget", "CacheStats", "Exchange", "LLMClient",
    "LLMConfig", "Message", "ModelReply", "ModelRequest", "Price", "Pricing", "ReplyCache",
    "ReplySchema", "Role", "Spending", "SpendingLimit", "SpendingLimitName", "ThinkingConfig",
    "ThinkingLevel", "Transport", "TransportName", "TruncatePolicy", "budget_in_force", "generate",
    "generate_sync", "holds_secret", "listen_to_retries", "one_call", "owner_of", "parse_json",
    "parse_json_list", "parse_reply", "prefix_of", "pricings_of", "prompt_tokens",
    "spending_limit", "spending_within", "unknown_prices", "unset_variable", "without_retries",
    "without_thinking",
]  # fmt: skip

_HOMES = {
    "_spending": (
        "Budget", "Spending", "SpendingLimit", "SpendingLimitName", "budget_in_force", "one_call",
        "spending_within",
    ),
    "_prices": ("CHARACTERS_PER_TOKEN", "PRICE_IT", "Price", "Pricing", "prompt_tokens"),
    "_cache": ("CacheStats", "ReplyCache"),
    "_exchange": ("Exchange",),
    "_client": ("LLMClient", "generate", "generate_sync"),
    "_config": ("LLMConfig", "ThinkingConfig", "ThinkingLevel", "TransportName", "TruncatePolicy"),
    "_transport": ("Message", "ModelReply", "ModelRequest", "ReplySchema", "Role", "Transport"),
    "_secrets": ("holds_secret",),
    "_retry": ("listen_to_retries", "without_retries"),
    "_json": ("parse_json", "parse_json_list", "parse_reply", "without_thinking"),
    "_names": ("owner_of", "prefix_of", "unset_variable"),
    "_route": ("pricings_of", "spending_limit", "unknown_prices"),
}  # fmt: skip

__getattr__ = loading(__name__, _HOMES)
