"""Prices of models: from their configs, or from the list that litellm ships with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from autorubric.llm._names import is_openai_itself
from autorubric.llm._transport import Message, ModelReply, ModelRequest, ReplySchema, Transport
from autorubric.llm._wire import schema_length
from autorubric.values import TokenUsage

if TYPE_CHECKING:
    from autorubric.llm._config import LLMConfig

CHARACTERS_PER_TOKEN: Final = 4
"""Rule of thumb for English text; the models' own tokenizers differ by about a quarter either way."""
REPLY_TOKENS: Final = 200
"""Assumed number of tokens in a reply if nothing is known about it."""
PRICE_IT: Final = "give its LLMConfig input_cost_per_token and output_cost_per_token"
"""Advice for an unknown price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The price of a model, in US dollars per token.

    Attributes:
        sent: Price of a prompt token; discounts for prefix caching are ignored.
        received: Price of a reply token, including reasoning.
    """

    sent: float
    received: float

    def of(self, sent: float, received: float) -> float:
        """Return the US dollars for these numbers of tokens sent and received."""
        return self.sent * sent + self.received * received

    def of_usage(self, usage: TokenUsage) -> float:
        """Return the US dollars for the tokens that a provider counted."""
        return self.of(usage.prompt_tokens, usage.completion_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricing:
    """A model's price, or the reason why it is unknown.

    Attributes:
        model: The model.
        price: Its price; None if unknown.
        reason: Why the price is unknown; empty if it is known.
    """

    model: str
    price: Price | None = None
    reason: str = ""


def own_price(config: LLMConfig) -> Price | None:
    """Return the price set in the config; None if it sets none."""
    sent, received = config.input_cost_per_token, config.output_cost_per_token
    return None if sent is None or received is None else Price(sent=sent, received=received)


def pricing_of(config: LLMConfig, *, direct: bool) -> Pricing:
    """Return a model's price from its config, or else from litellm's list; sends no request.

    Args:
        config: The model's config.
        direct: Whether the direct transport is used: a self-hosted server has no list price, whatever its
            models are called.

    Raises:
        MissingDependencyError: If the list is needed and litellm is not installed, or its version must not
            be used.
    """
    own = own_price(config)
    if own is not None:
        return Pricing(model=config.model, price=own)
    if direct and config.api_base is not None and not is_openai_itself(config.api_base):
        return Pricing(model=config.model, reason=f"what the server at {config.api_base} costs is not known")
    # Late: most that counts cost has prices of its own.
    from autorubric.llm._litellm import listed_price

    listed = listed_price(config.model)
    if listed is None:
        return Pricing(model=config.model, reason="litellm's price list does not have it")
    return Pricing(model=config.model, price=Price(sent=listed[0], received=listed[1]))


class Priced:
    """A transport that sets the cost of replies by a fixed price, if their tokens are counted.

    Args:
        inner: The transport that sends requests.
        price: The model's price; overrides the cost reported by the inner transport.
    """

    def __init__(self, inner: Transport, price: Price) -> None:
        self._inner = inner
        self._price = price

    async def send(self, request: ModelRequest) -> ModelReply:
        """Return the inner transport's reply, with its cost.

        Raises:
            ProviderError: If the inner transport got no reply.
        """
        reply = await self._inner.send(request)
        return reply if reply.usage is None else reply._replace(cost=self._price.of_usage(reply.usage))

    async def aclose(self) -> None:
        """Release the connections of the inner transport."""
        await self._inner.aclose()


def prompt_tokens(messages: tuple[Message, ...], schema: ReplySchema | None) -> int:
    """Estimate a request's tokens: a quarter of its characters, including those of the reply's schema."""
    characters = sum(len(message.content) for message in messages)
    if schema is not None:
        characters += schema_length(schema)
    return -(-characters // CHARACTERS_PER_TOKEN)
