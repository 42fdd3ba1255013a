"""What models cost: prices from the list that litellm ships with, looked up once a model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from autorubric.llm._config import LLMConfig
from autorubric.llm._litellm import listed_price
from autorubric.llm._names import is_openai_itself
from autorubric.llm._transport import Message, ReplySchema
from autorubric.values import TokenUsage

CHARACTERS_PER_TOKEN: Final = 4
"""Rule of thumb for English text; the models' own tokenisers differ by a quarter or so either way."""
REPLY_TOKENS: Final = 200
"""Tokens that a reply is taken to have where nothing is known of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a model costs, in US dollars a token.

    Attributes:
        sent: A token of the prompt; what a prefix cache takes off is left aside.
        received: A token of the reply, reasoning included.
    """

    sent: float
    received: float

    def of(self, sent: float, received: float) -> float:
        """US dollars for so many tokens sent and received."""
        return self.sent * sent + self.received * received

    def of_usage(self, usage: TokenUsage) -> float:
        """US dollars for the tokens that a provider counted."""
        return self.of(usage.prompt_tokens, usage.completion_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricing:
    """A model's price, or why it has none.

    Attributes:
        model: The model.
        price: Its price; None where it is not known.
        reason: Why not; empty where it is.
    """

    model: str
    price: Price | None = None
    reason: str = ""


def pricing_of(config: LLMConfig, *, direct: bool) -> Pricing:
    """A model's price by litellm's own list; loads litellm, and nothing over the network.

    Args:
        config: The model's config.
        direct: Whether it is reached by the direct transport: a server of one's own has no listed price,
            whatever its models are called.
    """
    if direct and config.api_base is not None and not is_openai_itself(config.api_base):
        return Pricing(model=config.model, reason=f"what the server at {config.api_base} costs is not known")
    # litellm's own way to say what a model costs that it does not list.
    sent, received = (config.extra_params.get(f"{side}_cost_per_token") for side in ("input", "output"))
    if isinstance(sent, int | float) and isinstance(received, int | float):
        return Pricing(model=config.model, price=Price(sent=sent, received=received))
    listed = listed_price(config.model)
    if listed is None:
        reason = "litellm's price list does not have it, and extra_params has no input_cost_per_token and "
        return Pricing(model=config.model, reason=reason + "output_cost_per_token")
    return Pricing(model=config.model, price=Price(sent=listed[0], received=listed[1]))


def prompt_tokens(messages: tuple[Message, ...], schema: ReplySchema | None) -> int:
    """Estimate of a request's tokens: a quarter of its characters, those of the reply's schema included."""
    characters = sum(len(message.content) for message in messages)
    if schema is not None:
        characters += len(json.dumps(dict(schema.schema), separators=(",", ":")))
    return -(-characters // CHARACTERS_PER_TOKEN)
