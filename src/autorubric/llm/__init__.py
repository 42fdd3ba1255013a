"""Language models: specs, the transport seam, and the client that asks them.

A request goes through `Cache(Retry(Spend(Limit(Provider))))`: a hit costs nothing and takes no slot, and a
sleeping retry holds none. Nothing heavy is imported, and no connection opened, before the first request is
sent.
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
    from autorubric.llm._names import prefix_of
    from autorubric.llm._prices import CHARACTERS_PER_TOKEN, PRICE_IT, Price, Pricing, prompt_tokens
    from autorubric.llm._retry import listen_to_retries
    from autorubric.llm._route import pricings_of
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
    "CHARACTERS_PER_TOKEN",
    "PRICE_IT",
    "Budget",
    "CacheStats",
    "Exchange",
    "LLMClient",
    "LLMConfig",
    "Message",
    "ModelReply",
    "ModelRequest",
    "Price",
    "Pricing",
    "ReplyCache",
    "ReplySchema",
    "Role",
    "Spending",
    "SpendingLimit",
    "SpendingLimitName",
    "ThinkingConfig",
    "ThinkingLevel",
    "Transport",
    "TransportName",
    "TruncatePolicy",
    "budget_in_force",
    "generate",
    "generate_sync",
    "holds_secret",
    "listen_to_retries",
    "one_call",
    "parse_json",
    "parse_json_list",
    "parse_reply",
    "prefix_of",
    "pricings_of",
    "prompt_tokens",
    "spending_within",
    "without_thinking",
]

_HOMES = {
    "Budget": "_spending",
    "CHARACTERS_PER_TOKEN": "_prices",
    "CacheStats": "_cache",
    "Exchange": "_exchange",
    "LLMClient": "_client",
    "LLMConfig": "_config",
    "Message": "_transport",
    "ModelReply": "_transport",
    "ModelRequest": "_transport",
    "PRICE_IT": "_prices",
    "Price": "_prices",
    "Pricing": "_prices",
    "ReplyCache": "_cache",
    "ReplySchema": "_transport",
    "Role": "_transport",
    "Spending": "_spending",
    "SpendingLimit": "_spending",
    "SpendingLimitName": "_spending",
    "ThinkingConfig": "_config",
    "ThinkingLevel": "_config",
    "Transport": "_transport",
    "TransportName": "_config",
    "TruncatePolicy": "_config",
    "budget_in_force": "_spending",
    "generate": "_client",
    "generate_sync": "_client",
    "holds_secret": "_secrets",
    "listen_to_retries": "_retry",
    "one_call": "_spending",
    "parse_json": "_json",
    "parse_json_list": "_json",
    "parse_reply": "_json",
    "prefix_of": "_names",
    "pricings_of": "_route",
    "prompt_tokens": "_prices",
    "spending_within": "_spending",
    "without_thinking": "_json",
}

__getattr__ = loading(__name__, _HOMES)
