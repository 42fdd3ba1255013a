"""The client: asks a model, reads its reply, asks again where it cannot be read, and keeps count."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Final, Self, TypeVar, overload

from pydantic import BaseModel, ValidationError

from autorubric._sync import run_sync
from autorubric.errors import ArgumentError, ProviderError, ReplyError
from autorubric.llm._ask import ask_route
from autorubric.llm._cache import CacheStats
from autorubric.llm._config import LLMConfig
from autorubric.llm._exchange import Exchange, Question, Tally
from autorubric.llm._json import parse_json
from autorubric.llm._route import Route
from autorubric.llm._transport import Message, ReplySchema, Transport
from autorubric.values import Json

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

_NO_NAME_CHARACTER: Final = re.compile(r"[^A-Za-z0-9_-]")


class LLMClient:
    """Asks the model of a config. Connections open at first use, in whichever event loop that is.

    Args:
        config: The config, or a model's name.
        transport: What sends, in the place of the provider's own transport; retries, limits, fallbacks and
            the cache work on top of it as ever.
    """

    def __init__(self, config: LLMConfig | str, *, transport: Transport | None = None) -> None:
        self.config = LLMConfig(model=config) if isinstance(config, str) else config
        self._given_transport = transport
        configs = (self.config, *self.config.fallback_configs())
        self._routes = tuple(Route(one, transport) for one in configs)

    def __reduce__(self) -> tuple[Any, ...]:
        """The client as a spec: unpickled, it opens connections of its own."""
        return partial(type(self), transport=self._given_transport), (self.config,)

    async def ask(
        self,
        messages: Sequence[Message],
        *,
        read: Callable[[Json], T],
        schema: ReplySchema | None = None,
        sample: int = 0,
    ) -> Exchange[T]:
        """What the question came to: the answer that `read` makes of the reply's JSON, or a refusal.

        A reply that is no JSON object, or that `read` refuses with a `ReplyError`, is asked for again with
        the error, at most twice. Fallbacks are tried in order where a provider fails for good.

        Args:
            messages: The conversation.
            read: Makes the answer of the JSON object; raises `ReplyError` where it cannot.
            schema: JSON schema of the reply; in the prompt where the provider does not take it.
            sample: Index of the sample, from 0; equal requests of different samples have their own replies.

        Raises:
            ReplyError: No reply could be read; `usage`, `cost` and `replies` say what was spent.
            ProviderError: No model sent a reply; likewise.
        """
        return await self._converse(
            Question(
                messages=tuple(messages),
                decode=lambda text: read(parse_json(text)),
                schema=schema,
                sample=sample,
            )
        )

    def ask_text(
        self,
        messages: Sequence[Message],
        *,
        read: Callable[[str], T],
        schema: ReplySchema | None = None,
        sample: int = 0,
    ) -> Coroutine[Any, Any, Exchange[T]]:
        """What the question came to, where `read` makes the answer of the reply's text as it came.

        Args and raises as in `ask`.
        """
        return self._converse(Question(tuple(messages), read, schema, sample))

    @overload
    async def generate(
        self, system_prompt: str, user_prompt: str, response_format: None = None, *, sample: int = 0
    ) -> str: ...

    @overload
    async def generate(
        self, system_prompt: str, user_prompt: str, response_format: type[M], *, sample: int = 0
    ) -> M: ...

    async def generate(
        self,
        system_prompt: str,
        user_prompt: str,
        response_format: type[M] | None = None,
        *,
        sample: int = 0,
    ) -> str | M:
        """The model's text, or an instance of `response_format` where it is given.

        Args:
            system_prompt: The system message; an empty one is left out.
            user_prompt: The user message.
            response_format: Pydantic class that the reply must follow.
            sample: Index of the sample, from 0.

        Raises:
            ReplyError: The reply cannot be read after asking again, or the model refused.
            ProviderError: No model sent a reply.
        """
        messages = [Message(role="system", content=system_prompt)] if system_prompt else []
        messages.append(Message(role="user", content=user_prompt))
        exchange: Exchange[str] | Exchange[M]
        if response_format is None:
            question = Question(messages=tuple(messages), decode=_not_empty, sample=sample)
            exchange = await self._converse(question)
        else:
            exchange = await self.ask(
                messages, read=_reader(response_format), schema=_schema_of(response_format), sample=sample
            )
        if exchange.answer is None:
            raise _refused(exchange)
        return exchange.answer

    def clear_cache(self) -> int:
        """Removes every reply from the config's cache; returns how many there were."""
        return sum(route.cache.clear() for route in self._routes if route.cache is not None)

    def cache_stats(self) -> CacheStats:
        """What the config's cache holds and how it served this client; zeros where it is off."""
        cache = self._routes[0].cache
        return cache.stats() if cache is not None else CacheStats()

    async def aclose(self) -> None:
        """Releases connections and files; the client may be used again, and opens new ones."""
        for route in self._routes:
            await route.aclose()

    async def __aenter__(self) -> Self:
        """The client itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the client."""
        await self.aclose()

    async def _converse(self, question: Question[T]) -> Exchange[T]:
        if not question.messages:
            raise ArgumentError("messages is empty; give at least one message")
        tally = Tally()
        failures: list[ProviderError] = []
        for route in self._routes:
            tally.attempted += (route.config.model,)
            try:
                return await ask_route(route, question, tally)
            except ReplyError as error:
                error.attempted = tally.attempted
                raise
            except ProviderError as error:
                failures.append(error)
        last = failures[-1]
        last.attempted = tally.attempted
        tally.fill(last, question)
        for earlier in failures[:-1]:
            last.add_note(f"Before that: {earlier}")
        raise last


