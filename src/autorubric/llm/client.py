"""The client: answers a question from the cache or sends it, again if the reply is unreadable."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final, Self, TypeVar, overload

from pydantic import BaseModel, ValidationError

from autorubric.errors import ArgumentError, ProviderError, ReplyError
from autorubric.llm.cache import CacheStats
from autorubric.llm.config import LLMConfig
from autorubric.llm.reply_json import parse_reply_json, unfenced, without_reasoning
from autorubric.llm.retry import most_requests
from autorubric.llm.route import Route
from autorubric.llm.transport import (
    Allowance,
    Exchange,
    Message,
    ModelQuestion,
    ModelReply,
    ReplySchema,
    Transport,
    UsageTally,
    ask_again_messages,
    is_cut_off,
)
from autorubric.support.concurrency import sync_twin
from autorubric.support.objects import Json

T = TypeVar("T")

_MOST_ASKED: Final = 3
"""Maximum number of requests for one question: the first one, and two more if replies cannot be read."""


async def ask_route(route: Route, question: ModelQuestion[T], tally: UsageTally) -> Exchange[T]:
    request = route.request(question, tally.allowance)
    key, cache = "", route.cache
    if cache is not None:
        key = route.key(request)
        kept = _cached_exchange(cache.get(key), question, tally)
        if kept is not None:
            return kept
    conversation, asked = request, 0
    while True:
        reply = await route.send(conversation)
        reply = _with_text(question, reply) if reply.reasoning else reply
        tally.add(reply)
        asked += 1
        try:
            answer = _answer(question, reply)
        except ReplyError as error:
            error.reply = reply.text if error.reply is None else error.reply
            messages: tuple[Message, ...] | None = None
            if question.again is not None:
                messages = question.again()
            elif asked < _MOST_ASKED:
                messages = ask_again_messages(conversation.messages, reply, str(error))
            if messages is None or not tally.allowance.left:
                tally.fill(error, question)
                raise
            conversation = conversation._replace(messages=messages)
            if conversation.schema is not None and is_cut_off(reply):
                route.note_cut_off(reply)
                conversation = conversation._replace(schema=replace(conversation.schema, max_chars=None))
        else:
            # A second reply may answer only a part of the question.
            is_whole = question.again is None or asked == 1
            if cache is not None and reply.refusal is None and is_whole:
                cache.put(key, reply)
            return _exchange(answer, reply, tally, route.messages_sent(request, reply))


def _with_text(question: ModelQuestion[T], reply: ModelReply) -> ModelReply:
    """Return a reply without text with its reasoning as the text, if that is a whole answer."""
    # Servers with a parser of reasoning take an answer for reasoning if no end mark precedes it.
    said = (reply.reasoning or "").strip()
    whole = unfenced(said) if said and reply.finish_reason == "stop" else ""
    if question.schema and whole[:1] + whole[-1:] == "{}" and _is_empty(reply.text):
        with suppress(ReplyError):
            question.decode(said)
            return reply._replace(text=said, reasoning=None)
    return reply


def _is_empty(text: str) -> bool:
    """Return whether a text is blank, or only the marks of reasoning that is in a separate field."""
    with suppress(ReplyError):
        return not without_reasoning(text)
    return False


def _answer(question: ModelQuestion[T], reply: ModelReply) -> T | None:
    """Return the answer in a reply; None if the reply is a refusal."""
    if reply.refusal is not None:
        return None
    if reply.reasoning and _is_empty(reply.text):
        raise ReplyError(
            f"the content of the reply is empty, and the text in its {reply.reasoning_field} is not a "
            "finished answer; if this repeats, switch thinking off on the server, or allow longer replies"
        )
    if reply.finish_reason == "length" and question.schema is not None and "{" not in reply.text:
        # A bare `1` may be the beginning of `10`.
        raise ReplyError("there is no JSON object in it")
    return question.decode(reply.text)


def _cached_exchange(
    reply: ModelReply | None, question: ModelQuestion[T], tally: UsageTally
) -> Exchange[T] | None:
    """Return the exchange for a cached reply; None if there is no such reply or it can no longer be read."""
    if reply is None:
        return None
    try:
        answer = question.decode(reply.text)
    except ReplyError:
        return None
    own = UsageTally(Allowance(0), [reply.text], reply.usage, 0.0, tally.attempted)
    return _exchange(answer, reply, own, question.messages, cached=True)


def _exchange(
    answer: T | None, reply: ModelReply, tally: UsageTally, sent: tuple[Message, ...], *, cached: bool = False
) -> Exchange[T]:
    return Exchange(
        answer=answer,
        refusal=None if cached else reply.refusal,
        model=reply.model,
        usage=tally.usage,
        cost=tally.cost,
        reasoning=reply.reasoning,
        replies=tuple(tally.replies),
        messages=sent,
        cached=cached,
        dropped_params=reply.dropped_params,
        asked=0 if cached else len(tally.replies),
        request_id=reply.request_id,
        attempted=tally.attempted,
        tokens=reply.tokens,
        seconds=tally.allowance.seconds,
        requests_left=None if cached else tally.allowance.left,
    )


M = TypeVar("M", bound=BaseModel)

_NO_NAME_CHARACTER: Final = re.compile(r"[^A-Za-z0-9_-]")


class LLMClient:
    """A client for one model; connections are opened on first use, in the running event loop.

    Args:
        config: The model's config, or a model name.
        transport: Transport to use instead of the provider's default; retries, limits, fallbacks and the
            cache still apply.
    """

    def __init__(self, config: LLMConfig | str, *, transport: Transport | None = None) -> None:
        self.config = LLMConfig(model=config) if isinstance(config, str) else config
        self._given_transport = transport
        configs = (self.config, *self.config.fallback_configs())
        self.routes = tuple(Route(one, transport) for one in configs)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the client as its config; an unpickled client opens its own connections."""
        return partial(type(self), transport=self._given_transport), (self.config,)

    async def ask(
        self,
        messages: Sequence[Message],
        *,
        read: Callable[[Json], T],
        schema: ReplySchema | None = None,
        sample: int = 0,
    ) -> Exchange[T]:
        """Send a question and return the exchange with either the answer from `read` or a refusal.

        If the reply is not a JSON object, or `read` rejects it with a `ReplyError`, the model is asked again
        with the error message, at most twice. If a provider fails permanently, fallbacks are tried in order.

        Args:
            messages: The conversation.
            read: Converts the JSON object to the answer; raises `ReplyError` if the object is invalid.
            schema: JSON schema of the reply; added to the prompt if the provider does not support schemas.
            sample: Index of the sample, from 0; identical requests with different indices get new replies.

        Raises:
            ReplyError: If no reply could be read; `usage`, `cost` and `replies` cover all attempts.
            ProviderError: If no model sent a reply; the error has the same attributes as a `ReplyError`.
        """
        question = ModelQuestion(tuple(messages), lambda text: read(parse_reply_json(text)), schema, sample)
        return await self.converse(question)

    @overload
    async def generate(
        self, system_prompt: str, user_prompt: str, response_format: None = None, *, sample: int = 0
    ) -> str: ...

    @overload
    async def generate(
        self, system_prompt: str, user_prompt: str, response_format: type[M], *, sample: int = 0
    ) -> M: ...

    async def generate(
        self, system_prompt: str, user_prompt: str, response_format: type[M] | None = None, *, sample: int = 0
    ) -> str | M:
        """Return the model's text, or an instance of `response_format` if it is set.

        Args:
            system_prompt: The system message; omitted if empty.
            user_prompt: The user message.
            response_format: Pydantic class that the reply must follow.
            sample: Index of the sample, from 0.

        Raises:
            ReplyError: If the reply is still unreadable after asking again, or the model refused.
            ProviderError: If no model sent a reply.
        """
        messages = [Message(role="system", content=system_prompt)] if system_prompt else []
        messages.append(Message(role="user", content=user_prompt))
        exchange: Exchange[str] | Exchange[M]
        if response_format is None:
            question = ModelQuestion(messages=tuple(messages), decode=_not_empty, sample=sample)
            exchange = await self.converse(question)
        else:
            name = _NO_NAME_CHARACTER.sub("_", response_format.__name__)[:64]
            # Callers may pass any class, but strict decoding supports only some schemas.
            schema = ReplySchema(name=name, schema=response_format.model_json_schema(), strict=False)
            exchange = await self.ask(messages, read=_reader(response_format), schema=schema, sample=sample)
        if exchange.answer is None:
            error = ReplyError(f"{exchange.model} refused: {exchange.refusal}", reply=exchange.replies[-1])
            error.usage, error.cost, error.replies = exchange.usage, exchange.cost, exchange.replies
            error.selected_model, error.request_id = exchange.model, exchange.request_id
            raise error
        return exchange.answer

    def clear_cache(self) -> int:
        """Remove all replies from the cache and return their number."""
        return sum(route.cache.clear() for route in self.routes if route.cache is not None)

    def cache_stats(self) -> CacheStats:
        """Return the cache statistics of this client; all values are zero if the cache is disabled."""
        cache = self.routes[0].cache
        return cache.stats() if cache is not None else CacheStats()

    async def aclose(self) -> None:
        """Close connections and files; if the client is used again, it opens new ones."""
        for route in self.routes:
            await route.aclose()

    async def __aenter__(self) -> Self:
        """Return the client itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the client."""
        await self.aclose()

    def allowance(self, left: int | None = None) -> Allowance:
        """Return the requests that may be sent for one vote, `left` of them if some were sent before."""
        most = most_requests(self.config.max_retries)
        return Allowance(most, 0 if left is None else max(0, most - left))

    async def converse(self, question: ModelQuestion[T], allowance: Allowance | None = None) -> Exchange[T]:
        """Send a question and return the exchange; the errors are the same as in `ask`.

        allowance: The requests that may be sent; None for those of a new vote.
        """
        if not question.messages:
            raise ArgumentError("messages is empty; pass at least one message")
        allowance = allowance or self.allowance()
        tally, most = UsageTally(allowance), allowance.most
        failures: list[ProviderError] = []
        for place, route in enumerate(self.routes):
            tally.attempted += (route.config.model,)
            # Each fallback gets an equal share, rounded up, of the requests that are left.
            allowance.most = allowance.sent - (allowance.sent - most) // (len(self.routes) - place)
            try:
                return await ask_route(route, question, tally)
            except ReplyError as error:
                error.attempted, error.requests_left = tally.attempted, most - allowance.sent
                raise
            except ProviderError as error:
                failures.append(error)
                if allowance.sent >= most:
                    break
            finally:
                allowance.most = most
        # The first model is the one that the user configured; its error is the one to fix.
        first = failures[0]
        if len(failures) > 1:
            first.args = (f"{first}; the fallbacks failed too: {'; '.join(map(str, failures[1:]))}",)
        first.attempted = tally.attempted
        tally.fill(first, question)
        raise first


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


@overload
async def generate(
    system_prompt: str, user_prompt: str, model: LLMConfig | str, response_format: None = None
) -> str: ...


@overload
async def generate(
    system_prompt: str, user_prompt: str, model: LLMConfig | str, response_format: type[M]
) -> M: ...


async def generate(
    system_prompt: str, user_prompt: str, model: LLMConfig | str, response_format: type[M] | None = None
) -> str | M:
    """Return a model's text, or an instance of `response_format` if it is set, using a temporary client.

    Args:
        system_prompt: The system message; omitted if empty.
        user_prompt: The user message.
        model: The model's name or config.
        response_format: Pydantic class that the reply must follow.

    Raises:
        ReplyError: If the reply is still unreadable after asking again, or the model refused.
        ProviderError: If no model sent a reply.
    """
    async with LLMClient(model) as client:
        return await client.generate(system_prompt, user_prompt, response_format)


generate_sync = sync_twin(generate)
"""Call `generate` from synchronous code, even inside a running event loop."""
