"""A judge that calls a language model, and shortens submissions that are too long for it."""

from __future__ import annotations

import asyncio
import math
import random
import re
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar

from autorubric.criteria.base import BaseCriterion, Shown
from autorubric.criteria.fields import unwrap_reply, wrapped_answer
from autorubric.criteria.values import Answer, Submission
from autorubric.errors import BudgetError, JudgeError, ProviderError, ReplyError
from autorubric.judges.answering import Reply, Submissions, answer_settings, ask_model
from autorubric.judges.base import JudgeReply, JudgeRequest, Outcome, shared_error
from autorubric.judges.prompts import (
    ComposedPrompt,
    Material,
    PromptQuestion,
    compose,
    compose_batch,
    opaque_ids,
    texts_of,
)
from autorubric.judges.token_probabilities import Certainty, TokenText, certainty_of
from autorubric.llm.client import LLMClient
from autorubric.llm.config import LLMConfig
from autorubric.llm.reply_json import bare_word, check_quotation, parse_reply
from autorubric.llm.transport import Exchange, ModelQuestion
from autorubric.scoring.votes import VoteExchange
from autorubric.support.json_text import parse_json
from autorubric.support.objects import Json
from autorubric.support.reading_errors import SyntaxFault

ReadT = TypeVar("ReadT")
_ENUMERATOR = re.compile(r"\s*(?:[-*+•]|\(?\w{1,3}[.):])\s")


def demand_text(judge_id: str, request: JudgeRequest) -> None:
    if request.submission.text is None:
        raise JudgeError(f"judge {judge_id!r}: item {request.item_id!r} has no text to judge")


_Keyed: TypeAlias = Mapping[str, tuple[JudgeRequest, Shown]]  # by opaque id
_Ordered: TypeAlias = Sequence[tuple[str, tuple[JudgeRequest, Shown]]]


