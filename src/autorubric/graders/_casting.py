"""Casts the planned votes: reuses stored votes and requests the others, in shared requests if possible."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from autorubric._events import Listener, VoteCast
from autorubric.criteria import find_check
from autorubric.critic import Cast, cast_vote, cast_votes
from autorubric.errors import BudgetError, JudgeError
from autorubric.graders._planning import JudgeCall, VoteKey
from autorubric.judges import BatchJudge
from autorubric.reporting import Votes
from autorubric.types import JudgeVote


def known_votes(calls: Sequence[JudgeCall], stored: Votes, *, retry_failed: bool) -> dict[VoteKey, JudgeVote]:
    """Return the stored votes for these calls, with current weights and values."""
    there = {
        (name, vote.judge_id, vote.sample, vote.order or ()): vote
        for name, votes in stored.items()
        for vote in votes
    }
    return {
        call.key: _as_of_now(call, vote)
        for call in calls
        if (vote := there.get(call.key)) is not None
        and not vote.skipped
        and not (retry_failed and vote.status == "failed")
    }


def skipped_votes(stored: Votes) -> frozenset[VoteKey]:
    """Return the keys of the stored votes that were skipped."""
    return frozenset(
        (name, vote.judge_id, vote.sample, vote.order or ())
        for name, votes in stored.items()
        for vote in votes
        if vote.skipped
    )


def find_checks(calls: Sequence[JudgeCall]) -> None:
    """Check that the checks of all criteria are registered, before any request is sent.

    Raises:
        ArgumentError: If a check is not registered.
    """
    for call in calls:
        if call.request.criterion.check is not None:
            find_check(call.request.criterion.check)


class PrefixGate:
    """Sends one request per model and prompt prefix first; the others wait until it is answered.

    By then, the provider's prefix cache contains the prefix, which the other requests of the item reuse.
    """

    def __init__(self) -> None:
        self._first: dict[tuple[str, str | None, tuple[str, ...]], asyncio.Event] = {}

    @asynccontextmanager
    async def turn(self, call: JudgeCall) -> AsyncIterator[None]:
        """Wait for the call's turn; send the request inside the block."""
        if call.seat.config is None:
            yield
            return
        prefix = (call.seat.judge_id, call.request.system_prompt, call.request.order)
        if (answered := self._first.get(prefix)) is not None:
            await answered.wait()
            yield
            return
        answered = self._first[prefix] = asyncio.Event()
        try:
            yield
        finally:
            answered.set()


async def cast_all(
    calls: Sequence[JudgeCall],
    *,
    per_request: int,
    listener: Listener | None,
    raises: bool,
    gate: PrefixGate | None = None,
) -> dict[VoteKey, JudgeVote]:
    """Make all calls and return the votes by key.

    Args:
        calls: The calls to make.
        per_request: Maximum number of criteria in one request; 0 for all criteria of an item.
        listener: Receives each vote as it arrives.
        raises: Whether to raise the error of the first failed vote.
        gate: Decides which requests wait for others; None if no request waits.

    Raises:
        JudgeError: If a vote failed and `raises` is set.
        BudgetError: If the run's budget is used up; calls in flight are still completed and reported.
    """
    votes: dict[VoteKey, JudgeVote] = {}

    async def run(batch: Sequence[JudgeCall]) -> None:
        if gate is None:
            casts = await _cast_batch(batch)
        else:
            async with gate.turn(batch[0]):
                casts = await _cast_batch(batch)
        errors: list[JudgeError | BudgetError] = []
        for call, cast in zip(batch, casts, strict=True):
            if isinstance(cast, BudgetError):
                errors.append(cast)
                continue
            _tell(listener, call, cast)
            votes[call.key] = cast.vote
            if cast.error is not None and raises:
                errors.append(cast.error)
        # Raised last, so that the other votes of the same reply are reported first.
        if errors:
            raise errors[0]

    await all_or_cancel([partial(run, batch) for batch in batches_of(calls, per_request)])
    return votes


def batches_of(calls: Sequence[JudgeCall], size: int) -> list[list[JudgeCall]]:
    """Group calls into requests; a judge that takes one criterion at a time gets one call per request.

    Comparative criteria share a request only if they show the same candidates in the same order.
    """
    groups: dict[tuple[str, int, tuple[str, ...]], list[JudgeCall]] = {}
    alone = []
    for call in calls:
        if size == 1 or not isinstance(call.seat.judge, BatchJudge):
            alone.append([call])
        else:
            key = (call.seat.judge_id, call.request.sample, call.request.order)
            groups.setdefault(key, []).append(call)
    shared = [
        group[start : start + (size or len(group))]
        for group in groups.values()
        for start in range(0, len(group), size or len(group))
    ]
    return [*alone, *shared]


def _tell(listener: Listener | None, call: JudgeCall, cast: Cast) -> None:
    if listener is None:
        return
    request = call.request
    listener.vote_cast(VoteCast(request.item_id, request.criterion.name or "", cast.vote, cast.exchanged))


def _as_of_now(call: JudgeCall, vote: JudgeVote) -> JudgeVote:
    """Return a stored vote with the judge's current weight and the current values of the options."""
    answer = call.request.criterion.parse_truth(vote.answer)
    return replace(vote, weight=call.seat.weight, value=None if answer is None else answer.value)


async def _cast_batch(batch: Sequence[JudgeCall]) -> Sequence[Cast | BudgetError]:
    if len(batch) == 1:
        return [await cast_vote(batch[0].seat, batch[0].request)]
    return await cast_votes(batch[0].seat, [call.request for call in batch])


async def all_or_cancel(work: Sequence[Callable[[], Coroutine[Any, Any, None]]]) -> None:
    """Run all coroutines concurrently; the first exception cancels the rest and is raised once they end.

    A `BudgetError` cancels nothing, because requests in flight are paid for and their votes are kept.
    """
    # Awaited one by one, at half the cost of `gather`: a task that fails cancels the others itself.
    loop = asyncio.get_running_loop()
    tasks: list[asyncio.Task[None]] = []
    failures: list[BaseException] = []
    tasks += [loop.create_task(_telling(one, tasks, failures)) for one in work]
    try:
        for task in tasks:
            await task
    except BaseException as error:
        first = failures[0] if failures else error
        if not isinstance(first, BudgetError):
            _cancel(tasks)
        await asyncio.gather(*tasks, return_exceptions=True)
    else:
        return
    # Raised here, so that the cancellation of another task does not become its context.
    raise first


async def _telling(
    work: Callable[[], Coroutine[Any, Any, None]],
    tasks: Sequence[asyncio.Task[None]],
    failures: list[BaseException],
) -> None:
    try:
        await work()
    except BaseException as error:
        failures.append(error)
        if len(failures) == 1 and not isinstance(error, BudgetError):
            _cancel(tasks)
        raise


def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
