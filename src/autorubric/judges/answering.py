"""One interface for all that answers a question: models, functions, and objects with `forward`."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from autorubric.criteria.conditions import qualified_name
from autorubric.criteria.conversation import shorten_text, shorten_turns
from autorubric.criteria.values import Submission
from autorubric.errors import ContextLengthError, JudgeError
from autorubric.judges.base import Judge
from autorubric.judges.function import callable_name
from autorubric.llm.client import LLMClient
from autorubric.llm.config import LLMConfig, TruncatePolicy
from autorubric.llm.transport import Exchange, Message, ModelQuestion, ReplySchema
from autorubric.support.concurrency import call_user_code, run_sync
from autorubric.support.objects import REASON_LENGTH, Json

T = TypeVar("T")
Submissions: TypeAlias = tuple[Submission, ...]


class PromptLike(Protocol):
    """A prompt; a model receives its content as a user message."""

    @property
    def content(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Generic[T]):
    """A question to a source."""

    prompt_of: Callable[[Submissions], PromptLike]  # a function receives the prompt as it is
    read: Callable[[Any], T]  # reads the text of a model, or what a function returned; may raise `ReplyError`
    submissions: Submissions = ()  # the texts in the prompt that may be shortened to fit a model's context
    compared: bool = False  # whether candidates are shown rather than texts
    schema: ReplySchema | None = None  # the JSON schema of a model's reply; None for text
    system_prompt: str | None = None
    sample: int = 0  # index of the sample, from 0

    def for_model(self, submissions: Submissions) -> ModelQuestion[T]:
        system = [Message(role="system", content=self.system_prompt)] if self.system_prompt else []
        images = tuple(image for one in submissions for image in one.images)
        user = Message(role="user", content=self.prompt_of(submissions).content, images=images)
        return ModelQuestion((*system, user), self.read, self.schema, self.sample)


class Reply(NamedTuple, Generic[T]):
    answer: T | None  # None if a model refused
    exchange: Exchange[T] | None = None  # None if no model was called
    shown: str | None = None  # the parts of submissions that fitted; None if nothing was omitted


@dataclass(frozen=True, slots=True)
class ModelSource:
    client: LLMClient

    @property
    def name(self) -> str:
        return self.client.config.model

    @property
    def models(self) -> tuple[LLMConfig, ...]:
        return (self.client.config,)

    def describe(self, role: str) -> dict[str, Json]:
        """Return the settings that affect answers; a function's name has the role as its key."""
        return answer_settings(self.client.config)

    def ask(self, question: Question[T]) -> Coroutine[Any, Any, Reply[T]]:
        return ask_model(self.client, question.for_model, question.submissions, compared=question.compared)

    def ask_now(self, question: Question[T]) -> Reply[T]:
        """Return the reply from synchronous code, and close the connections."""

        async def ask_once() -> Reply[T]:
            async with self.client:
                return await self.ask(question)

        return run_sync(ask_once())

    async def aclose(self) -> None:
        await self.client.aclose()


@dataclass(frozen=True, slots=True)
class CallableSource:
    """A function, or an object with `forward` or `aforward`, that is called with the prompt."""

    target: Any  # the function or the object
    sync: Callable[[Any], Any] | None  # None if there is only an asynchronous version
    asynchronous: Callable[[Any], Any] | None  # None if there is only a synchronous version
    models: ClassVar[tuple[LLMConfig, ...]] = ()

    @property
    def name(self) -> str:
        return callable_name(self.target)

    def describe(self, role: str) -> dict[str, Json]:
        return {role: qualified_name(self.target)}

    async def ask(self, question: Question[T]) -> Reply[T]:
        return Reply(question.read(await self.call(question.prompt_of(question.submissions))))

    def ask_now(self, question: Question[T]) -> Reply[T]:
        if self.sync is None:
            return run_sync(self.ask(question))
        # Runs in the caller's thread, because the callable may be bound to it.
        result = self.sync(question.prompt_of(question.submissions))
        return Reply(question.read(run_sync(_await(result)) if inspect.isawaitable(result) else result))

    async def call(self, prompt: Any) -> Any:
        """Return what the callable returns; a synchronous one runs in a thread."""
        if self.asynchronous is not None:
            return await call_user_code(self.asynchronous, prompt, thread=None)
        assert self.sync is not None
        return await call_user_code(
            self.sync,
            prompt,
            error_of=lambda error: JudgeError(f"evaluator {self.name!r} raised StopIteration: {error}"),
        )

    async def aclose(self) -> None:
        """Do nothing; the caller owns the object and closes it."""


Source: TypeAlias = ModelSource | CallableSource
"""All that answers a question."""


async def _await(result: Awaitable[Any]) -> Any:
    return await result


def source_of(value: Any) -> Source | None:
    """Return the source for a model name, config or client, a function, or an object; None for others."""
    if isinstance(value, str | LLMConfig):
        return ModelSource(LLMClient(value))
    if isinstance(value, LLMClient):
        return ModelSource(value)
    return callable_source_of(value)


