"""Collects all votes on a task: reuses stored votes and requests the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from autorubric._events import Listener
from autorubric.graders._casting import (
    PrefixGate,
    batches_of,
    cast_all,
    find_checks,
    known_votes,
    skipped_votes,
)
from autorubric.graders._planning import JudgeCall, Planner, VoteKey
from autorubric.graders._stages import Stages
from autorubric.reporting import GradingPolicy, GradingTask, Votes
from autorubric.types import JudgeVote


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging(Planner):
    """Requests the votes of a panel.

    Attributes:
        policy: The rules that turn votes into decisions and scores.
        per_request: Maximum number of criteria in one request; 0 for all criteria of an item.
        warm_prefix: Whether one request of each item is sent to each model before the others.
    """

    policy: GradingPolicy
    per_request: int
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
