"""Decisions from votes, which combine first the samples of each judge and then the judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from autorubric._kept import Kept
from autorubric.aggregation._ballots import Ballot, Count, agreement, decision_without_answers
from autorubric.aggregation._policy import AggregationPolicy
from autorubric.criteria import BaseCriterion
from autorubric.types import Decision, JudgeVote, prefers_alike
from autorubric.values import Answer, Json

_Cast: TypeAlias = tuple[type, Json, float]
"""Type, content and weight of an answer; True, 1 and 1.0 compare equal but are different answers."""


@dataclass(slots=True)
class _WorkedOut:
    """Cached results for a criterion under a policy.

    Attributes:
        alone: Decisions from answered votes that are the only vote of their judge.
    """

    alone: dict[_Cast, Decision] = field(default_factory=dict)


_WORKED_OUT: Final = Kept[AggregationPolicy, Kept[BaseCriterion, _WorkedOut]](
    lambda policy: Kept(lambda criterion: _WorkedOut())
)


def ballot_of(criterion: BaseCriterion, vote: JudgeVote) -> Ballot:
    """Convert a vote to a ballot, parsing its answer again with the current criterion.

    Stored votes contain the answer in words, and the criterion assigns its value. If option values change,
    old votes therefore get the new values.
    """
    answer = criterion.parse_truth(vote.answer) if vote.answer is not None else None
    return Ballot(status=vote.status, answer=answer, unreadable=vote.unreadable, weight=vote.weight)


def decide(criterion: BaseCriterion, ballots: Sequence[Ballot], policy: AggregationPolicy) -> Decision:
    """Combine the ballots on a criterion into a decision.

    Answered ballots count, and with `on_failure="conservative"` unreadable ones count as the conservative
    answer. If no ballot counts, the decision is `abstained` if any ballot abstained and `failed` otherwise.
    """
    answers: list[Answer] = []
    weights: list[float] = []
    for ballot in ballots:
        counted = counted_answer(criterion, ballot, policy)
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
        agreement=agreement(criterion, ballots, outcome.answer),
        assumed="answered" not in [ballot.status for ballot in ballots],
    )


def counted_answer(criterion: BaseCriterion, ballot: Ballot, policy: AggregationPolicy) -> Answer | None:
    """Return the answer that a ballot contributes; None if the ballot does not count."""
    if ballot.status == "answered":
        return ballot.answer
    if ballot.status == "failed" and ballot.unreadable and policy.on_failure == "conservative":
        return criterion.conservative() if criterion.measures else None
    return None


def decide_by_judge(
    criterion: BaseCriterion, votes: Sequence[JudgeVote], policy: AggregationPolicy
) -> dict[str, Decision]:
    """Combine each judge's samples into a decision; return the decisions by judge id, in order of first vote.

    If candidates were shown in both orders, the two votes of a sample are combined first. If these votes
    prefer different candidates of a pair, the result is a tie.
    """
    if len(votes) == 1 and votes[0].status == "answered" and type(votes[0].answer) in _BARE:
        return {votes[0].judge_id: _alone(criterion, votes[0], policy)}
    return _by_judge(criterion, votes, policy)


_BARE: Final = (str, int, float, bool)
_MOST_ANSWERS: Final = 256


def _alone(criterion: BaseCriterion, vote: JudgeVote, policy: AggregationPolicy) -> Decision:
    """Return the decision from a judge's only vote, which is answered; cached per answer."""
    known = _WORKED_OUT.of(policy).of(criterion).alone
    cast = (type(vote.answer), vote.answer, vote.weight)
    made = known.get(cast)
    if made is None:
        if len(known) >= _MOST_ANSWERS:
            known.clear()
        made = known[cast] = _by_judge(criterion, [vote], policy)[vote.judge_id]
    return made


def _by_judge(
    criterion: BaseCriterion, votes: Sequence[JudgeVote], policy: AggregationPolicy
) -> dict[str, Decision]:
    by_judge: dict[str, dict[int, list[Ballot]]] = {}
    for vote in votes:
        samples = by_judge.setdefault(vote.judge_id, {})
        samples.setdefault(vote.sample, []).append(ballot_of(criterion, vote))
    strict = _answered_only(policy, votes)
    return {
        judge: _marked(
            _decide_samples(criterion, samples, policy),
            _decide_samples(criterion, samples, strict) if strict is not None else None,
        )
        for judge, samples in by_judge.items()
    }