def _not_empty(text: str) -> str:
    if not text.strip():
        raise ReplyError("the reply is empty", reply=text)
    return text


def _reader(kind: type[M]) -> Callable[[Json], M]:
    def read(payload: Json) -> M:
        try:
            return kind.model_validate(payload)
        except ValidationError as error:
            faults = "; ".join(
                f"{'.'.join(map(str, fault['loc'])) or 'the object'}: {fault['msg']}"
                for fault in error.errors(include_url=False, include_context=False)
            )
            raise ReplyError(f"it does not fit the schema: {faults}") from None

    return read


def _schema_of(kind: type[BaseModel]) -> ReplySchema:
    # Any class may be given, and strict decoding takes only some schemas.
    name = _NO_NAME_CHARACTER.sub("_", kind.__name__)[:64]
    return ReplySchema(name=name, schema=kind.model_json_schema(), strict=False)


def _refused(exchange: Exchange[Any]) -> ReplyError:
    error = ReplyError(f"{exchange.model} refused: {exchange.refusal}", reply=exchange.replies[-1])
    error.usage, error.cost, error.replies = exchange.usage, exchange.cost, exchange.replies
    error.selected_model, error.request_id = exchange.model, exchange.request_id
    return error


@overload
async def generate(
    system_prompt: str, user_prompt: str, model: LLMConfig | str, response_format: None = None
) -> str: ...


@overload
async def generate(
    system_prompt: str, user_prompt: str, model: LLMConfig | str, response_format: type[M]
) -> M: ...


async def generate(
    system_prompt: str,
    user_prompt: str,
    model: LLMConfig | str,
    response_format: type[M] | None = None,
) -> str | M:
    """One model's text, or an instance of `response_format` where it is given; opens and closes a client.

    Args:
        system_prompt: The system message; an empty one is left out.
        user_prompt: The user message.
        model: The model's name, or its config.
        response_format: Pydantic class that the reply must follow.

    Raises:
        ReplyError: The reply cannot be read after asking again, or the model refused.
        ProviderError: No model sent a reply.
    """
    async with LLMClient(model) as client:
        if response_format is None:
            return await client.generate(system_prompt, user_prompt)
        return await client.generate(system_prompt, user_prompt, response_format)


@overload
def generate_sync(
    system_prompt: str, user_prompt: str, model: LLMConfig | str, response_format: None = None
) -> str: ...


@overload
def generate_sync(
    system_prompt: str, user_prompt: str, model: LLMConfig | str, response_format: type[M]
) -> M: ...


def generate_sync(
    system_prompt: str,
    user_prompt: str,
    model: LLMConfig | str,
    response_format: type[M] | None = None,
) -> str | M:
    """What `generate` gives, from synchronous code; safe inside a running event loop.

    Args:
        system_prompt: The system message; an empty one is left out.
        user_prompt: The user message.
        model: The model's name, or its config.
        response_format: Pydantic class that the reply must follow.

    Raises:
        ReplyError: The reply cannot be read after asking again, or the model refused.
        ProviderError: No model sent a reply.
    """
    if response_format is None:
        return run_sync(generate(system_prompt, user_prompt, model))
    return run_sync(generate(system_prompt, user_prompt, model, response_format))
