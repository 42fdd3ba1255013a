"""Prices of models: from their configs, or from the list that litellm ships with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from autorubric.errors import TokenUsage
from autorubric.llm.names import is_openai_itself
from autorubric.llm.transport import Message, ModelReply, ModelRequest, ReplySchema, Transport, TransportLayer
from autorubric.llm.wire import schema_length

if TYPE_CHECKING:
    from autorubric.llm.config import LLMConfig


CHARACTERS_PER_TOKEN: Final = 4
"""Approximation for English text; the models' own tokenizers differ from it by about a quarter."""
REPLY_TOKENS: Final = 200
"""Assumed number of tokens in a reply if nothing is known about it."""
PRICE_IT: Final = "set input_cost_per_token and output_cost_per_token in the run file or its LLMConfig"
"""Advice for an unknown price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The price of a model, in US dollars per token."""

    sent: float  # price per prompt token; discounts for prefix caching are ignored
    received: float  # price per reply token, including reasoning tokens

    def of(self, sent: float, received: float) -> float:
        """Return the cost in US dollars for the given numbers of sent and received tokens."""
        return self.sent * sent + self.received * received

    def of_usage(self, usage: TokenUsage) -> float:
        """Return the cost in US dollars for the token usage that a provider reported."""
        return self.of(usage.prompt_tokens, usage.completion_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricing:
    """A model's price, or the reason why it is unknown."""

    model: str  # name of the model
    price: Price | None = None  # price of the model; None if unknown
    reason: str = ""  # reason why the price is unknown; empty if it is known


def own_price(config: LLMConfig) -> Price | None:
    """Return the price set in the config; None if no price is set."""
    sent, received = config.input_cost_per_token, config.output_cost_per_token
    return None if sent is None or received is None else Price(sent=sent, received=received)


def pricing_of(config: LLMConfig, *, direct: bool) -> Pricing:
    """Return a model's price from its config, or otherwise from litellm's list, without sending a request."""
    own = own_price(config)
    if own is not None:
        return Pricing(model=config.model, price=own)
    if direct and config.api_base is not None and not is_openai_itself(config.api_base):
        return Pricing(model=config.model, reason=f"the price of the server at {config.api_base} is unknown")
    # Imported late, because most configs that count costs set their own prices.
    from autorubric.llm.litellm_transport import listed_price

    listed = listed_price(config.model)
    if listed is None:
        return Pricing(model=config.model, reason="litellm's price list does not include the model")
    return Pricing(model=config.model, price=Price(sent=listed[0], received=listed[1]))


class Priced(TransportLayer):
    """A transport that computes the cost of replies from a fixed price, if the provider counts tokens."""

    def __init__(self, inner: Transport, price: Price) -> None:
        super().__init__(inner)
        self._price = price

    async def send(self, request: ModelRequest) -> ModelReply:
        """Return the inner transport's reply, with its cost."""
        reply = await self._inner.send(request)
        return reply if reply.usage is None else reply._replace(cost=self._price.of_usage(reply.usage))


def prompt_tokens(messages: tuple[Message, ...], schema: ReplySchema | None) -> int:
    """Estimate a request's number of tokens, at four characters of prompt and reply schema per token."""
    characters = sum(len(message.content) for message in messages)
    if schema is not None:
        characters += schema_length(schema)
    return -(-characters // CHARACTERS_PER_TOKEN)
