"""Early stopping, which determines whether the remaining votes could still change a verdict.

A verdict is settled if every possible outcome of the remaining votes, including abstentions and failures,
leads to it. This follows from the definition of the aggregator, and is implemented only for aggregators that
count votes: majority, weighted, unanimous, any, mode and weighted mode.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from autorubric.aggregation._ballots import Ballot
from autorubric.aggregation._decide import as_ballot, ballot_of, counted_answer, decide_by_judge
from autorubric.aggregation._methods import (
    Aggregator,
    any_met,
    majority,
    mode,
    unanimous,
    weighted,
    weighted_mode,
)
from autorubric.aggregation._policy import AggregationPolicy
from autorubric.criteria import BaseCriterion
from autorubric.types import JudgeVote
from autorubric.values import Answer

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
