"""Collects the planned votes in stages: reuses stored votes and requests the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from autorubric.criteria.conditions import find_check
from autorubric.errors import BudgetError, JudgeError
from autorubric.grading.base import GradingTask
from autorubric.grading.plan import JudgeCall, Planner, VoteKey
from autorubric.judges.base import BatchJudge
from autorubric.judges.vote import Cast, cast_vote, cast_votes
from autorubric.scoring.early_stopping import can_stop, votes_needed, weights_matter
from autorubric.scoring.events import Listener, VoteCast
from autorubric.scoring.report_builder import GradingPolicy, criterion_report
from autorubric.scoring.votes import JudgeVote, Votes


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
    """Check that the checks of all criteria are registered, before any request is sent."""
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

    per_request: Maximum number of criteria in one request; 0 for all criteria of an item.
    gate: Decides which requests wait for others; None if no request waits.
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


@dataclass(frozen=True, kw_only=True)
class Stages:
    """Requests the planned votes on one task in stages."""

    task: GradingTask
    policy: GradingPolicy
    per_request: int  # maximum number of criteria in one request; 0 for all criteria of an item
    gate: PrefixGate | None  # decides which requests wait for others; None if no request waits
    listener: Listener | None
    skipped_before: frozenset[VoteKey] = frozenset()
    known: dict[VoteKey, JudgeVote] = field(default_factory=dict)

    async def run(self, calls: Sequence[JudgeCall]) -> dict[VoteKey, JudgeVote]:
        """Return the votes of all calls; skipped calls have the status `not_asked`."""
        rule = self.policy.escalation
        if rule is None:
            await self._ask(calls, stops=self.policy.stop_when_decided)
            return self.known
        strong = set(rule.judges)
        first = [call for call in calls if call.seat.judge_id not in strong]
        # All first judges vote, because their agreement decides whether to escalate.
        await self._ask(first, stops=False)
        unsure = self._unsure(first)
        second = [call for call in calls if call.seat.judge_id in strong]
        await self._ask(
            [call for call in second if _name(call) in unsure], stops=self.policy.stop_when_decided
        )
        self._leave_out([call for call in second if call.key not in self.known])
        return self.known

    def _unsure(self, calls: Sequence[JudgeCall]) -> set[str]:
        """Return the names of the criteria that the first judges are unsure of."""
        return {
            name
            for name, own in _by_criterion(calls).items()
            if criterion_report(
                own[0].request.criterion, [self.known[call.key] for call in own], self.policy
            ).escalated
        }

    async def _ask(self, calls: Sequence[JudgeCall], *, stops: bool) -> None:
        if not stops:
            await self._cast([call for call in calls if call.key not in self.known])
            return
        by_criterion = list(_by_criterion(calls).values())
        # Criteria that share requests go through their rounds together.
        groups = [[own] for own in by_criterion] if self.per_request == 1 else [by_criterion]
        await all_or_cancel([partial(self._until_decided, group) for group in groups])

    async def _until_decided(self, criteria: Sequence[Sequence[JudgeCall]]) -> None:
        while wanted := [call for own in criteria for call in self._next(own)]:
            await self._cast(wanted)
        self._leave_out([call for own in criteria for call in own if call.key not in self.known])

    def _next(self, calls: Sequence[JudgeCall]) -> Sequence[JudgeCall]:
        """Return the fewest calls that could settle a criterion's verdict; empty if it is settled."""
        criterion, policy = calls[0].request.criterion, self.policy.aggregation
        cast = [self.known[call.key] for call in calls if call.key in self.known]
        open_calls = [call for call in calls if call.key not in self.known]
        if weights_matter(criterion, policy):
            open_calls.sort(key=lambda call: -call.seat.weight)
        unasked = [call.left_out() for call in open_calls]
        if can_stop(criterion, cast, unasked, policy):
            return ()
        return open_calls[: votes_needed(criterion, cast, unasked, policy)]

    async def _cast(self, calls: Sequence[JudgeCall]) -> None:
        self.known.update(
            await cast_all(
                calls,
                per_request=self.per_request,
                listener=self.listener,
                raises=self.policy.aggregation.on_failure == "raise",
                gate=self.gate,
            )
        )

    def _leave_out(self, calls: Sequence[JudgeCall]) -> None:
        for call in calls:
            vote = self.known[call.key] = call.left_out()
            if self.listener is not None and call.key not in self.skipped_before:
                event = VoteCast(item_id=self.task.item_id, criterion=_name(call), vote=vote)
                self.listener.vote_cast(event)


def _name(call: JudgeCall) -> str:
    return call.request.criterion.name or ""


def _by_criterion(calls: Sequence[JudgeCall]) -> Mapping[str, list[JudgeCall]]:
    found: dict[str, list[JudgeCall]] = {}
    for call in calls:
        found.setdefault(_name(call), []).append(call)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging(Planner):
    """Requests the votes of a panel."""

    policy: GradingPolicy
    per_request: int  # maximum number of criteria in one request; 0 for all criteria of an item
    warm_prefix: bool

    def plan(self, task: GradingTask) -> tuple[JudgeCall, ...]:
        """Return every vote to be cast on a task; see `CriterionGrader.plan`."""
        for criterion in task.rubric:
            self.policy.aggregation.aggregator(criterion)
        return tuple(self.calls(task))

    async def votes(
        self, task: GradingTask, stored: Votes, listener: Listener | None
    ) -> dict[str, list[JudgeVote]]:
        """Return all votes on the task by criterion name; see `CriterionGrader.judge`."""
        calls = self.plan(task)
        known = self._known(calls, stored)
        find_checks([call for call in calls if call.key not in known] if known else calls)
        stages = Stages(
            task=task,
            policy=self.policy,
            per_request=self.per_request,
            gate=PrefixGate() if self.warm_prefix else None,
            listener=listener,
            skipped_before=skipped_votes(stored),
            known=known,
        )
        known = await stages.run(calls)
        votes: dict[str, list[JudgeVote]] = {criterion.name or "": [] for criterion in task.rubric}
        for call in calls:
            votes[call.request.criterion.name or ""].append(known[call.key])
        return votes

    def requests(self, task: GradingTask, stored: Votes) -> list[list[JudgeCall]]:
        """Return all requests that grading a task may need; see `CriterionGrader.requests`."""
        calls = self.plan(task)
        known = self._known(calls, stored)
        return batches_of([call for call in calls if call.key not in known], self.per_request)

    async def first_votes(
        self, task: GradingTask, stored: Votes, listener: Listener | None
    ) -> dict[str, list[JudgeVote]]:
        """Send one request to each model and return the votes; see `CriterionGrader.first_votes`."""
        escalated_to = self.policy.escalation.judges if self.policy.escalation is not None else ()
        first: dict[str, list[JudgeCall]] = {}
        for batch in self.requests(task, stored):
            seat = batch[0].seat
            if seat.config is not None and seat.judge_id not in escalated_to:
                first.setdefault(seat.judge_id, batch)
        calls = [call for batch in first.values() for call in batch]
        cast = await cast_all(calls, per_request=self.per_request, listener=listener, raises=False)
        votes: dict[str, list[JudgeVote]] = {}
        for call in calls:
            votes.setdefault(call.request.criterion.name or "", []).append(cast[call.key])
        return votes

    def _known(self, calls: Sequence[JudgeCall], stored: Votes) -> dict[VoteKey, JudgeVote]:
        # If failures raise, votes that are stored as failed are requested again.
        return known_votes(calls, stored, retry_failed=self.policy.aggregation.on_failure == "raise")
