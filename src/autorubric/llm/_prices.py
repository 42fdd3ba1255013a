"""What models cost: by the prices of their configs, or by the list that litellm ships with."""

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
"""Rule of thumb for English text; the models' own tokenisers differ by a quarter or so either way."""
REPLY_TOKENS: Final = 200
"""Tokens that a reply is taken to have where nothing is known of it."""
PRICE_IT: Final = "give its LLMConfig input_cost_per_token and output_cost_per_token"
"""What to do where a price is not known."""


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


def own_price(config: LLMConfig) -> Price | None:
    """The price that the config gives; None where it gives none."""
    sent, received = config.input_cost_per_token, config.output_cost_per_token
    return None if sent is None or received is None else Price(sent=sent, received=received)


def pricing_of(config: LLMConfig, *, direct: bool) -> Pricing:
    """A model's price by its config, else by litellm's own list; asks nothing over the network.

    Args:
        config: The model's config.
        direct: Whether it is reached by the direct transport: a server of one's own has no listed price,
            whatever its models are called.

    Raises:
        MissingDependencyError: The list is wanted, and litellm is not installed, or in a version that must
            not be run.
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
    """The transport that tells what replies cost by a given price, wherever their tokens are counted.

    Args:
        inner: What sends.
        price: What its model costs, whatever the inner transport takes it to cost.
    """

    def __init__(self, inner: Transport, price: Price) -> None:
        self._inner = inner
        self._price = price

    async def send(self, request: ModelRequest) -> ModelReply:
        """The inner transport's reply, with its cost.

        Raises:
            ProviderError: The inner transport got none.
        """
        reply = await self._inner.send(request)
        return reply if reply.usage is None else reply._replace(cost=self._price.of_usage(reply.usage))

    async def aclose(self) -> None:
        """Releases the connections of the inner transport."""
        await self._inner.aclose()


def prompt_tokens(messages: tuple[Message, ...], schema: ReplySchema | None) -> int:
    """Estimate of a request's tokens: a quarter of its characters, those of the reply's schema included."""
    characters = sum(len(message.content) for message in messages)
    if schema is not None:
        characters += schema_length(schema)
    return -(-characters // CHARACTERS_PER_TOKEN)
