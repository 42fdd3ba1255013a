"""A judge that asks a decision model, which answers typed questions with probabilities and no reasons."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from autorubric.criteria.base import AS_DECLARED
from autorubric.criteria.values import Answer
from autorubric.errors import ArgumentError, BudgetError, JudgeError, ReplyError, RequestRefusedError
from autorubric.judges.answering import answer_settings, ask_model
from autorubric.judges.base import JudgeReply, JudgeRequest, shared_error
from autorubric.judges.decision_questions import WORDING, Asking, questions_on
from autorubric.judges.model import demand_text, model_reply, show_request
from autorubric.judges.prompts import ComposedPrompt
from autorubric.llm.client import LLMClient
from autorubric.llm.config import LLMConfig
from autorubric.llm.decision_wire import CONTRACTS, NAMES_LABELS, TRANSPORTS, Contract, limit_in
from autorubric.llm.names import provider_of
from autorubric.llm.transport import ReplySchema
from autorubric.rubric.rubric import Rubric
from autorubric.scoring.votes import VoteExchange
from autorubric.support.objects import Json

_UNUSED: Final = ("temperature", "top_p", "max_tokens", "seed", "thinking", "fallbacks")
_Replies = Sequence[JudgeReply | JudgeError | BudgetError]


class DecisionModelJudge:
    """A decision model as a judge: it answers with probabilities, and gives no reasons.

    All criteria of an item are asked in as few requests as the server's limits allow, whatever the grader's
    `llm_calls`; a limit that the server names in an error is learned. Missing and invalid answers are
    requested again once. A refusal of a question is an abstention.

    Args:
        model: The model's name, or its config without parameters of text models, such as `temperature`.
        contract: `systemone` (`POST {api_base}/systemone`) or `openai` (`POST {api_base}/decisions`). Without
            `api_base`, the model's provider is reached through litellm 1.105 or later.
        judge_id: Name in votes and metrics; by default the name of the model.
        **settings: Parameters of `LLMConfig`, such as `api_base`, if `model` is a name.

    Raises:
        ArgumentError: If the contract is unknown, or a setting does not apply to decision models.
    """

    asks_whole_items: Final = True
    """Whether all criteria of an item are asked together, whatever the grader's `llm_calls`."""

    def __init__(
        self,
        model: LLMConfig | str,
        contract: Contract | None = None,
        *,
        judge_id: str | None = None,
        **settings: Any,
    ) -> None:
        config = model if isinstance(model, LLMConfig) else LLMConfig(model=model, **settings)
        self.contract = contract or CONTRACTS.get(config.transport, "systemone")
        if self.contract not in TRANSPORTS:
            raise ArgumentError(f"contract must be one of {', '.join(TRANSPORTS)}; got {contract!r}")
        if unused := [name for name in _UNUSED if getattr(config, name)]:
            raise ArgumentError(f"{config.model}: {', '.join(unused)} cannot be set for a decision model")
        self.client = LLMClient(config.model_copy(update={"transport": TRANSPORTS[self.contract]}))
        self.judge_id = judge_id or config.model
        self.backend = f"{self.contract} {provider_of(config.model, config.api_base)}"
        # litellm's limit, and that of OpenAI Decisions.
        self._most_questions = 128 if config.api_base is None else 400
        self._most_labels = 255

    @property
    def models(self) -> tuple[LLMConfig, ...]:
        """A tuple with the config of the model."""
        return (self.client.config,)

    def describe(self) -> dict[str, Json]:
        """Return the model's config, without secrets, and a digest of the wording of questions."""
        return {**answer_settings(self.client.config), "judge": "decision_model", "wording": WORDING}

    def check_rubrics(self, rubrics: Iterable[Rubric]) -> None:
        """Check that the model can answer all criteria; comparisons are checked with their candidates.

        Raises:
            ArgumentError: If it cannot; the message names the criterion and what to do.
        """
        for criterion in (one for rubric in rubrics for one in rubric):
            if criterion.check is None and criterion.level != "ranking":
                questions_on(criterion, AS_DECLARED)

    def prompts_for(self, requests: Sequence[JudgeRequest]) -> list[ComposedPrompt]:
        """Return the messages for these criteria of an item, one for each request to the server."""
        none = ReplySchema(name="none", schema={})
        items = [Asking(self.contract, group) for group in self._split(requests)]
        return [ComposedPrompt(one.question((requests[0].submission,)).messages, none) for one in items]

    def prompt_for(self, requests: Sequence[JudgeRequest]) -> ComposedPrompt | None:
        """Return the first of `prompts_for`."""
        return self.prompts_for(requests)[0]

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        """Return the model's probabilities for one criterion.

        Raises:
            ReplyError: If an answer is missing or invalid, also after it was requested again.
            ProviderError: If no reply arrived.
        """
        reply = (await self.ask_many([request]))[0]
        if isinstance(reply, JudgeReply):
            return reply
        raise reply

    async def ask_many(self, requests: Sequence[JudgeRequest]) -> _Replies:
        """Return the model's probabilities for several criteria of an item, in order.

        The first criterion of each request to the server has its usage and cost.
        """
        demand_text(self.judge_id, requests[0])
        groups = await asyncio.gather(*map(self._ask_together, self._split(requests)))
        return [reply for group in groups for reply in group]

    def _split(self, requests: Sequence[JudgeRequest]) -> list[list[JudgeRequest]]:
        """Split criteria into requests to the server with at most so many questions as it takes."""
        groups: list[list[JudgeRequest]] = []
        room = 0
        for request in requests:
            count = len(questions_on(request.criterion, show_request(request)))
            if count > room or not groups:
                groups.append([])
                room = self._most_questions
            groups[-1].append(request)
            room -= count
        return groups

    async def _ask_together(self, requests: Sequence[JudgeRequest]) -> _Replies:
        asking = Asking(self.contract, requests)
        if problem := self._why_too_large(asking):
            alone = [self._ask_together([one]) for one in requests] if len(requests) > 1 else []
            error = JudgeError(f"criterion {requests[0].criterion.name!r} {problem}")
            return [reply for group in await asyncio.gather(*alone) for reply in group] or [error]
        submissions, compared = (requests[0].submission,), bool(show_request(requests[0]).names)
        shares: _Replies = [ReplyError("no answer")] * len(requests)
        try:
            reply = await ask_model(self.client, asking.question, submissions, compared=compared)
        except BudgetError as error:
            return [error] * len(requests)
        except JudgeError as error:
            if self._learns_limit(error, asking):
                return await self.ask_many(requests)
            shares = shared_error(error, len(requests))
            exchanged = VoteExchange(messages=error.messages, replies=error.replies)
            spent: dict[str, Any] = {"usage": error.usage, "cost": error.cost, "exchanged": exchanged}
            first = JudgeReply(answer=None, model=error.selected_model, **spent)
        else:
            assert reply.exchange is not None
            if reply.answer is None:
                asking.found = dict.fromkeys(asking.questions)
            first = replace(model_reply(reply.exchange, Answer(code=None), reply.truncated), answer=None)
        shared = VoteExchange(shared_with=requests[0].criterion.name)
        others = replace(first, usage=None, cost=None, exchanged=shared)
        return [
            replace(
                others if place else first,
                probabilities=asking.probabilities(place),
                probability_source="decision_model",
                probability_backend=self.backend,
            )
            if asking.is_answered(place)
            else share
            for place, share in enumerate(shares)
        ]

    def _why_too_large(self, asking: Asking) -> str:
        """Return why the server takes no request with these questions; empty if it does."""
        count, labels = _size(asking)
        if labels > self._most_labels:
            allowed = f"{self.backend} takes at most {self._most_labels}"
            return f"has {labels} answers, but {allowed}; use fewer options or another judge"
        allowed = f"{self.backend} takes at most {self._most_questions}"
        too_many = f"needs {count} questions, but {allowed}; divide it into several criteria"
        return too_many if count > self._most_questions else ""

    def _learns_limit(self, error: JudgeError, asking: Asking) -> bool:
        """Remember the limit that an error names; return whether the request exceeded it."""
        limit = limit_in(str(error)) if type(error) is RequestRefusedError else None
        count, labels = _size(asking)
        if not limit or limit >= max(count, labels):
            return False
        if labels > limit and (count <= limit or NAMES_LABELS.search(str(error))):
            self._most_labels = limit
        else:
            self._most_questions = limit
        return True

    async def aclose(self) -> None:
        """Close the model's connections; the next request reopens them."""
        await self.client.aclose()


def _size(asking: Asking) -> tuple[int, int]:
    """Return the number of questions and the largest number of answers to one of them."""
    return len(asking.questions), max(len(one.choices) for one in asking.questions.values())
