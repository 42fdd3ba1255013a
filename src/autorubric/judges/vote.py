"""Casts the vote of one judge on one criterion for one sample."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import Context, copy_context
from dataclasses import replace
from functools import partial
from inspect import isawaitable
from typing import Any, NamedTuple

from pydantic import BaseModel

from autorubric.criteria.values import Answer, CriterionVerdict
from autorubric.errors import BudgetError, JudgeCodeError, JudgeError, ReplyError
from autorubric.judges.base import (
    BatchJudge,
    JudgeReply,
    JudgeRequest,
    Outcome,
    ask_judge_many,
    call_judge,
    failure_of,
    reply_of,
    shared_error,
)
from autorubric.judges.panel import PanelMember
from autorubric.llm.budget import OneCall
from autorubric.llm.interception import BATCHES, vote_within
from autorubric.scoring.probabilities import probable_answer, read_probabilities
from autorubric.scoring.votes import JudgeVote, VoteExchange, make_vote
from autorubric.support.concurrency import NoStrayCancellation, call_in_thread
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
        async with _count_call(member, request):
            outcome = reply_of(await call_judge(member.judge.ask, request, member.judge_id))
    except JudgeError as error:
        outcome = error
    return _make_cast(member, request, outcome, clock() - started)


async def cast_votes(
    member: PanelMember, requests: Sequence[JudgeRequest], *, clock: Clock = time.perf_counter
) -> list[Cast | BudgetError]:
    """Request votes on criteria of one item together; a call beyond the budget gives its `BudgetError`."""
    if len(requests) == 1 or not isinstance(member.judge, BatchJudge):
        return [await cast_vote(member, request, clock=clock) for request in requests]
    started = clock()
    try:
        async with _count_call(member, *requests):
            outcomes = await ask_judge_many(member.judge, requests, judge_id=member.judge_id)
    except JudgeError as error:
        outcomes = shared_error(error, len(requests))
    seconds = clock() - started
    return [
        outcome if isinstance(outcome, BudgetError) else _make_cast(member, request, outcome, seconds)
        for request, outcome in zip(requests, outcomes, strict=True)
    ]


def _count_call(member: PanelMember, *requests: JudgeRequest) -> AbstractAsyncContextManager[None]:
    """Count a call in the current budget; requests to models are counted when they are sent."""
    if member.counts_as_call:
        return OneCall()
    if BATCHES.get() is None:
        return nullcontext()
    names = [request.criterion.name or "" for request in requests]
    return vote_within(requests[0].item_id, member.judge_id, *names)


class _ThreadCast(NamedTuple):
    place: int  # number of the call
    started: float
    call: OneCall
    context: Context
    result: asyncio.Future[Any]
    is_awaited: bool = False  # whether the result is that of an awaitable that the function returned


async def cast_in_threads(
    calls: Sequence[tuple[PanelMember, JudgeRequest]],
    report: Callable[[int, Cast | BudgetError], JudgeError | BudgetError | None],
    *,
    clock: Clock = time.perf_counter,
) -> None:
    """Request votes from synchronous functions together; threads call one function after the other.

    `report` gets the number of each call and its vote as it arrives. The error that it returns is raised, a
    `BudgetError` after all calls have ended.
    """
    waiting: list[_ThreadCast] = []
    failures: list[BudgetError] = []

    def end(place: int, seconds: float, outcome: Outcome) -> None:
        done = outcome if isinstance(outcome, BudgetError) else _make_cast(*calls[place], outcome, seconds)
        failure = report(place, done)
        if isinstance(failure, BudgetError):
            failures.append(failure)
        elif failure is not None:
            raise failure

    try:
        for place, (member, request) in enumerate(calls):
            call, context, started = OneCall(), copy_context(), clock()
            try:
                if (problem := request.criterion.why_inapplicable(request.submission)) is not None:
                    raise JudgeError(problem)
                await call.begin()
            except (JudgeError, BudgetError) as error:
                end(place, clock() - started, error)
                continue
            error_of = partial(failure_of, member.judge.judge_id)
            result = call_in_thread(
                call.run, member.thread_function, request, error_of=error_of, context=context
            )
            waiting.append(_ThreadCast(place, started, call, context, result))
        while waiting:
            await asyncio.wait([one.result for one in waiting], return_when=asyncio.FIRST_COMPLETED)
            for one in [one for one in waiting if one.result.done()]:
                waiting.remove(one)
                has_value = not (one.is_awaited or one.result.cancelled() or one.result.exception())
                if has_value and isawaitable(one.result.result()):
                    made = one.context.run(asyncio.ensure_future, one.result.result())
                    waiting.append(one._replace(result=made, is_awaited=True))
                    continue
                outcome = await _outcome_of(calls[one.place][0], one.result)
                await one.call.end()
                end(one.place, clock() - one.started, outcome)
    finally:
        for one in waiting:
            one.result.cancel()
            await one.call.end()
        await asyncio.gather(*[one.result for one in waiting], return_exceptions=True)
    if failures:
        raise failures[0]


async def _outcome_of(member: PanelMember, result: asyncio.Future[Any]) -> Outcome:
    """Return what a function returned, or raised as a failure of its judge."""
    try:
        with NoStrayCancellation(f"judge {member.judge_id!r}"):
            return reply_of(await result)
    except (JudgeError, BudgetError) as error:
        return error
    # The function is user code, so any exception counts as a failure of this judge.
    except Exception as error:
        failure = failure_of(member.judge.judge_id, error)
        failure.__cause__ = error
        return failure


def _make_cast(
    member: PanelMember, request: JudgeRequest, outcome: JudgeReply | JudgeError, seconds: float | None
) -> Cast:
    if BATCHES.get() is not None and not member.counts_as_call:
        # The time to read a reply of a batch says nothing of the model.
        seconds = None
    if isinstance(outcome, JudgeError):
        return _failed_cast(member, request, outcome, seconds)
    if not outcome.asked:
        return Cast(vote=_vote(member, request, status="not_asked"))
    try:
        if outcome.probabilities is not None:
            found = read_probabilities(request.criterion, outcome.probabilities)
            outcome = replace(outcome, probabilities=found)
        answer = read_answer(request, outcome)
    except ReplyError as error:
        error.usage, error.cost, error.selected_model = outcome.usage, outcome.cost, outcome.model
        error.reply = reply_text(outcome.answer) if error.reply is None else error.reply
        error.seconds = outcome.seconds
        return _failed_cast(member, request, error, seconds, outcome.exchanged)
    except Exception as error:
        # An object returned by a judge's own code may raise from any of its methods.
        return _failed_cast(member, request, failure_of(member.judge_id, error), seconds, outcome.exchanged)
    return Cast(_answered_vote(member, request, outcome, answer, seconds), outcome.exchanged)


def _vote(member: PanelMember, request: JudgeRequest, **fields: Any) -> JudgeVote:
    return make_vote(
        judge_id=member.judge_id,
        sample=request.sample,
        weight=member.weight,
        order=request.order or None,
        **fields,
    )


def _answered_vote(
    member: PanelMember, request: JudgeRequest, outcome: JudgeReply, answer: Answer, seconds: float | None
) -> JudgeVote:
    level = request.criterion.level
    is_choice = level == "ordinal" or level == "nominal"
    # Not by `_vote`, since passing the fields on takes a twentieth of a vote's time.
    return make_vote(
        judge_id=member.judge_id,
        sample=request.sample,
        weight=member.weight,
        order=request.order or None,
        status="abstained" if answer.abstains else "answered",
        answer=answer.code,
        verdict=_verdict(answer) if level == "binary" else None,
        selected_index=answer.index if is_choice else None,
        selected_label=answer.label if is_choice else None,
        value=answer.value,
        na=answer.na,
        reason=outcome.reason or answer.reason,
        confidence=outcome.confidence,
        probabilities=outcome.probabilities,
        probability_source=outcome.probability_source,
        probability_backend=outcome.probability_backend,
        probability_reason=outcome.probability_reason,
        model=outcome.model,
        truncated=outcome.truncated,
        shown=outcome.shown,
        token_usage=outcome.usage,
        completion_cost=outcome.cost,
        latency_seconds=seconds if seconds is None or outcome.seconds is None else outcome.seconds,
        wait_seconds=_wait_of(outcome, seconds),
    )


def _wait_of(outcome: JudgeReply | JudgeError, seconds: float | None) -> float:
    """Return the part of the seconds of a vote that was before its last request, in whole milliseconds."""
    if seconds is None or outcome.seconds is None:
        return 0.0
    return max(0, int(1000 * (seconds - outcome.seconds))) / 1000


def read_answer(request: JudgeRequest, reply: JudgeReply) -> Answer:
    if reply.answer is None and reply.probabilities is not None:
        return replace(probable_answer(request.criterion, reply.probabilities)[0], reason=reply.reason)
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
    seconds: float | None,
    exchanged: VoteExchange | None = None,
) -> Cast:
    if isinstance(error, JudgeCodeError) and error.place not in member.logged:
        member.logged.add(error.place)
        _log.error("%s", error, exc_info=error.__cause__ or error)
    vote = _vote(
        member,
        request,
        status="failed",
        error=f"{type(error).__name__}: {error}",
        unreadable=isinstance(error, ReplyError),
        model=error.selected_model,
        token_usage=error.usage,
        completion_cost=error.cost,
        latency_seconds=seconds if seconds is None or error.seconds is None else error.seconds,
        wait_seconds=_wait_of(error, seconds),
    )
    return Cast(vote=vote, exchanged=exchanged or _exchange_of(error), error=error)


def _exchange_of(error: JudgeError) -> VoteExchange | None:
    """Return the exchange stored in an error; None if the error has neither messages nor replies."""
    replies = error.replies
    if not replies and isinstance(error, ReplyError) and error.reply is not None:
        replies = (error.reply,)
    if not error.messages and not replies:
        return None
    return VoteExchange(
        messages=error.messages,
        replies=replies,
        request_id=error.request_id,
        attempted=error.attempted,
        requests_left=error.requests_left,
    )
