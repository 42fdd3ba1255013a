"""Casts the vote of one judge on one criterion for one sample."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, NamedTuple

from pydantic import BaseModel

from autorubric.criteria.values import Answer, CriterionVerdict
from autorubric.errors import BudgetError, JudgeCodeError, JudgeError, ReplyError
from autorubric.judges.base import (
    BatchJudge,
    JudgeReply,
    JudgeRequest,
    ask_judge,
    ask_judge_many,
    failure_of,
    shared_error,
)
from autorubric.judges.panel import PanelMember
from autorubric.llm.budget import one_call
from autorubric.scoring.votes import JudgeVote, VoteExchange
from autorubric.support.objects import logger_of

_log = logger_of(__name__)

Clock = Callable[[], float]
"""Returns the seconds since an arbitrary fixed time, as `time.perf_counter` does."""


class Cast(NamedTuple):
    """A vote with its message exchange and error."""

    vote: JudgeVote
    exchanged: VoteExchange | None = None  # if a model was called or a reply could not be read
    error: JudgeError | None = None  # the error of a failed vote


async def cast_vote(member: PanelMember, request: JudgeRequest, *, clock: Clock = time.perf_counter) -> Cast:
    """Request one vote from a judge in a panel and return it; an error becomes a failed vote."""
    started = clock()
    outcome: JudgeReply | JudgeError
    try:
        if (problem := request.criterion.why_inapplicable(request.submission)) is not None:
            raise JudgeError(problem)
        async with _count_call(member):
            outcome = await ask_judge(member.judge, request, judge_id=member.judge_id)
    except JudgeError as error:
        outcome = error
    return _make_cast(member, request, outcome, clock() - started)


async def cast_votes(
    member: PanelMember, requests: Sequence[JudgeRequest], *, clock: Clock = time.perf_counter
) -> list[Cast | BudgetError]:
    """Request votes on several criteria of one item together and return them in request order.

    If the budget does not allow a call, its `BudgetError` is returned in place of the vote.
    """
    if len(requests) == 1 or not isinstance(member.judge, BatchJudge):
        return [await cast_vote(member, request, clock=clock) for request in requests]
    started = clock()
    outcomes: Sequence[JudgeReply | JudgeError | BudgetError]
    try:
        async with _count_call(member):
            outcomes = await ask_judge_many(member.judge, requests, judge_id=member.judge_id)
    except JudgeError as error:
        outcomes = shared_error(error, len(requests))
    seconds = clock() - started
    return [
        outcome if isinstance(outcome, BudgetError) else _make_cast(member, request, outcome, seconds)
        for request, outcome in zip(requests, outcomes, strict=True)
    ]


def _count_call(member: PanelMember) -> AbstractAsyncContextManager[None]:
    """Count a call in the current budget; requests to models are counted when they are sent."""
    return one_call() if member.counts_as_call else nullcontext()


def _make_cast(
    member: PanelMember, request: JudgeRequest, outcome: JudgeReply | JudgeError, seconds: float
) -> Cast:
    if isinstance(outcome, JudgeError):
        return _failed_cast(member, request, outcome, seconds)
    if not outcome.asked:
        return Cast(vote=_vote(member, request, status="not_asked"))
    try:
        answer = read_answer(request, outcome)
    except ReplyError as error:
        error.usage, error.cost, error.selected_model = outcome.usage, outcome.cost, outcome.model
        if error.reply is None:
            error.reply = reply_text(outcome.answer)
        return _failed_cast(member, request, error, seconds, outcome.exchanged)
    except Exception as error:
        # An object returned by a judge's own code may raise from any of its methods.
        return _failed_cast(member, request, failure_of(member.judge_id, error), seconds, outcome.exchanged)
    return Cast(_answered_vote(member, request, outcome, answer, seconds), outcome.exchanged)


def _vote(member: PanelMember, request: JudgeRequest, **fields: Any) -> JudgeVote:
    return JudgeVote(
        judge_id=member.judge_id,
        sample=request.sample,
        weight=member.weight,
        order=request.order or None,
        **fields,
    )


def _answered_vote(
    member: PanelMember, request: JudgeRequest, outcome: JudgeReply, answer: Answer, seconds: float
) -> JudgeVote:
    is_choice = request.criterion.level in ("ordinal", "nominal")
    return _vote(
        member,
        request,
        status="abstained" if answer.abstains else "answered",
        answer=answer.code,
        verdict=_verdict(answer) if request.criterion.level == "binary" else None,
        selected_index=answer.index if is_choice else None,
        selected_label=answer.label if is_choice else None,
        value=answer.value,
        na=answer.na,
        reason=outcome.reason or answer.reason,
        confidence=outcome.confidence,
        model=outcome.model,
        truncated=outcome.truncated,
        token_usage=outcome.usage,
        completion_cost=outcome.cost,
        latency_seconds=seconds,
    )


def read_answer(request: JudgeRequest, reply: JudgeReply) -> Answer:
    """Return the answer in a reply, read by the request's criterion."""
    if reply.answer is None:
        return Answer(code=None, cannot_assess=True, reason=reply.reason)
    if isinstance(reply.answer, Answer):
        return reply.answer
    return request.criterion.read(reply.answer)


def _verdict(answer: Answer) -> CriterionVerdict:
    if answer.cannot_assess:
        return CriterionVerdict.CANNOT_ASSESS
    return CriterionVerdict.MET if answer.value == 1.0 else CriterionVerdict.UNMET


def reply_text(result: object) -> str | None:
    """Return a judge's or evaluator's result as text, with data as JSON; None if it cannot be converted."""
    if isinstance(result, BaseModel):
        result = result.model_dump()
    if isinstance(result, str):
        return result
    if not isinstance(result, Mapping | list | tuple | bool | int | float):
        return None
    try:
        return json.dumps(result, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return None


def _failed_cast(
    member: PanelMember,
    request: JudgeRequest,
    error: JudgeError,
    seconds: float,
    exchanged: VoteExchange | None = None,
) -> Cast:
    _log_once(member, error)
    vote = _vote(
        member,
        request,
        status="failed",
        error=f"{type(error).__name__}: {error}",
        unreadable=isinstance(error, ReplyError),
        model=error.selected_model,
        token_usage=error.usage,
        completion_cost=error.cost,
        latency_seconds=seconds,
    )
    return Cast(vote=vote, exchanged=exchanged or _exchange_of(error), error=error)


def _log_once(member: PanelMember, error: JudgeError) -> None:
    """Log the traceback of a judge's programming error, once for each location that raises it."""
    if isinstance(error, JudgeCodeError) and error.place not in member.logged:
        member.logged.add(error.place)
        _log.error("%s", error, exc_info=error.__cause__ or error)


def _exchange_of(error: JudgeError) -> VoteExchange | None:
    """Return the exchange stored in an error; None if the error has neither messages nor replies."""
    replies = error.replies
    if not replies and isinstance(error, ReplyError) and error.reply is not None:
        replies = (error.reply,)
    if not error.messages and not replies:
        return None
    return VoteExchange(
        messages=error.messages, replies=replies, request_id=error.request_id, attempted=error.attempted
    )