@dataclass(frozen=True, kw_only=True)
class ModelJudge:
    """A language model as a judge.

    Attributes:
        judge_id: Name of the judge in votes and metrics.
        client: The model's client.
        system_prompt: System prompt; None for the built-in one, an empty text for no system message.
        multi_choice_system_prompt: System prompt for criteria with options; None for `system_prompt`.
    """

    judge_id: str
    client: LLMClient
    system_prompt: str | None = None
    multi_choice_system_prompt: str | None = None
    _warned: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    def describe(self) -> dict[str, Json]:
        """Return the model's config, without secrets, and any prompts that replace the built-in ones."""
        names = ("system_prompt", "multi_choice_system_prompt")
        own = {name: prompt for name in names if (prompt := getattr(self, name)) is not None}
        return {**answer_settings(self.client.config), **own}

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        """Return the model's answer; a refusal becomes an abstention with the refusal text as the reason.

        Raises:
            ReplyError: If replies arrived but none could be read.
            ProviderError: If no reply arrived.
        """
        shown = show_request(request)
        problem = request.criterion.why_inapplicable(request.submission)
        if problem is not None:
            raise JudgeError(problem)

        def read(payload: Any, rest: str, material: Callable[[], str]) -> Answer:
            answer = read_payload(request.criterion, payload, shown, material)
            if rest:
                _check_rest(request.criterion, answer, rest)
            return answer

        prompt_for = partial(self._prompt, request, shown)
        answer, exchange, part = await self._ask_model(request, shown, prompt_for, read)
        assert exchange is not None
        if answer is None:
            return model_reply(exchange, refused_answer(exchange), part)
        certainties = self._certainties(exchange, {"": (request, shown)})
        return model_reply(exchange, answer, part, certainties[""])

    async def ask_many(self, requests: Sequence[JudgeRequest]) -> Sequence[Outcome]:
        """Send one request about several criteria of an item and return the replies.

        If the model's reply lacks a criterion or its answer is unreadable, the model is asked about it
        separately; if the budget does not allow that, the error is returned. The first reply has the usage
        and cost of the shared request.
        """
        keyed = _key_requests(requests)
        if not keyed:
            return await self._answer_each(requests, {})
        ordered = _shuffle(keyed, requests[0].seed)
        examples = tuple(example for one in requests for example in one.examples)
        first = replace(requests[0], requests_left=least_left(requests), examples=examples)
        prompt_for, read = partial(self._shared_prompt, ordered, requests), partial(_read_batch, keyed)
        try:
            reply = await self._ask_model(first, ordered[0][1][1], prompt_for, read, listed=True)
        except ReplyError as error:
            replies = await self._answer_each(requests, {}, error.requests_left)
            return [_add_spending(replies[0], error), *replies[1:]]
        except ProviderError as error:
            return shared_error(error, len(requests))
        answered = {key: keyed[key] for key in reply.answer or ()}
        certainties = self._certainties(reply.exchange, answered)
        left = None if reply.exchange is None else reply.exchange.requests_left
        return await self._answer_each(requests, _batch_replies(reply, keyed, certainties), left)

    @property
    def models(self) -> tuple[LLMConfig, ...]:
        """A tuple with the config of the judge's model."""
        return (self.client.config,)

    def prompt_for(self, requests: Sequence[JudgeRequest]) -> ComposedPrompt | None:
        """Return the prompt for one criterion, or the shared prompt for several criteria of one item."""
        first = requests[0]
        keyed = _key_requests(requests) if len(requests) > 1 else {}
        if not keyed:
            return self._prompt(first, show_request(first), first.submission)
        return self._shared_prompt(_shuffle(keyed, first.seed), requests, first.submission)

    def _prompt(self, request: JudgeRequest, shown: Shown, submission: Submission) -> ComposedPrompt:
        question = PromptQuestion(request.criterion, shown, request.examples)
        material = material_of(request, submission, shown)
        return compose(material, question, system_prompt=self._system_prompt([request]))

    def _shared_prompt(
        self, ordered: _Ordered, requests: Sequence[JudgeRequest], submission: Submission
    ) -> ComposedPrompt:
        questions = [(key, PromptQuestion(r.criterion, shown, r.examples)) for key, (r, shown) in ordered]
        first, shown = ordered[0][1]
        material = material_of(first, submission, shown)
        return compose_batch(material, questions, system_prompt=self._system_prompt(requests))

    async def aclose(self) -> None:
        """Close the model's connections; the next request reopens them."""
        await self.client.aclose()

    async def _answer_each(
        self, requests: Sequence[JudgeRequest], found: Mapping[str, JudgeReply], left: int | None = None
    ) -> Sequence[Outcome]:
        """Return the replies found, and the replies to separate requests about the other criteria.

        left: Number of requests left after shared ones, of which each vote sent its part.
        """
        missing = [request for request in requests if (request.criterion.name or "") not in found]
        if missing and left is not None:
            before = self.client.allowance(least_left(requests)).left
            left = before - math.ceil((before - left) / len(requests))
            missing = [replace(request, requests_left=left) for request in missing]
        names = [request.criterion.name or "" for request in missing]
        alone = await asyncio.gather(*(self._ask_alone(request) for request in missing))
        replies = {**found, **dict(zip(names, alone, strict=True))}
        return [replies[request.criterion.name or ""] for request in requests]

    async def _ask_alone(self, request: JudgeRequest) -> Outcome:
        try:
            return await self.ask(request)
        except (JudgeError, BudgetError) as error:
            return error

    def _ask_model(
        self,
        request: JudgeRequest,
        shown: Shown,
        prompt_for: Callable[[Submission], ComposedPrompt],
        read: Callable[[Any, str, Callable[[], str]], ReadT],
        listed: bool = False,
    ) -> Awaitable[Reply[ReadT]]:
        demand_text(self.judge_id, request)
        bare = request.criterion.takes_bare

        def question_of(submissions: Submissions) -> ModelQuestion[ReadT]:
            prompt = prompt_for(submissions[0])

            def material() -> str:
                return texts_of(material_of(request, submissions[0], shown), request.examples)

            def decode(text: str) -> ReadT:
                return read(*parse_reply(text, material=material, bare=bare, listed=listed), material)

            return ModelQuestion(prompt.messages, decode, prompt.schema, request.sample)

        names, left = bool(shown.names), request.requests_left
        # Not a coroutine: thousands of calls may wait at a time, and each would keep another frame.
        return ask_model(self.client, question_of, (request.submission,), compared=names, left=left)

    def _certainties(self, exchange: Exchange[Any] | None, answered: _Keyed) -> dict[str, Certainty]:
        """Return the certainty of each answer in a reply; warn once of each reason for no probabilities."""
        requested = self.client.config.logprobs is not None
        if exchange is None or not (exchange.tokens or requested):
            return dict.fromkeys(answered, Certainty())
        tokens, found = TokenText(exchange.tokens), dict[str, Certainty]()
        for key, (request, shown) in answered.items():
            one = certainty_of(request.criterion, shown, tokens, key)
            # Reasons that differ only in their figures are one reason.
            reason = re.sub(r"[0-9.]+", "", one.unknown or "")
            if requested and reason not in {"", *self._warned}:
                self._warned.add(reason)
                what = f"a vote on {request.criterion.name!r} has no probabilities: {one.unknown}"
                warnings.warn(f"judge {self.judge_id!r}: {what}", RuntimeWarning, stacklevel=2)
            found[key] = one if requested else one._replace(unknown=None)
        return found

    def _system_prompt(self, requests: Sequence[JudgeRequest]) -> str | None:
        if self.multi_choice_system_prompt is None:
            return self.system_prompt
        choices = all(request.criterion.level in ("ordinal", "nominal") for request in requests)
        return self.multi_choice_system_prompt if choices else self.system_prompt


