"""The interface between the library and model providers: one request, one reply, one awaitable method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, Protocol

from autorubric.values import Json, TokenUsage

Role = Literal["system", "user", "assistant"]

LARGEST_ANSWER: Final = 32 << 20
"""Maximum size in bytes of a response after decompression; a larger one raises a `ServerError`."""


class Message(NamedTuple):
    """One message of a chat request.

    Attributes:
        role: Role of the author.
        content: The text.
        cache_prefix: Number of leading characters of `content` that are shared with other requests, so that
            a provider can store them in its prefix cache; 0 for none.
    """

    role: Role
    content: str
    cache_prefix: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplySchema:
    """The JSON schema that a reply must follow.

    Attributes:
        name: Name of the schema, required by providers; letters, digits, `_` and `-`.
        schema: The JSON schema.
        strict: Whether the provider may enforce the schema by constrained decoding.
        max_chars: Maximum length in characters of a reply that follows the schema, used to limit the
            requested tokens; None if there is no maximum.
    """

    name: str
    schema: Mapping[str, Json]
    strict: bool = True
    max_chars: int | None = None


class ModelRequest(NamedTuple):
    """A complete request to a model; identical requests may share a cached reply.

    Attributes:
        model: Model name as the user wrote it.
        messages: The conversation.
        schema: Schema of the reply; None for free text.
        sample: Index of the sample, from 0; distinguishes repeated samples of the same request.
        params: Sampling and other parameters in the provider's (OpenAI) format, without None values.
    """

    model: str
    messages: tuple[Message, ...]
    schema: ReplySchema | None = None
    sample: int = 0
    params: Mapping[str, Json] = MappingProxyType({})


class ModelReply(NamedTuple):
    """A model's reply.

    Attributes:
        text: The reply; may be empty.
        model: The model that replied, as named by the provider.
        usage: Token counts, if the provider reports them.
        cost: Cost in US dollars, if the price is known.
        reasoning: The model's reasoning, if the provider returns it.
        finish_reason: Reason why the reply ended: `stop`, `length`, `content_filter`, …
        refusal: The provider's or model's refusal text, if it refused.
        cached: Whether the reply is from the reply cache; if so, `cost` is 0 and `usage` is unchanged.
        dropped_params: Parameters that were omitted because the provider does not support them.
        request_id: The provider's id for this reply, if any.
        tokens: The reply's tokens with their log-probabilities, if they were requested and returned.
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
    """Interface for sending requests to a model; all calls to providers use it."""

    async def send(self, request: ModelRequest) -> ModelReply:
        """Return the model's reply.

        Raises:
            ProviderError: If there is no usable reply; the subclass indicates the reason.
        """
        ...

    async def aclose(self) -> None:
        """Release connections; the next request opens new ones."""
        ...
