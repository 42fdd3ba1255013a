"""Early stopping: whether the votes still to come can change a verdict, and how many to request next."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

from autorubric.criteria.base import BaseCriterion
from autorubric.scoring.aggregation import (
    Aggregator,
    CountedVote,
    VoteTally,
    aggregator_of,
    any_met,
    majority,
    mode,
    unanimous,
    weighted,
    weighted_mode,
)
from autorubric.scoring.decisions import count_decision, counted_answer, counted_vote, decide_by_judge
from autorubric.scoring.policies import AggregationPolicy
from autorubric.scoring.votes import JudgeVote

_MARGIN = 1e-9
"""Smallest relative lead that counts; far above the aggregators' own tolerance for sums of weights."""


def _more_than_half(tally: VoteTally) -> bool:
    """Return whether one answer is certain to win, or only the conservative one can still win."""
    shares, coming = tally.shares(), sum(tally.open_weights)
    cast = sum(tally.weights)
    if any(2 * share - (cast + coming) > _MARGIN * (cast + coming) for share in shares.values()):
        return True
    conservative = repr(tally.conservative.code)
    best = max((w for p, w in shares.items() if repr(tally.answers[p].code) != conservative), default=0.0)
    # An exact tie is conservative; sums of weights are not exact, and a tenth of the aggregators' tolerance
    # is far above their error.
    return cast > 0 and 2 * best + coming - cast <= 1e-13 * cast


def _leads(tally: VoteTally) -> bool:
    """Return whether one answer leads by more than the weight still to come."""
    coming = sum(tally.open_weights)
    total = sum(tally.weights) + coming
    first, second = sorted([*tally.shares().values(), 0.0, 0.0], reverse=True)[:2]
    return first - second - coming > _MARGIN * total


def _not_all_alike(tally: VoteTally) -> bool:
    if tally.criterion.level == "binary":
        return any(answer.value == 0.0 for answer in tally.answers)
    return len(tally.shares()) > 1


_Test: TypeAlias = Callable[[VoteTally], bool]
_TESTS: Mapping[Aggregator, _Test] = MappingProxyType(
    {
        majority: lambda tally: _more_than_half(tally.unweighted),
        weighted: _more_than_half,
        mode: lambda tally: _leads(tally.unweighted),
        weighted_mode: _leads,
        any_met: lambda tally: any(answer.value == 1.0 for answer in tally.answers),
        unanimous: _not_all_alike,
    }
)
"""By aggregator, whether the votes still to come cannot change its decision."""


def can_stop(
    criterion: BaseCriterion,
    votes: Sequence[JudgeVote],
    unasked: Sequence[JudgeVote],
    policy: AggregationPolicy,
) -> bool:
    """Return whether the remaining votes can no longer change the verdict on a criterion."""
    if not unasked:
        return True
    test = _TESTS.get(aggregator_of(policy, criterion))
    if test is None or not any(vote.status == "answered" for vote in votes):
        return False
    if any(vote.unreadable for vote in votes):
        # It is known only after all votes whether such a reply swayed the verdict.
        return False
    panel = _tally_panel(criterion, votes, unasked, policy, test)
    return bool(panel.answers) and (not panel.open_weights or test(panel))


def _tally_panel(
    criterion: BaseCriterion,
    votes: Sequence[JudgeVote],
    unasked: Sequence[JudgeVote],
    policy: AggregationPolicy,
    test: _Test,
) -> VoteTally:
    """Tally the decisions of the judges that are final; the weights of the others are open."""
    weights = {vote.judge_id: vote.weight for vote in (*votes, *unasked)}
    counted: list[CountedVote] = []
    coming = {vote.judge_id: weights[vote.judge_id] for vote in unasked}
    for judge, decision in decide_by_judge(criterion, votes, policy).items():
        if judge in coming:
            own = [v for v in votes if v.judge_id == judge and v.status == "answered"]
            left = [vote.weight for vote in unasked if vote.judge_id == judge]
            samples = [counted_vote(criterion, vote) for vote in own]
            if not own or not test(_tally(criterion, samples, left, policy)):
                continue
            del coming[judge]
        counted.append(count_decision(decision, weights[judge]))
    return _tally(criterion, counted, list(coming.values()), policy)


def _tally(
    criterion: BaseCriterion,
    votes: Sequence[CountedVote],
    open_weights: Sequence[float],
    policy: AggregationPolicy,
) -> VoteTally:
    counted = [(a, v.weight) for v in votes if (a := counted_answer(criterion, v, policy)) is not None]
    return VoteTally(
        criterion=criterion,
        answers=[answer for answer, _ in counted],
        weights=[weight for _, weight in counted],
        open_weights=open_weights,
    )


def weights_matter(criterion: BaseCriterion, policy: AggregationPolicy) -> bool:
    """Return whether votes with a greater weight decide sooner, so that they are requested first."""
    return aggregator_of(policy, criterion) in (weighted, weighted_mode)


def votes_needed(
    criterion: BaseCriterion,
    votes: Sequence[JudgeVote],
    unasked: Sequence[JudgeVote],
    policy: AggregationPolicy,
) -> int:
    """Return the smallest number of remaining votes, taken in order, that could decide the verdict.

    Fewer could not decide it. (For `unanimous` on options, it can be too high for judges with several
    samples.)
    """
    if aggregator_of(policy, criterion) not in _TESTS:
        return len(unasked)
    codes = [answer.code for answer in criterion.answers() if not answer.abstains]
    # A verdict is decided soonest if all votes agree or, for unanimity on choices, if they alternate.
    runs = [[code] for code in codes] + [codes]
    for count in range(len(unasked)):
        for run in runs:
            assumed = [
                replace(vote, status="answered", answer=code)
                for vote, code in zip(unasked[:count], itertools.cycle(run), strict=False)
            ]
            if can_stop(criterion, [*votes, *assumed], unasked[count:], policy):
                return count
    return len(unasked)
