"""The seam between the library and model providers: one request, one reply, one awaitable method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, Protocol

from autorubric.values import Json, TokenUsage

Role = Literal["system", "user", "assistant"]

LARGEST_ANSWER: Final = 32 << 20
"""Most bytes of a provider's answer, after decompression; a larger one is a `ServerError`."""


class Message(NamedTuple):
    """One message of a chat request.

    Attributes:
        role: Who speaks.
        content: The text.
        cache_prefix: Number of leading characters of `content` that other requests share and a
            provider's prefix cache may keep; 0 for none.
    """

    role: Role
    content: str
    cache_prefix: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplySchema:
    """The JSON schema that a reply must follow.

    Attributes:
        name: Name that providers ask for; letters, digits, `_` and `-`.
        schema: The JSON schema.
        strict: Whether the provider may enforce it by constrained decoding.
        max_chars: Most characters of a reply that follows it, which bounds the tokens asked for; None where
            there is no bound.
    """

    name: str
    schema: Mapping[str, Json]
    strict: bool = True
    max_chars: int | None = None


class ModelRequest(NamedTuple):
    """What is asked of a model, whole: equal requests may share one cached reply.

    Attributes:
        model: Model name as the user gave it.
        messages: The conversation.
        schema: Schema of the reply; None for free text.
        sample: Index of the sample, from 0; distinguishes repeated draws of one request.
        params: Sampling and further parameters in the provider's (OpenAI) terms, None left out.
    """

    model: str
    messages: tuple[Message, ...]
    schema: ReplySchema | None = None
    sample: int = 0
    params: Mapping[str, Json] = MappingProxyType({})


class ModelReply(NamedTuple):
    """What a model answered.

    Attributes:
        text: The reply; may be empty.
        model: The model that answered, as the provider names it.
        usage: Tokens, where the provider counts them.
        cost: US dollars, where the price is known.
        reasoning: The model's reasoning, where the provider shows it.
        finish_reason: Why it stopped: `stop`, `length`, `content_filter`, …
        refusal: The provider's or model's refusal text, where it refused.
        cached: Served from our own cache; then `cost` is 0 and `usage` what it was.
        dropped_params: Parameters that the provider does not take and that were left out.
        request_id: The provider's id of this reply, where it gives one.
        tokens: The reply's tokens with their log-probabilities, where they were asked for and given.
    """

    text: str
    model: str
    usage: TokenUsage | None = None
    cost: float | None = None
    reasoning: str | None = None
    finish_reason: str | None = None
    refusal: str | None = None
    cached: bool = False
    dropped_params: tuple[str, ...] = ()
    request_id: str | None = None
    tokens: tuple[tuple[str, float], ...] = ()


class Transport(Protocol):
    """Sends one request to a model; the only thing in the library that awaits a provider."""

    async def send(self, request: ModelRequest) -> ModelReply:
        """The model's reply.

        Raises:
            ProviderError: No usable reply came; the subclass says why.
        """
        ...

    async def aclose(self) -> None:
        """Releases connections; sending afterwards opens new ones."""
        ...