def _add_spending(reply: Outcome, lost: JudgeError) -> Outcome:
    """Add the tokens and cost of a request without a usable reply to a reply."""
    if isinstance(reply, BudgetError) or (lost.usage is None and lost.cost is None):
        return reply
    usage = lost.usage + reply.usage if lost.usage and reply.usage else lost.usage or reply.usage
    cost = None if lost.cost is None and reply.cost is None else (lost.cost or 0.0) + (reply.cost or 0.0)
    if isinstance(reply, JudgeReply):
        return replace(reply, usage=usage, cost=cost)
    reply.usage, reply.cost = usage, cost
    return reply


def least_left(requests: Sequence[JudgeRequest]) -> int | None:
    """Return the smallest number of requests that may be sent for votes that share one."""
    known = [request.requests_left for request in requests if request.requests_left is not None]
    return min(known, default=None)


def _shuffle(keyed: _Keyed, seed: int) -> _Ordered:
    ordered = list(keyed.items())
    random.Random(seed).shuffle(ordered)
    return ordered


def show_request(request: JudgeRequest) -> Shown:
    """Return how a request presents its criterion: in a random order, unless shuffling is off."""
    rng = random.Random(request.seed) if request.shuffle and request.criterion.is_shuffled else None
    shown = request.criterion.show(request.submission, rng)
    return replace(shown, names=request.order) if request.order else shown


def material_of(request: JudgeRequest, submission: Submission, shown: Shown) -> Material:
    """Return the texts of a request, with another version of its submission."""
    return Material(submission, request.query, request.reference_submission, request.guidelines, shown.names)


def _key_requests(requests: Sequence[JudgeRequest]) -> dict[str, tuple[JudgeRequest, Shown]]:
    """Return requests that can be shown like the first one by opaque id, each with its presentation."""
    ids = opaque_ids(len(requests), random.Random(requests[0].seed))
    shown = {
        key: (request, show_request(request))
        for key, request in zip(ids, requests, strict=True)
        if request.criterion.why_inapplicable(request.submission) is None
    }
    first = next(iter(shown.values()))[1].names if shown else ()
    return {key: pair for key, pair in shown.items() if pair[1].names == first}


def _check_rest(criterion: BaseCriterion, answer: Answer, rest: str) -> None:
    """Raise `ReplyError` if a line after the object is a verdict, label or number that contradicts it."""
    if criterion.level not in ("binary", "nominal", "ordinal", "interval"):
        return
    said: dict[str, str] = {}
    for line in rest.splitlines():
        word = bare_word(line) or line.strip()
        if word and not _ENUMERATOR.match(line):
            with suppress(ReplyError):
                other = criterion.read(word)
                said[repr((other.code, other.cannot_assess))] = word
    # Several answers are a list of what could be said.
    if len(said) == 1 and repr((answer.code, answer.cannot_assess)) not in said:
        word = next(iter(said.values()))
        raise ReplyError(f"the reply says {word!r} after an object that says otherwise; give one answer")


