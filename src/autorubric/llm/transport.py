"""The interface between the library and model providers: requests, replies and exchanges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Generic, Literal, NamedTuple, Protocol, TypeVar

from autorubric.errors import JudgeError, TokenUsage
from autorubric.support.chat_tokens import neutralise_tokens
from autorubric.support.images import Image
from autorubric.support.objects import Json

Role = Literal["system", "user", "assistant"]

LARGEST_ANSWER: Final = 32 << 20
"""Maximum size in bytes of a response after decompression; a larger one raises a `ServerError`."""


class Message(NamedTuple):
    role: Role
    content: str
    cache_prefix: int = 0  # number of leading characters shared with other requests, for prefix caches
    images: tuple[Image, ...] = ()  # sent after the prefix

    def wire_content(self) -> str | list[dict[str, Json]]:
        """Return the content in the chat format: the text or, if there are images, a list of parts."""
        if not self.images:
            return self.content
        parts: list[dict[str, Json]] = [{"type": "text", "text": self.content[: self.cache_prefix]}]
        for image in self.images:
            address = {"type": "image_url", "image_url": {"url": image.url}}
            parts += [{"type": "text", "text": f"[{image.label}]"}, address]
        parts.append({"type": "text", "text": self.content[self.cache_prefix :]})
        return [part for part in parts if part.get("text") != ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplySchema:
    """The JSON schema that a reply must follow.

    Attributes:
        name: Name of the schema, required by providers; letters, digits, `_` and `-`.
        schema: The JSON schema.
        strict: Whether the provider may enforce the schema by constrained decoding.
        max_chars: Maximum length in characters of a reply that follows the schema, used to limit the
            requested tokens; None if there is no maximum.
        exact: A stricter schema for servers that enforce every keyword, such as those with grammars; it may
            differ between requests. None if there is none.
    """

    name: str
    schema: Mapping[str, Json]
    strict: bool = True
    max_chars: int | None = None
    exact: Mapping[str, Json] | None = None


@dataclass(slots=True, eq=False)
class Allowance:
    """The requests that may be sent for one vote, whatever the reason for each of them."""

    most: int
    sent: int = 0
    seconds: float | None = None  # from sending the last request to its reply or error

    @property
    def left(self) -> int:
        return max(0, self.most - self.sent)


class ModelRequest(NamedTuple):
    """A complete request to a model; identical requests may share a cached reply.

    Attributes:
        model: Model name as the user wrote it.
        messages: The conversation.
        schema: Schema of the reply; None for free text.
        sample: Index of the sample, from 0; distinguishes repeated samples of the same request.
        params: Sampling and other parameters in the provider's (OpenAI) format, without None values.
        allowance: The requests that may be sent for the vote; None for those of this request alone.
    """

    model: str
    messages: tuple[Message, ...]
    schema: ReplySchema | None = None
    sample: int = 0
    params: Mapping[str, Json] = MappingProxyType({})
    allowance: Allowance | None = None


class Token(NamedTuple):
    """A token of a reply; bytes that are not a whole character are surrogates, as in `surrogateescape`."""

    text: str
    logprob: float  # natural logarithm of its probability
    top: tuple[tuple[str, float], ...] = ()  # the most probable tokens at its place, if they were requested


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
        dropped_params: Parameters that were omitted because the provider does not support them; `system` if
            the system message was sent as part of the user's.
        request_id: The provider's id for this reply, if any.
        tokens: The reply's tokens with their log-probabilities, if they were requested and returned.
        reasoning_field: Field of the response that contains `reasoning`.
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
    tokens: tuple[Token, ...] = ()
    reasoning_field: str = "reasoning_content"


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


class TransportLayer:
    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def aclose(self) -> None:
        await self._inner.aclose()


T = TypeVar("T")

_LONGEST_QUOTE: Final = 4000
_LONGEST_CUT_QUOTE: Final = 400


class Exchange(NamedTuple, Generic[T]):
    """The result of one question to a model."""

    answer: T | None  # the parsed answer; None if the model refused
    refusal: str | None  # the refusal text; None if the model answered
    model: str  # the model that replied, as named by the provider
    usage: TokenUsage | None  # total token usage of all attempts; None if no tokens were counted
    cost: float | None  # cost of all attempts in US dollars; None if a price is unknown, 0 for a cached reply
    reasoning: str | None  # the model's reasoning for the last reply, if the provider returns it
    replies: tuple[str, ...]  # raw replies, oldest first; all but the last were unreadable
    messages: tuple[Message, ...]  # the conversation as first sent
    cached: bool  # whether the reply came from the reply cache
    dropped_params: tuple[str, ...]  # parameters that were omitted because the provider does not support them
    asked: int  # number of requests that received a reply; 0 for a cached reply
    request_id: str | None = None  # the provider's id for the last reply, if any
    attempted: tuple[str, ...] = ()  # models that were called, in order; the last one replied
    # The last reply's tokens with their log-probabilities, if they were requested and returned.
    tokens: tuple[Token, ...] = ()
    seconds: float | None = None  # from sending the last request to its reply; None for a cached reply
    requests_left: int | None = None  # that may still be sent for the vote; None for a cached reply


class ModelQuestion(NamedTuple, Generic[T]):
    """A question, with a function that converts its reply to an answer."""

    messages: tuple[Message, ...]  # the conversation
    decode: Callable[[str], T]
    """Converts the text of a reply to an answer; raises `ReplyError` if the text is invalid."""
    schema: ReplySchema | None = None  # JSON schema of the reply
    sample: int = 0  # index of the sample
    again: Callable[[], tuple[Message, ...] | None] | None = None
    """Returns the conversation after an unreadable reply, or None to give up; None explains the error."""


@dataclass(slots=True)
class UsageTally:
    """Total usage and cost of all attempts at one question."""

    allowance: Allowance
    replies: list[str] = field(default_factory=list)
    usage: TokenUsage | None = None
    cost: float | None = 0.0
    attempted: tuple[str, ...] = ()
    model: str | None = None
    request_id: str | None = None

    def add(self, reply: ModelReply) -> None:
        self.replies.append(reply.text)
        self.model, self.request_id = reply.model, reply.request_id
        if reply.usage is not None:
            self.usage = reply.usage if self.usage is None else self.usage + reply.usage
        self.cost = None if self.cost is None or reply.cost is None else self.cost + reply.cost

    def fill(self, error: JudgeError, question: ModelQuestion[T]) -> None:
        """Add the question, and the usage and cost so far, to the error."""
        error.messages = tuple((message.role, message.content) for message in question.messages)
        error.usage, error.replies = self.usage, tuple(self.replies)
        error.cost = self.cost if self.replies else None
        error.selected_model, error.request_id = self.model, self.request_id
        error.seconds, error.requests_left = self.allowance.seconds, self.allowance.left


def ask_again_messages(messages: tuple[Message, ...], reply: ModelReply, why: str) -> tuple[Message, ...]:
    """Return the conversation extended by an unreadable reply and an explanation of its error."""
    longest = _LONGEST_QUOTE
    if is_cut_off(reply):
        why = f"it was too long and was cut off. Keep every text to one or two short sentences. {why}"
        # A long quote of a reply that does not end invites another one.
        longest = _LONGEST_CUT_QUOTE
    text, half = reply.text.strip(), longest // 2
    shown = text if len(text) <= longest else f"{text[:half]}\n…\n{text[-half:]}"
    quote = neutralise_tokens(shown) or "(empty)"
    why = neutralise_tokens(why)
    wish = f"Your reply could not be used: {why}\nReply again, with the complete answer and nothing else."
    return (*messages, Message(role="assistant", content=quote), Message(role="user", content=wish))


def is_cut_off(reply: ModelReply) -> bool:
    """Return whether a reply is truncated, as reported or because it ends inside an object."""
    if reply.finish_reason == "length":
        return True
    text = reply.text.rstrip()
    return text.lstrip().startswith("{") and not text.endswith("}")


def without_system(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the conversation with its system messages at the beginning of its first other message."""
    others = [one for one in messages if one.role != "system"]
    told = "".join(f"{one.content}\n\n" for one in messages if one.role == "system" and one.content)
    first = others[0] if others else Message("user", "")
    # The parts of a message with images are before and after its prefix.
    prefix = len(told) + first.cache_prefix if first.cache_prefix or first.images else 0
    return (first._replace(content=told + first.content, cache_prefix=prefix), *others[1:])


def with_text_at_end(messages: tuple[Message, ...], text: str) -> tuple[Message, ...]:
    """Return the conversation with a text appended at the end, so that shared prefixes stay unchanged."""
    last = messages[-1]
    return (*messages[:-1], last._replace(content=f"{last.content}\n\n{text}"))