def _decide_samples(
    criterion: BaseCriterion, samples: Mapping[int, Sequence[Ballot]], policy: AggregationPolicy
) -> Decision:
    single = [ballot for cast in samples.values() for ballot in cast]
    if len(single) == len(samples):
        return decide(criterion, single, policy)
    over_orders = [_decide_orders(criterion, cast, policy) for cast in samples.values()]
    made = decide(criterion, [as_ballot(one) for one in over_orders], policy)
    if made.answer is None or made.status != "answered":
        return made
    lone = over_orders[0] if len(over_orders) == 1 else made
    return replace(
        made,
        tie=made.tie or lone.tie,
        mean_value=lone.mean_value,
        agreement=agreement(criterion, single, made.answer),
    )


def _decide_orders(
    criterion: BaseCriterion, ballots: Sequence[Ballot], policy: AggregationPolicy
) -> Decision:
    """Combine the votes of one sample, for which the candidates were shown in different orders."""
    counted = [
        found for ballot in ballots if (found := counted_answer(criterion, ballot, policy)) is not None
    ]
    if counted and len(criterion.standing(counted[0])) == 2:
        first, *others = counted
        if not all(prefers_alike(first.code, other.code) for other in others):
            tied = criterion.placed((0.5, 0.5))
            assumed = not any(ballot.status == "answered" for ballot in ballots)
            return Decision(status="answered", answer=tied, tie=True, mean_value=0.5, assumed=assumed)
    return decide(criterion, ballots, policy)


def as_ballot(made: Decision, weight: float = 1.0) -> Ballot:
    """Convert a judge's decision to its ballot in the panel."""
    # An assumed answer represents unreadable replies and is counted as an unreadable reply.
    status = "failed" if made.assumed else made.status
    return Ballot(status=status, answer=made.answer, unreadable=made.assumed, weight=weight)


def decide_panel(
    criterion: BaseCriterion,
    votes: Sequence[JudgeVote],
    judges: Mapping[str, Decision],
    policy: AggregationPolicy,
) -> Decision:
    """Combine the judges' decisions into a panel decision, with the agreement among the individual votes."""
    lone = _lone(votes, judges)
    if lone is not None:
        return lone
    panel = _combined(criterion, votes, judges, policy)
    if panel.answer is None or panel.status != "answered":
        return panel
    lone_tie = len(judges) == 1 and next(iter(judges.values())).tie
    single = [ballot_of(criterion, vote) for vote in votes]
    panel = replace(panel, tie=panel.tie or lone_tie, agreement=agreement(criterion, single, panel.answer))
    strict = _answered_only(policy, votes)
    if strict is None:
        return panel
    alone = decide_by_judge(criterion, votes, strict)
    return _marked(panel, _combined(criterion, votes, alone, strict))


def _lone(votes: Sequence[JudgeVote], judges: Mapping[str, Decision]) -> Decision | None:
    """Return the decision of a single judge's only vote, which a panel would repeat; otherwise None."""
    if len(votes) != 1 or votes[0].status != "answered":
        return None
    made = judges[votes[0].judge_id]
    stands = made.answer is not None and made.answer.code == votes[0].answer
    return made if stands and made.status == "answered" else None


def _combined(
    criterion: BaseCriterion,
    votes: Sequence[JudgeVote],
    judges: Mapping[str, Decision],
    policy: AggregationPolicy,
) -> Decision:
    weights = {vote.judge_id: vote.weight for vote in votes}
    ballots = [as_ballot(made, weights[judge]) for judge, made in judges.items()]
    return decide(criterion, ballots, policy)


def _answered_only(policy: AggregationPolicy, votes: Sequence[JudgeVote]) -> AggregationPolicy | None:
    """Return the policy that ignores unreadable replies if any of them count; otherwise None."""
    if policy.on_failure != "conservative" or True not in [vote.unreadable for vote in votes]:
        return None
    return policy.model_copy(update={"on_failure": "exclude"})


def _marked(decision: Decision, answered_only: Decision | None) -> Decision:
    """Mark the decision as swayed if it would be different with only the answered votes."""
    if answered_only is None or decision.assumed or decision.answer is None:
        return decision
    alone = answered_only.answer.code if answered_only.answer else None
    return replace(decision, swayed=True) if alone != decision.answer.code else decision