def callable_source_of(value: Any) -> CallableSource | None:
    """Return the source for a function, or an object with `forward` or `aforward`; None for others."""
    if isinstance(value, type):
        return None
    sync, asynchronous = _method(value, "forward"), _method(value, "aforward")
    if sync or asynchronous:
        return CallableSource(value, sync, asynchronous)
    if not callable(value):
        return None
    is_async = inspect.iscoroutinefunction(value)
    return CallableSource(value, None if is_async else value, value if is_async else None)


def is_judge(value: Any) -> bool:
    """Return whether a value is a judge, and not an object that has every attribute, such as a mock."""
    if isinstance(value, type) or not isinstance(value, Judge):
        return False
    has_forward = _method(value, "forward") or _method(value, "aforward")
    return not has_forward or inspect.iscoroutinefunction(getattr(type(value), "ask", None))


def _method(value: Any, name: str) -> Callable[[Any], Any] | None:
    found = getattr(value, name, None)
    return found if callable(found) else None


async def ask_model(
    client: LLMClient,
    question_of: Callable[[Submissions], ModelQuestion[T]],
    submissions: Submissions,
    *,
    compared: bool,
    left: int | None = None,
) -> Reply[T]:
    """Ask a model, and shorten the submissions as its config allows until they fit its context.

    left: Number of requests that may still be sent for the vote; None if none was sent yet.
    """
    allowance = client.allowance(left)
    asked, parts = submissions, dict[str, str]()
    while True:
        question = question_of(asked)
        try:
            exchange = await client.converse(question, allowance)
        except ContextLengthError:
            left = allowance.left
            shorter = _shorten(submissions, asked, client.config.truncate, compared, left) if left else None
            if shorter is None:
                raise
            asked, name, part = shorter
            parts[name] = name + part
        else:
            return Reply(exchange.answer, exchange, "; ".join(parts.values()) or None)


_SHORTEST_CUT = 200
"""Number of characters below which a text is not shortened further, because too little would remain."""


def _shorten(
    whole: Submissions, asked: Submissions, policy: TruncatePolicy | None, compared: bool, left: int
) -> tuple[Submissions, str, str] | None:
    """Return submissions with less of the longest text, its name, and the part of it; None if forbidden.

    By default a third is omitted; more, if the shortest text would not be reached with the requests `left`.
    """
    texts = [
        (place, name, text)
        for place, one in enumerate(asked)
        for name, text in (one.candidates.items() if compared else [("", one.text or "")])
    ]
    place, name, text = max(texts, key=lambda one: len(one[2]), default=(0, "", ""))
    if policy is None or len(text) <= _SHORTEST_CUT:
        return None
    shown_as = (f"output {place + 1}: " if len(asked) > 1 else "") + (f"candidate {name!r}: " if name else "")
    needed = len(text) * (_SHORTEST_CUT / len(text)) ** (1 / left)
    most = max(_SHORTEST_CUT, min(len(text) * 2 // 3, int(needed)))
    # The whole text is shortened, so that it has one mark and the part can be named.
    if compared:
        made, part = shorten_text(whole[place].candidates[name], most, policy)
        candidates = {**asked[place].candidates, name: made}
        shorter = replace(asked[place], candidates=candidates, shown="parts of candidates")
    else:
        turns, own = whole[place].turns, whole[place].text or ""
        made, part = shorten_turns(turns, most, policy) if turns else shorten_text(own, most, policy)
        images = [one for one in whole[place].images if f"[{one.label}]" in made or "query" in one.label]
        shorter = replace(asked[place], text=made, shown=part, images=tuple(images))
    # The mark may be longer than the removed text, and shortening would never end.
    if len(made) >= len(text):
        return None
    return (*asked[:place], shorter, *asked[place + 1 :]), shown_as, part


_PACE = frozenset(
    {
        *("timeout", "max_retries", "retry_min_wait", "retry_max_wait", "max_parallel_requests"),
        *("requests_per_minute", "tokens_per_minute", "cache_enabled", "cache_dir", "cache_ttl"),
        *("prompt_caching", "input_cost_per_token", "output_cost_per_token", "takes_images"),
    }
)
"""Parameters of a model's config that affect speed, retries, caching and price, but not answers."""


def answer_settings(config: LLMConfig) -> dict[str, Json]:
    """Return the parameters of a model's config that affect its answers."""
    settings = {name: value for name, value in config.to_dict().items() if name not in _PACE}
    if config.max_reason_chars == REASON_LENGTH:
        # Votes that were stored before this parameter, or the next one, existed stay valid.
        del settings["max_reason_chars"]
    if config.logprobs is None:
        del settings["logprobs"]
    settings["fallbacks"] = [
        one if isinstance(one, str) else answer_settings(one) for one in config.fallbacks
    ]
    return settings