def read_payload(
    criterion: BaseCriterion, payload: Json, shown: Shown, material: Callable[[], str]
) -> Answer:
    """Return the answer in a reply, unless it is an object that the reply quotes from the material."""
    keys = criterion.wire_schema["properties"].keys()
    if type(payload) is dict and not payload.keys() <= keys:
        *around, held = wrapped_answer(payload, keys)
        if any(len(one) > 1 for one in around):
            check_quotation(held, material())
    return criterion.read(payload, shown)


def _read_batch(keyed: _Keyed, payload: Any, _: str, material: Callable[[], str]) -> dict[str, Answer]:
    """Return the answers by id, without ids that are unknown, repeated or unreadable."""
    if isinstance(payload, Mapping):
        payload = unwrap_reply(payload, ("evaluations",))
        payload = payload.get("evaluations", [payload] if "id" in payload else None)
    with suppress(SyntaxFault):
        payload = parse_json(payload) if isinstance(payload, str) else payload
    if not isinstance(payload, list):
        raise ReplyError('the reply is not an object with a list "evaluations"')
    answers: dict[str, Answer] = {}
    faults: list[str] = []
    seen: set[str] = set()
    for evaluation in payload:
        if isinstance(evaluation, Mapping) and "id" not in evaluation:
            evaluation = unwrap_reply(evaluation, ("id",))
        key = evaluation.get("id") if isinstance(evaluation, Mapping) else None
        if not isinstance(key, str) or key not in keyed or key in seen:
            faults.append(f"id {key!r} is unknown or repeated")
            answers.pop(str(key), None)
            continue
        seen.add(key)
        request, shown = keyed[key]
        try:
            given = {k: v for k, v in evaluation.items() if k != "id"}
            answers[key] = read_payload(request.criterion, given, shown, material)
        except ReplyError as error:
            faults.append(f"{key}: {error}")
    if not answers:
        raise ReplyError("no evaluation could be read: " + ("; ".join(faults) or "the list is empty"))
    return answers


def _batch_replies(
    reply: Reply[dict[str, Answer]], keyed: _Keyed, certainties: Mapping[str, Certainty]
) -> dict[str, JudgeReply]:
    """Return the replies by criterion name; the first one holds the usage."""
    assert reply.exchange is not None
    answers = reply.answer
    if answers is None:
        answers = dict.fromkeys(keyed, refused_answer(reply.exchange))
    replies: dict[str, JudgeReply] = {}
    for key, (request, _) in keyed.items():
        if key in answers:
            certainty = certainties.get(key, Certainty())
            whole = model_reply(reply.exchange, answers[key], reply.shown, certainty)
            if replies:
                shared = VoteExchange(shared_with=next(iter(replies)))
                whole = replace(whole, usage=None, cost=None, exchanged=shared)
            replies[request.criterion.name or ""] = whole
    return replies


def refused_answer(exchange: Exchange[Any]) -> Answer:
    return Answer(code=None, cannot_assess=True, reason=f"the model refused: {exchange.refusal}")


def model_reply(
    exchange: Exchange[Any], answer: Answer, part: str | None, certainty: Certainty = Certainty()
) -> JudgeReply:
    """Return an answer with the usage, cost and messages of the exchange with a model."""
    return JudgeReply(
        answer=answer,
        reason=answer.reason,
        usage=exchange.usage,
        cost=exchange.cost,
        model=exchange.model,
        confidence=certainty.confidence,
        probabilities=certainty.probabilities,
        probability_source=None if certainty.probabilities is None else "logprobs",
        probability_backend=None if certainty.probabilities is None else exchange.model,
        probability_reason=certainty.unknown,
        exchanged=VoteExchange(
            messages=tuple([(message.role, message.content) for message in exchange.messages]),
            replies=exchange.replies,
            dropped_params=exchange.dropped_params,
            request_id=exchange.request_id,
            attempted=exchange.attempted,
            cached=exchange.cached,
        ),
        seconds=exchange.seconds,
        truncated=part is not None,
        shown=part,
    )
