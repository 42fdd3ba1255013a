"""Collects the planned votes on one text: reuses stored votes and requests the others, in stages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from autorubric.criteria.conditions import find_check
from autorubric.errors import BudgetError, JudgeError
from autorubric.grading.base import GradingTask, VoteKey
from autorubric.grading.plan import JudgeCall
from autorubric.judges.vote import Cast, cast_in_threads, cast_vote, cast_votes
from autorubric.llm.budget import whole_budget
from autorubric.scoring.early_stopping import can_stop, votes_needed, weights_matter
from autorubric.scoring.report_builder import GradingPolicy, criterion_report
from autorubric.scoring.votes import JudgeVote, Listener, VoteCast, Votes


async def collect_votes(
    task: GradingTask,
    calls: Sequence[JudgeCall],
    policy: GradingPolicy,
    *,
    stored: Votes,
    listener: Listener | None,
    per_request: int,
    warm_prefix: bool,
) -> dict[str, list[JudgeVote]]:
    """Return the votes of all planned calls by criterion name; see `CriterionGrader.judge`."""
    votes = reusable_votes(calls, stored, policy)
    for call in calls:
        # All checks are registered before any request is sent.
        if call.request.criterion.check is not None and call.key not in votes:
            find_check(call.request.criterion.check)
    skipped = {key_of(name, vote) for name, given in stored.items() for vote in given if vote.skipped}
    gate = PrefixGate() if warm_prefix else None
    runner = VotePlanRunner(policy, per_request, gate, listener, frozenset(skipped), votes)
    await runner.run(calls)
    by_criterion: dict[str, list[JudgeVote]] = {criterion.name or "": [] for criterion in task.rubric}
    for call in calls:
        by_criterion[call.key[0]].append(votes[call.key])
    return by_criterion


def reusable_votes(
    calls: Sequence[JudgeCall], stored: Votes, policy: GradingPolicy
) -> dict[VoteKey, JudgeVote]:
    """Return stored votes for calls with current weights and values; failed ones unless failures raise."""
    if not any(stored.values()):
        return {}
    retry_failed = policy.aggregation.on_failure == "raise"
    by_key = {key_of(name, vote): vote for name, votes in stored.items() for vote in votes}
    return {
        call.key: _update_vote(call, vote)
        for call in calls
        if (vote := by_key.get(call.key)) is not None
        and not vote.skipped
        and not (retry_failed and vote.status == "failed")
    }


def key_of(criterion: str, vote: JudgeVote) -> VoteKey:
    return (criterion, vote.judge_id, vote.sample, vote.order or ())


def _update_vote(call: JudgeCall, vote: JudgeVote) -> JudgeVote:
    answer = call.request.criterion.parse_truth(vote.answer)
    return replace(vote, weight=call.member.weight, value=None if answer is None else answer.value)


class PrefixGate:
    """Sends one request per model and prompt prefix first; the others find it in the provider's cache."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, str | None, tuple[str, ...]], asyncio.Event] = {}

    @asynccontextmanager
    async def turn(self, call: JudgeCall) -> AsyncIterator[None]:
        """Wait for the call's turn; send the request inside the block."""
        if call.member.config is None:
            yield
            return
        prefix = (call.member.judge_id, call.request.system_prompt, call.request.order)
        if (answered := self._first.get(prefix)) is not None:
            await answered.wait()
            yield
            return
        answered = self._first[prefix] = asyncio.Event()
        try:
            yield
        finally:
            answered.set()


async def request_votes(
    calls: Sequence[JudgeCall],
    *,
    per_request: int,
    listener: Listener | None,
    raises: bool,
    gate: PrefixGate | None = None,
) -> dict[VoteKey, JudgeVote]:
    """Return the votes of all calls by key; with `raises`, failed votes raise. A `BudgetError` comes last."""
    votes: dict[VoteKey, JudgeVote] = {}

    def report(call: JudgeCall, cast: Cast | BudgetError) -> JudgeError | BudgetError | None:
        """Report a vote, and return the error to raise, if any."""
        if isinstance(cast, BudgetError):
            return cast
        if listener is not None:
            listener.vote_cast(VoteCast(call.request.item_id, call.key[0], cast.vote, cast.exchanged))
        votes[call.key] = cast.vote
        return cast.error if raises else None

    async def run(batch: Sequence[JudgeCall]) -> None:
        async with nullcontext() if gate is None else gate.turn(batch[0]):
            if len(batch) == 1:
                casts: Sequence[Cast | BudgetError] = [await cast_vote(batch[0].member, batch[0].request)]
            else:
                casts = await cast_votes(batch[0].member, [call.request for call in batch])
        errors = [report(call, cast) for call, cast in zip(batch, casts, strict=True)]
        # Raised last, so that the other votes of the same reply are reported first.
        for error in errors:
            if error is not None:
                raise error

    budget = whole_budget()
    in_threads: list[JudgeCall] = []
    # A budget in US dollars can let a call wait until another one has ended.
    if budget is None or not budget.counts_cost:
        in_threads = [call for call in calls if call.member.thread_function is not None]
        calls = [call for call in calls if call.member.thread_function is None] if in_threads else calls
    pairs = [(call.member, call.request) for call in in_threads]
    together = partial(cast_in_threads, pairs, lambda place, cast: report(in_threads[place], cast))
    work = [partial(run, batch) for batch in group_calls(calls, per_request)]
    await _run_all([together, *work] if in_threads else work)
    return votes


