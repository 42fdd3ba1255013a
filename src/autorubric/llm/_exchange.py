"""What one question to a model came to: the answer, or the refusal, and what it took."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

from autorubric._chat_tokens import neutralise_tokens
from autorubric.errors import JudgeError
from autorubric.llm._transport import Message, ModelReply, ReplySchema
from autorubric.values import TokenUsage

T = TypeVar("T")

_LONGEST_QUOTE: Final = 4000
_LONGEST_CUT_QUOTE: Final = 400


class Exchange(NamedTuple, Generic[T]):
    """What one question to a model came to.

    Attributes:
        answer: The answer as read; None where the model refused.
        refusal: The refusal in words; None where it answered.
        model: The model that answered, as the provider names it.
        usage: Tokens of all tries together; None where none were counted.
        cost: US dollars of all tries together; None where a price is unknown, 0 for a cached reply.
        reasoning: The model's reasoning for the last reply, where the provider shows it.
        replies: Raw replies, oldest first; all but the last could not be read.
        messages: The conversation as first sent.
        cached: Served from the reply cache.
        dropped_params: Parameters that the provider does not take and that were left out.
        asked: Requests that were answered; 0 for a cached reply.
        request_id: The provider's id of the last reply, where it gives one.
        attempted: Models asked, in order; the last of them answered.
        tokens: Tokens of the last reply with their log-probabilities, where they were asked for and given.
    """

    answer: T | None
    refusal: str | None
    model: str
    usage: TokenUsage | None
    cost: float | None
    reasoning: str | None
    replies: tuple[str, ...]
    messages: tuple[Message, ...]
    cached: bool
    dropped_params: tuple[str, ...]
    asked: int
    request_id: str | None = None
    attempted: tuple[str, ...] = ()
    tokens: tuple[tuple[str, float], ...] = ()


class Question(NamedTuple, Generic[T]):
    """What is asked, and how its reply becomes an answer.

    Attributes:
        messages: The conversation.
        decode: Reads a reply's text; raises `ReplyError` where it cannot.
        schema: JSON schema of the reply.
        sample: Index of the sample.
    """

    messages: tuple[Message, ...]
    decode: Callable[[str], T]
    schema: ReplySchema | None = None
    sample: int = 0


@dataclass(slots=True)
class Tally:
    """What all tries of one question took together."""

    replies: list[str] = field(default_factory=list)
    usage: TokenUsage | None = None
    cost: float | None = 0.0
    attempted: tuple[str, ...] = ()
    model: str | None = None
    request_id: str | None = None

    def add(self, reply: ModelReply) -> None:
        """Counts one reply."""
        self.replies.append(reply.text)
        self.model, self.request_id = reply.model, reply.request_id
        if reply.usage is not None:
            self.usage = reply.usage if self.usage is None else self.usage + reply.usage
        self.cost = None if self.cost is None or reply.cost is None else self.cost + reply.cost

    def fill(self, error: JudgeError, question: Question[T]) -> None:
        """Tells the error what was asked and what was spent before it."""
        error.messages = tuple((message.role, message.content) for message in question.messages)
        error.usage, error.replies = self.usage, tuple(self.replies)
        error.cost = self.cost if self.replies else None
        error.selected_model, error.request_id = self.model, self.request_id


def asked_again(messages: tuple[Message, ...], reply: ModelReply, why: str) -> tuple[Message, ...]:
    """The conversation with an unreadable reply and what was wrong with it."""
    longest = _LONGEST_QUOTE
    if is_cut_off(reply):
        why = f"it was too long and was cut off. Keep every text to one or two short sentences. {why}"
        # A long quote of a reply that does not end invites another one.
        longest = _LONGEST_CUT_QUOTE
    quote = neutralise_tokens(_shortened(reply.text, longest)) or "(empty)"
    why = neutralise_tokens(why)
    wish = f"Your reply could not be used: {why}\nReply again, with the complete answer and nothing else."
    return (*messages, Message(role="assistant", content=quote), Message(role="user", content=wish))


def is_cut_off(reply: ModelReply) -> bool:
    """Whether a reply ends too early: at a limit, or, where the server does not say so, inside an object."""
    if reply.finish_reason == "length":
        return True
    text = reply.text.rstrip()
    return text.lstrip().startswith("{") and not text.endswith("}")


def _shortened(text: str, longest: int) -> str:
    text = text.strip()
    half = longest // 2
    return text if len(text) <= longest else f"{text[:half]}\n…\n{text[-half:]}"


def with_text_at_end(messages: tuple[Message, ...], text: str) -> tuple[Message, ...]:
    """The conversation with a text at its very end, so that shared beginnings stay as they are."""
    last = messages[-1]
    return (*messages[:-1], last._replace(content=f"{last.content}\n\n{text}"))
