"""Stages of requesting the planned votes: rounds with early stopping, and the cascade.

Early stopping requests votes in rounds: each round has the fewest votes on a criterion that could settle it.
Disagreement among judges leads to more rounds, where requesting all votes at once takes a single round, so
early stopping saves calls but takes more time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from autorubric._events import Listener, VoteCast
from autorubric.aggregation import counts_weights, is_settled, votes_wanted
from autorubric.graders._casting import PrefixGate, all_or_cancel, cast_all
from autorubric.graders._planning import JudgeCall, VoteKey
from autorubric.reporting import GradingPolicy, GradingTask, criterion_report
from autorubric.types import JudgeVote


@dataclass(frozen=True, kw_only=True)
class Stages:
    """Requests the planned votes on one task in stages.

    Attributes:
        task: The task to grade.
        policy: The rules that turn votes into decisions and scores.
        per_request: Maximum number of criteria in one request; 0 for all criteria of an item.
        gate: Decides which requests wait for others; None if no request waits.
        listener: Notified of each vote as it arrives, and of each skipped vote.
        skipped_before: Keys of votes that a stored run skipped, which are not reported again.
        known: The votes collected so far.
    """

    task: GradingTask
    policy: GradingPolicy
    per_request: int
    gate: PrefixGate | None
    listener: Listener | None
    skipped_before: frozenset[VoteKey] = frozenset()
    known: dict[VoteKey, JudgeVote] = field(default_factory=dict)

    async def run(self, calls: Sequence[JudgeCall]) -> dict[VoteKey, JudgeVote]:
        """Return the votes of all calls; skipped calls have the status `not_asked`.

        Raises:
            JudgeError: If a vote failed and the policy raises failures.
            BudgetError: If the run's budget is spent.
        """
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
        if counts_weights(criterion, policy):
            open_calls.sort(key=lambda call: -call.seat.weight)
        unasked = [call.left_out() for call in open_calls]
        if is_settled(criterion, cast, unasked, policy):
            return ()
        return open_calls[: votes_wanted(criterion, cast, unasked, policy)]

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