def group_calls(calls: Sequence[JudgeCall], size: int) -> list[list[JudgeCall]]:
    """Group calls into requests of at most `size` criteria (0 for all), or as many as the judge takes."""
    groups: dict[tuple[str, int, tuple[str, ...], int], list[JudgeCall]] = {}
    alone = []
    for call in calls:
        count = call.member.per_prompt(size)
        if count == 1:
            alone.append([call])
        else:
            # Comparative criteria share a request only if they show the candidates in the same order. Calls
            # that are repeated share no prompt with other criteria than at first.
            part = call.place // count if count else 0
            key = (call.member.judge_id, call.request.sample, call.request.order, part)
            groups.setdefault(key, []).append(call)
    return [*alone, *groups.values()]


async def _run_all(work: Sequence[Callable[[], Coroutine[Any, Any, None]]]) -> None:
    """Run all coroutines concurrently; the first exception cancels the rest and is raised once they end."""
    failures: list[BaseException] = []

    async def run(one: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await one()
        except BaseException as error:
            failures.append(error)
            # A `BudgetError` cancels nothing: requests in flight are paid for, and their votes are kept.
            if len(failures) == 1 and not isinstance(error, BudgetError):
                for task in tasks:
                    task.cancel()
            raise

    # Awaited one by one, at half the cost of `gather`: a task that fails cancels the others itself.
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(run(one)) for one in work]
    try:
        for task in tasks:
            await task
    except BaseException as error:
        first = failures[0] if failures else error
        if not isinstance(first, BudgetError):
            for task in tasks:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    else:
        return
    # Raised here, so that the cancellation of another task does not become its context.
    raise first


@dataclass(frozen=True)
class VotePlanRunner:
    """Requests the planned votes on one text: all at once, in rounds (early stopping), or as a cascade."""

    policy: GradingPolicy
    per_request: int  # maximum number of criteria in one request; 0 for all criteria of an item
    gate: PrefixGate | None  # decides which requests wait for others
    listener: Listener | None
    skipped_before: frozenset[VoteKey]  # votes that a stored run skipped, which are not reported again
    votes: dict[VoteKey, JudgeVote]  # the votes collected so far

    async def run(self, calls: Sequence[JudgeCall]) -> None:
        """Collect the votes of all calls; skipped calls have the status `not_asked`."""
        rule, stops = self.policy.escalation, self.policy.stop_when_decided
        if rule is None:
            await self._request(calls, stops=stops)
            return
        second = [call for call in calls if call.member.judge_id in rule.judges]
        first = [call for call in calls if call.member.judge_id not in rule.judges]
        # All first judges vote, because their agreement decides whether to escalate.
        await self._request(first, stops=False)
        unsure = set()
        for name, calls in _by_criterion(first).items():
            votes = [self.votes[call.key] for call in calls]
            if criterion_report(calls[0].request.criterion, votes, self.policy).escalated:
                unsure.add(name)
        await self._request([call for call in second if call.criterion_name in unsure], stops=stops)
        self._skip(second)

    async def _request(self, calls: Sequence[JudgeCall], *, stops: bool) -> None:
        if not stops:
            await self._cast(self._missing_calls(calls))
            return
        by_criterion = list(_by_criterion(calls).values())
        # Criteria that share requests go through their rounds together.
        is_alone = self.per_request == 1 and not any(call.member.asks_whole_items for call in calls)
        groups = [[own] for own in by_criterion] if is_alone else [by_criterion]
        await _run_all([partial(self._request_until_decided, group) for group in groups])

    async def _request_until_decided(self, criteria: Sequence[Sequence[JudgeCall]]) -> None:
        while wanted := [call for own in criteria for call in self._next_calls(own)]:
            await self._cast(wanted)
        for own in criteria:
            self._skip(own)

    def _next_calls(self, calls: Sequence[JudgeCall]) -> Sequence[JudgeCall]:
        """Return the fewest calls that could decide a criterion's verdict; empty if it is decided."""
        criterion, policy = calls[0].request.criterion, self.policy.aggregation
        votes = [self.votes[call.key] for call in calls if call.key in self.votes]
        remaining = self._missing_calls(calls)
        if weights_matter(criterion, policy):
            remaining.sort(key=lambda call: -call.member.weight)
        unasked = [call.skipped_vote() for call in remaining]
        if can_stop(criterion, votes, unasked, policy):
            return ()
        return remaining[: votes_needed(criterion, votes, unasked, policy)]

    def _missing_calls(self, calls: Sequence[JudgeCall]) -> list[JudgeCall]:
        return [call for call in calls if call.key not in self.votes]

    async def _cast(self, calls: Sequence[JudgeCall]) -> None:
        raises = self.policy.aggregation.on_failure == "raise"
        self.votes.update(
            await request_votes(
                calls, per_request=self.per_request, listener=self.listener, raises=raises, gate=self.gate
            )
        )

    def _skip(self, calls: Sequence[JudgeCall]) -> None:
        for call in self._missing_calls(calls):
            vote = self.votes[call.key] = call.skipped_vote()
            if self.listener is not None and call.key not in self.skipped_before:
                self.listener.vote_cast(VoteCast(call.request.item_id, call.criterion_name, vote))


def _by_criterion(calls: Sequence[JudgeCall]) -> Mapping[str, list[JudgeCall]]:
    found: dict[str, list[JudgeCall]] = {}
    for call in calls:
        found.setdefault(call.criterion_name, []).append(call)
    return found
