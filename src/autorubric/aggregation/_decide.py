"""Votes to decisions: samples within a judge first, then judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from pydantic import BaseModel, ConfigDict

from autorubric.aggregation._ballots import (
    Ballot,
    Count,
    OnFailure,
    agreement,
    decision_without_answers,
)
from autorubric.aggregation._methods import AGGREGATORS, Aggregator
from autorubric.criteria import BaseCriterion
from autorubric.errors import ArgumentError
from autorubric.types import Decision, JudgeVote
from autorubric.values import Answer

BinaryAggregation = Literal["majority", "weighted", "unanimous", "any"]
OrdinalAggregation = Literal["mean", "median", "weighted_mean", "mode", "min", "max"]
NominalAggregation = Literal["mode", "weighted_mode", "unanimous"]


class AggregationPolicy(BaseModel):
    """How votes become decisions, by measurement level.

    Attributes:
        aggregation: For binary criteria.
        ordinal_aggregation: For ordered scales and numbers.
        nominal_aggregation: For unordered choices.
        on_failure: Whether a reply that could not be read counts as the conservative answer, is left out,
            or raises.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    aggregation: BinaryAggregation = "majority"
    ordinal_aggregation: OrdinalAggregation = "mean"
    nominal_aggregation: NominalAggregation = "mode"
    on_failure: OnFailure = "conservative"

    def aggregator(self, criterion: BaseCriterion) -> Aggregator:
        """The aggregator for a criterion: its own where it names one, else that of its level.

        Raises:
            ArgumentError: The criterion names one that its level does not have.
        """
        level = criterion.level
        own: dict[str, str] = {
            "binary": self.aggregation,
            "nominal": self.nominal_aggregation,
            "text": "first",
        }
        name: str = criterion.aggregation or own.get(level, self.ordinal_aggregation)
        known = AGGREGATORS.get(level, {})
        if name not in known:
            raise ArgumentError(
                f"criterion {criterion.name!r}: no aggregation {name!r} for the level {level!r}; "
                f"allowed: {', '.join(known) or 'none'}"
            )
        return known[name]


def ballot_of(criterion: BaseCriterion, vote: JudgeVote) -> Ballot:
    """A vote as a ballot, its answer read anew by the criterion as it stands.

    A stored vote keeps the answer in words; its value is the criterion's to say, so that changed option
    values re-score old votes.
    """
    answer = criterion.parse_truth(vote.answer) if vote.answer is not None else None
    return Ballot(status=vote.status, answer=answer, unreadable=vote.unreadable, weight=vote.weight)


def decide(criterion: BaseCriterion, ballots: Sequence[Ballot], policy: AggregationPolicy) -> Decision:
    """What ballots on one criterion come to.

    Only answered ballots count, and under `on_failure="conservative"` unreadable ones as the conservative
    answer. Where none counts, the decision is abstained if any abstained, else failed.
    """
    answers: list[Answer] = []
    weights: list[float] = []
    for ballot in ballots:
        counted = _counted(criterion, ballot, policy)
        if counted is not None:
            answers.append(counted)
            weights.append(ballot.weight)
    if not answers:
        return decision_without_answers(ballots)
    outcome = policy.aggregator(criterion)(Count(answers=answers, weights=weights, criterion=criterion))
    return Decision(
        status="answered",
        answer=outcome.answer,
        mean_value=outcome.mean_value,
        tie=outcome.tie,
        agreement=agreement(ballots, outcome.answer),
        assumed=not any(ballot.status == "answered" for ballot in ballots),
    )


def _counted(criterion: BaseCriterion, ballot: Ballot, policy: AggregationPolicy) -> Answer | None:
    if ballot.status == "answered":
        return ballot.answer
    if ballot.status == "failed" and ballot.unreadable and policy.on_failure == "conservative":
        return criterion.conservative() if criterion.measures else None
    return None


def decide_by_judge(
    criterion: BaseCriterion, votes: Sequence[JudgeVote], policy: AggregationPolicy
) -> dict[str, Decision]:
    """What each judge's samples come to, by judge id in the order of first votes."""
    by_judge: dict[str, list[Ballot]] = {}
    for vote in votes:
        by_judge.setdefault(vote.judge_id, []).append(ballot_of(criterion, vote))
    strict = _answered_only(policy, votes)
    return {
        judge: _marked(
            decide(criterion, ballots, policy),
            decide(criterion, ballots, strict) if strict is not None else None,
        )
        for judge, ballots in by_judge.items()
    }


def decide_panel(
    criterion: BaseCriterion,
    votes: Sequence[JudgeVote],
    judges: Mapping[str, Decision],
    policy: AggregationPolicy,
) -> Decision:
    """What the judges' decisions come to; the agreement is over the single votes."""
    panel = _combined(criterion, votes, judges, policy)
    if panel.answer is None or panel.status != "answered":
        return panel
    lone_tie = len(judges) == 1 and next(iter(judges.values())).tie
    single = [ballot_of(criterion, vote) for vote in votes]
    panel = replace(panel, tie=panel.tie or lone_tie, agreement=agreement(single, panel.answer))
    strict = _answered_only(policy, votes)
    if strict is None:
        return panel
    alone = decide_by_judge(criterion, votes, strict)
    return _marked(panel, _combined(criterion, votes, alone, strict))


def _combined(
    criterion: BaseCriterion,
    votes: Sequence[JudgeVote],
    judges: Mapping[str, Decision],
    policy: AggregationPolicy,
) -> Decision:
    weights = {vote.judge_id: vote.weight for vote in votes}
    ballots = [
        # An assumed answer stands for unreadable replies and stays one of them.
        Ballot(
            status="failed" if made.assumed else made.status,
            answer=made.answer,
            unreadable=made.assumed,
            weight=weights[judge],
        )
        for judge, made in judges.items()
    ]
    return decide(criterion, ballots, policy)


def _answered_only(policy: AggregationPolicy, votes: Sequence[JudgeVote]) -> AggregationPolicy | None:
    """The policy without unreadable replies, where there are any that count; else None."""
    if policy.on_failure != "conservative" or not any(vote.unreadable for vote in votes):
        return None
    return policy.model_copy(update={"on_failure": "exclude"})


def _marked(decision: Decision, answered_only: Decision | None) -> Decision:
    """The decision, marked where the answered votes alone would have come to another."""
    if answered_only is None or decision.assumed or decision.answer is None:
        return decision
    alone = answered_only.answer.code if answered_only.answer else None
    return replace(decision, swayed=True) if alone != decision.answer.code else decision
