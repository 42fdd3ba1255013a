"""Decisions from votes, and early stopping if the remaining votes cannot change a verdict."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, TypeAlias

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.values import Answer
from autorubric.scoring.aggregation import (
    Aggregator,
    Ballot,
    Count,
    agreement,
    any_met,
    decision_without_answers,
    majority,
    mode,
    unanimous,
    weighted,
    weighted_mode,
)
from autorubric.scoring.policies import AggregationPolicy
from autorubric.scoring.votes import Decision, JudgeVote, prefers_alike
from autorubric.support.objects import IdentityCache, Json

_Cast: TypeAlias = tuple[type, Json, float]
"""Type, content and weight of an answer; True, 1 and 1.0 compare equal but are different answers."""


@dataclass(slots=True)
class _WorkedOut:
    """Cached results for a criterion under a policy.

    Attributes:
        alone: Decisions from answered votes that are the only vote of their judge.
    """

    alone: dict[_Cast, Decision] = field(default_factory=dict)


_WORKED_OUT: Final = IdentityCache[AggregationPolicy, IdentityCache[BaseCriterion, _WorkedOut]](
    lambda policy: IdentityCache(lambda criterion: _WorkedOut())
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


_MARGIN = 1e-9
"""Smallest relative lead that counts; far above the aggregators' own tolerance for sums of weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Standing:
    """The state of a partial count: the answers so far, their weights, and the weights still to come."""

    criterion: BaseCriterion
    answers: Sequence[Answer]
    weights: Sequence[float]
    open_weights: Sequence[float]

    @property
    def unweighted(self) -> _Standing:
        ones = [1.0] * len(self.answers)
        return replace(self, weights=ones, open_weights=[1.0] * len(self.open_weights))

    def shares(self) -> dict[str, float]:
        shares: dict[str, float] = {}
        for answer, weight in zip(self.answers, self.weights, strict=True):
            shares[repr(answer.code)] = shares.get(repr(answer.code), 0.0) + weight
        return shares


def _more_than_half(standing: _Standing) -> bool:
    """Return whether one answer is certain to win, or only the conservative one can still win."""
    shares, coming = standing.shares(), sum(standing.open_weights)
    cast = sum(standing.weights)
    if any(2 * share - (cast + coming) > _MARGIN * (cast + coming) for share in shares.values()):
        return True
    conservative = repr(standing.criterion.conservative().code)
    best = max((share for code, share in shares.items() if code != conservative), default=0.0)
    # An exact tie is conservative; sums of weights are not exact, and a tenth of the aggregators' tolerance
    # is far above their error.
    return cast > 0 and 2 * best + coming - cast <= 1e-13 * cast


def _leads(standing: _Standing) -> bool:
    """Return whether one answer leads by more than the weight still to come."""
    shares, coming = standing.shares(), sum(standing.open_weights)
    total = sum(standing.weights) + coming
    first, second = sorted([*shares.values(), 0.0, 0.0], reverse=True)[:2]
    return first - second - coming > _MARGIN * total


def _one_met(standing: _Standing) -> bool:
    return any(answer.value == 1.0 for answer in standing.answers)


def _not_all_alike(standing: _Standing) -> bool:
    if standing.criterion.level == "binary":
        return any(answer.value == 0.0 for answer in standing.answers)
    return len(standing.shares()) > 1


_Test: TypeAlias = Callable[[_Standing], bool]
_TESTS: Mapping[Aggregator, _Test] = MappingProxyType(
    {
        majority: lambda standing: _more_than_half(standing.unweighted),
        weighted: _more_than_half,
        mode: lambda standing: _leads(standing.unweighted),
        weighted_mode: _leads,
        any_met: _one_met,
        unanimous: _not_all_alike,
    }
)


def is_settled(
    criterion: BaseCriterion,
    votes: Sequence[JudgeVote],
    unasked: Sequence[JudgeVote],
    policy: AggregationPolicy,
) -> bool:
    """Return whether the remaining votes can no longer change the verdict on a criterion.

    Args:
        criterion: The criterion being judged.
        votes: The votes so far.
        unasked: The remaining votes of the panel; only their judge, sample and weight matter.
        policy: Policy for combining the votes.
    """
    if not unasked:
        return True
    test = _TESTS.get(policy.aggregator(criterion))
    if test is None or not any(vote.status == "answered" for vote in votes):
        return False
    if any(vote.unreadable for vote in votes):
        # It is known only after all votes whether such a reply swayed the verdict.
        return False
    panel = _panel(criterion, votes, unasked, policy, test)
    return bool(panel.answers) and (not panel.open_weights or test(panel))


def _panel(
    criterion: BaseCriterion,
    votes: Sequence[JudgeVote],
    unasked: Sequence[JudgeVote],
    policy: AggregationPolicy,
    test: _Test,
) -> _Standing:
    weights = {vote.judge_id: vote.weight for vote in (*votes, *unasked)}
    ballots: list[Ballot] = []
    coming = {vote.judge_id: weights[vote.judge_id] for vote in unasked}
    for judge, made in decide_by_judge(criterion, votes, policy).items():
        if judge in coming:
            own = [vote for vote in votes if vote.judge_id == judge and vote.status == "answered"]
            left = [vote.weight for vote in unasked if vote.judge_id == judge]
            if not own or not test(
                _standing(criterion, [ballot_of(criterion, v) for v in own], left, policy)
            ):
                continue
            del coming[judge]
        ballots.append(as_ballot(made, weights[judge]))
    return _standing(criterion, ballots, list(coming.values()), policy)


def _standing(
    criterion: BaseCriterion,
    ballots: Sequence[Ballot],
    open_weights: Sequence[float],
    policy: AggregationPolicy,
) -> _Standing:
    counted = [
        (found, b.weight) for b in ballots if (found := counted_answer(criterion, b, policy)) is not None
    ]
    return _Standing(
        criterion=criterion,
        answers=[answer for answer, _ in counted],
        weights=[weight for _, weight in counted],
        open_weights=open_weights,
    )


def counts_weights(criterion: BaseCriterion, policy: AggregationPolicy) -> bool:
    """Return whether votes with a greater weight settle a verdict sooner."""
    return policy.aggregator(criterion) in (weighted, weighted_mode)


def votes_wanted(
    criterion: BaseCriterion,
    votes: Sequence[JudgeVote],
    unasked: Sequence[JudgeVote],
    policy: AggregationPolicy,
) -> int:
    """Return the smallest number of remaining votes, taken in order, that could settle the verdict.

    It is safe to request that many votes at once, because fewer could not settle it. (For `unanimous` on
    criteria with options, the number can be too high if judges have several samples.)
    """
    if policy.aggregator(criterion) not in _TESTS:
        return len(unasked)
    codes = [answer.code for answer in criterion.answers() if not answer.abstains]
    # A verdict is settled soonest if all votes agree or, for unanimity on choices, if they alternate.
    runs = [[code] for code in codes] + [codes]
    for count in range(len(unasked)):
        for run in runs:
            said = [
                replace(vote, status="answered", answer=code)
                for vote, code in zip(unasked[:count], itertools.cycle(run), strict=False)
            ]
            if is_settled(criterion, [*votes, *said], unasked[count:], policy):
                return count
    return len(unasked)
