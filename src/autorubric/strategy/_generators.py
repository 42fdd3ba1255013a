"""Sources of candidates: models, functions that take the prompt, and streams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from autorubric._files import shortened
from autorubric.errors import ArgumentError, ReplyError
from autorubric.llm import LLMClient, LLMConfig, Message
from autorubric.strategy._calls import called, is_yielding, name_of
from autorubric.strategy._candidates import Attempt, Generated
from autorubric.strategy._yielding import Given, Returning, Yielding, is_stream

GeneratorLike: TypeAlias = (
    str | LLMConfig | LLMClient | Callable[..., Any] | Iterator[Any] | AsyncIterator[Any]
)
"""A model name, an `LLMConfig` or `LLMClient`, a sync or async function of `(prompt)` or `(prompt, attempt)`
that returns one candidate or yields the candidates of a round, or a generator object that yields candidates.
"""


def LLM(model: str, **settings: Any) -> LLMConfig:
    """Create a model configuration; short for `LLMConfig(model=model, **settings)`."""
    return LLMConfig(model=model, **settings)


class Generator(Protocol):
    """The interface of objects that generate candidates."""

    async def generate(self, prompt: Any, attempt: Attempt) -> Generated: ...

    async def aclose(self) -> None: ...


def generator_of(given: GeneratorLike, prompt: Any) -> Generator:
    """Return the `Generator` for a value that a caller passed as `generate`.

    Raises:
        ArgumentError: If the value cannot generate candidates or does not accept the prompt.
    """
    if isinstance(given, str | LLMConfig | LLMClient) and not isinstance(prompt, str):
        raise ArgumentError(f"prompt must be a string if a model generates; got {shortened(prompt)}")
    if isinstance(given, str | LLMConfig):
        return _Model(client=LLMClient(given), own=True)
    if isinstance(given, LLMClient):
        return _Model(client=given, own=False)
    if callable(given):
        if is_yielding(given):
            return Yielding(given, name_of(given))
        return Returning(called(given, "generate", ("prompt", "attempt")))
    if is_stream(given):
        return Given(given, name_of(given))
    raise ArgumentError(
        "generate must be a model name, LLM(name), a function of (prompt) or (prompt, attempt), or a "
        f"generator object that yields candidates; got {shortened(given)}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    """A model as a generator; each attempt has its own sample index and is cached separately."""

    client: LLMClient
    own: bool

    async def generate(self, prompt: Any, attempt: Attempt) -> Generated:
        messages = [Message(role="user", content=prompt)]
        exchange = await self.client.ask_text(messages, read=_text, sample=int(attempt))
        if exchange.answer is None:
            refused = ReplyError(f"{exchange.model} refused: {exchange.refusal}")
            refused.usage, refused.cost = exchange.usage, exchange.cost
            raise refused
        return Generated(content=exchange.answer, usage=exchange.usage, spent=exchange.cost)

    async def aclose(self) -> None:
        if self.own:
            await self.client.aclose()


def _text(reply: str) -> str:
    if not reply.strip():
        raise ReplyError("the reply is empty", reply=reply)
    return reply
