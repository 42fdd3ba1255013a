"""Aggregators, which choose an answer from the votes that count, by measurement level."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.values import Answer, Level
from autorubric.errors import ArgumentError
from autorubric.scoring.bradley_terry import Contest, fit_strengths
from autorubric.scoring.policies import AggregationPolicy
from autorubric.scoring.votes import Decision, Probabilities, prefers_alike
from autorubric.support.extensions import AGGREGATORS_GROUP, load_extension
from autorubric.support.objects import IdentityCache


class CountedVote(NamedTuple):
    """A vote, or the decision of one judge, as it counts in an aggregation."""

    status: str
    answer: Answer | None = None
    unreadable: bool = False
    weight: float = 1.0
    probabilities: Probabilities | None = None


class VoteTally(NamedTuple):
    """The answers that count on a criterion."""

    criterion: BaseCriterion
    answers: Sequence[Answer]  # the answers, in the order of the votes; never empty for an aggregator
    weights: Sequence[float]  # one weight per answer
    open_weights: Sequence[float] = ()  # weights of the votes that are still to come, for early stopping

    @property
    def unweighted(self) -> VoteTally:
        """The tally with a weight of 1 for each vote."""
        ones, open_ones = [1.0] * len(self.answers), [1.0] * len(self.open_weights)
        return VoteTally(self.criterion, self.answers, ones, open_ones)

    @property
    def conservative(self) -> Answer:
        """The answer that helps the score least."""
        return self.criterion.conservative()

    def shares(self) -> dict[int, float]:
        """Return the weight behind each distinct answer, by the position of its first occurrence."""
        first: dict[str, int] = {}
        shares: dict[int, float] = {}
        for position, (answer, weight) in enumerate(zip(self.answers, self.weights, strict=True)):
            leader = first.setdefault(repr(answer.code), position)
            shares[leader] = shares.get(leader, 0.0) + weight
        return shares


def decision_without_answers(votes: Sequence[CountedVote]) -> Decision:
    """Return the decision if no answer counts: abstained or failed if any vote is, otherwise not asked."""
    abstained = [vote.answer for vote in votes if vote.status == "abstained"]
    if abstained:
        said_na = [answer for answer in abstained if answer is not None and answer.na]
        answer = said_na[0] if 2 * len(said_na) > len(abstained) else Answer(code=None, cannot_assess=True)
        return Decision(status="abstained", answer=answer)
    failed = any(vote.status == "failed" for vote in votes)
    return Decision(status="failed" if failed else "not_asked")


def agreement(criterion: BaseCriterion, votes: Sequence[CountedVote], decided: Answer | None) -> float | None:
    """Return the share of answered votes whose answer equals the decision; None if it is undefined.

    Preferences are equal if they prefer the same candidate, by any margin. For a criterion with parts, the
    result is the mean share over the parts. Agreement is undefined if no vote was answered, and for texts,
    which are hardly ever equal.
    """
    answered = [vote.answer for vote in votes if vote.status == "answered" and vote.answer]
    if not answered or decided is None or criterion.level == "text":
        return None
    if criterion.level == "ranking":
        return statistics.fmean(prefers_alike(answer.code, decided.code) for answer in answered)
    whole = criterion.part_answers(decided) if criterion.part_fields else ()
    if not any(whole):
        equal = [answer.code == decided.code for answer in answered]
        return equal.count(True) / len(equal)
    same, total = 0, 0
    for answer in answered:
        for own, part in zip(criterion.part_answers(answer), whole, strict=True):
            same += own is not None and part is not None and own.code == part.code
            total += 1
    return same / total


Aggregator: TypeAlias = Callable[[VoteTally], Decision]

_CLOSE = 1e-12
"""Relative difference below which two sums of weights count as equal."""


def majority(tally: VoteTally) -> Decision:
    """Return the answer of more than half of the votes cast, otherwise the conservative one as a tie."""
    return _leading_share(tally.unweighted)


def weighted(tally: VoteTally) -> Decision:
    """Return the answer with more than half of the weight, otherwise the conservative one as a tie."""
    return _leading_share(tally)


def _leading_share(tally: VoteTally) -> Decision:
    shares = tally.shares()
    total = sum(tally.weights)
    for position, share in shares.items():
        # Weights such as 0.1 + 0.2 against 0.3 are a tie despite rounding errors.
        if share * 2 - total > _CLOSE * total:
            return _make_decision(tally.answers[position])
    return _make_decision(tally.conservative, tie=True)


def unanimous(tally: VoteTally) -> Decision:
    """Return MET if all answers are MET; for choices, the common option, otherwise the conservative one."""
    codes = {repr(answer.code) for answer in tally.answers}
    if len(codes) == 1:
        return _make_decision(tally.answers[0])
    if tally.criterion.level == "binary":
        return _make_decision(min(tally.answers, key=_value))
    return _make_decision(tally.conservative, tie=True)


def any_met(tally: VoteTally) -> Decision:
    return _make_decision(max(tally.answers, key=_value))


def _make_decision(answer: Answer, *, tie: bool = False, mean_value: float | None = None) -> Decision:
    return Decision(status="answered", answer=answer, tie=tie, mean_value=mean_value)


def _value(answer: Answer) -> float:
    return answer.value or 0.0


def mode(tally: VoteTally) -> Decision:
    """Return the most frequent answer; if several lead, return the most conservative of them as a tie."""
    return _most_weighted(tally.unweighted)


def weighted_mode(tally: VoteTally) -> Decision:
    """Return the answer with the most weight; if several lead, return the most conservative as a tie."""
    return _most_weighted(tally)


def _most_weighted(tally: VoteTally) -> Decision:
    shares = tally.shares()
    top = max(shares.values())
    leaders = [position for position, share in shares.items() if top - share <= _CLOSE * top]
    if len(leaders) == 1:
        return _make_decision(tally.answers[leaders[0]])
    worst = _worst(tally, [tally.answers[position] for position in leaders])
    return _make_decision(worst, tie=True)


def _worst(tally: VoteTally, answers: Sequence[Answer]) -> Answer:
    """Return the answer that helps the score least; among equals, the one declared first."""
    sign = 1.0 if tally.criterion.weight >= 0 else -1.0
    return min(answers, key=lambda answer: (sign * _value(answer), answer.index or 0, repr(answer.code)))


def mean(tally: VoteTally) -> Decision:
    """Return the option nearest to the mean value; of equally near ones, the conservative one as a tie."""
    return _answer_at_centre(tally, lambda values, _: statistics.fmean(values))


def weighted_mean(tally: VoteTally) -> Decision:
    """Return the option nearest to the weighted mean value."""
    return _answer_at_centre(
        tally, lambda values, weights: statistics.fmean(values, weights=weights if any(weights) else None)
    )


def median(tally: VoteTally) -> Decision:
    """Return the option nearest to the median value."""
    return _answer_at_centre(tally, lambda values, _: statistics.median(values))


def lowest(tally: VoteTally) -> Decision:
    return _answer_at_centre(tally, lambda values, _: min(values))


def highest(tally: VoteTally) -> Decision:
    return _answer_at_centre(tally, lambda values, _: max(values))


def first(tally: VoteTally) -> Decision:
    """Return the first answer, because texts have neither an order nor a majority."""
    return _make_decision(tally.answers[0])


def _answer_at_centre(tally: VoteTally, centre: Callable[[list[float], list[float]], float]) -> Decision:
    """Return the answer at the center of the values; the most frequent one if no answer has a value."""
    placed = [
        (answer.value, weight)
        for answer, weight in zip(tally.answers, tally.weights, strict=True)
        if answer.value is not None
    ]
    if not placed:
        return mode(tally)
    values, weights = [value for value, _ in placed], [weight for _, weight in placed]
    # The mean of equal values may differ from them in its last digit and would match no answer.
    value = values[0] if len(set(values)) == 1 else centre(values, weights)
    options = [answer for answer in tally.criterion.answers() if answer.value is not None]
    return _nearest_option(tally, options, value) if options else _answer_between(tally, value)


def _nearest_option(tally: VoteTally, options: Sequence[Answer], value: float) -> Decision:
    distances = [abs(_value(option) - value) for option in options]
    nearest = min(distances)
    close = [o for o, d in zip(options, distances, strict=True) if d - nearest <= _CLOSE]
    if len({option.value for option in close}) > 1:
        return _make_decision(_worst(tally, close), tie=True, mean_value=value)
    # Options with the same value cannot be distinguished by it: prefer the one that was chosen.
    chosen = [o for o in close if any(answer.code == o.code for answer in tally.answers)]
    return _make_decision(_worst(tally, chosen or close), mean_value=value)


def _answer_between(tally: VoteTally, value: float) -> Decision:
    same = [answer for answer in tally.answers if answer.value == value]
    if same:
        return _make_decision(replace(_worst(tally, same), reason=""), mean_value=value)
    return _make_decision(tally.criterion.answer_at(value), mean_value=value)


def borda(tally: VoteTally) -> Decision:
    """Rank the candidates by mean value; for a pair, use the majority of preferences or their mean margin.

    Candidates with equal means share a rank. If they share the first rank, the decision is a tie unless all
    answers agree on it.
    """
    return _rank_by_means(tally, [1.0] * len(tally.answers))


def weighted_borda(tally: VoteTally) -> Decision:
    return _rank_by_means(tally, tally.weights if any(tally.weights) else [1.0] * len(tally.answers))


def rank_by_strength(tally: VoteTally) -> Decision:
    """Rank the candidates by their strengths in the Bradley–Terry model; for a pair, use `borda`.

    Each answer counts as one comparison of every two candidates. One comparison of each candidate with an
    average one is added, half won and half lost. Without it the likelihood often has no maximum, because with
    few votes not every candidate is connected to every other by a chain of wins.
    """
    rows = _candidate_rows(tally)
    if not rows or len(rows[0]) == 2:
        return borda(tally)
    players = range(len(rows[0]))
    contests = [
        Contest(
            left=one,
            right=other,
            won=sum(s[one] > s[other] for s in rows),
            lost=sum(s[one] < s[other] for s in rows),
            tied=sum(s[one] == s[other] for s in rows),
        )
        for one, other in itertools.combinations(players, 2)
    ]
    fit = fit_strengths(len(players), contests, prior=1.0)
    means = [statistics.fmean(column) for column in zip(*rows, strict=True)]
    return _rank_candidates(tally, fit.strengths or means, means)


def _candidate_rows(tally: VoteTally) -> list[tuple[float, ...]]:
    """Return the value of each candidate in each answer; empty if an answer compares nothing."""
    found = [tally.criterion.candidate_values(answer) for answer in tally.answers]
    return found if all(found) else []


def _rank_by_means(tally: VoteTally, weights: Sequence[float]) -> Decision:
    rows = _candidate_rows(tally)
    if not rows:
        return mode(tally)
    means = [statistics.fmean(column, weights=weights) for column in zip(*rows, strict=True)]
    return _rank_candidates(tally, means, means)


def _rank_candidates(tally: VoteTally, points: Sequence[float], means: Sequence[float]) -> Decision:
    answer = tally.criterion.ranking_answer(points)
    reached = tally.criterion.candidate_values(answer)
    shared = sum(value == max(reached) for value in reached) > 1
    unlike = any(given.code != answer.code for given in tally.answers)
    return _make_decision(answer, tie=shared and unlike, mean_value=means[0])


_BINARY = {"majority": majority, "weighted": weighted, "unanimous": unanimous, "any": any_met}
_ORDERED = {
    "mean": mean,
    "median": median,
    "weighted_mean": weighted_mean,
    "mode": mode,
    "min": lowest,
    "max": highest,
}
_NOMINAL = {"mode": mode, "weighted_mode": weighted_mode, "unanimous": unanimous}
_RANKING = {"borda": borda, "weighted_borda": weighted_borda, "bradley_terry": rank_by_strength}

AGGREGATORS: Mapping[Level, Mapping[str, Aggregator]] = MappingProxyType(
    {
        "binary": _BINARY,
        "ordinal": _ORDERED,
        "interval": _ORDERED,
        "nominal": _NOMINAL,
        "ranking": _RANKING,
        "text": {"first": first},
    }
)
"""Aggregators by measurement level and name."""


_UNWEIGHTED = frozenset({"majority", "mean", "mode", "borda"})
_WEIGHTED = frozenset({"weighted", "weighted_mean", "weighted_mode", "weighted_borda"})
"""Methods that are the mean and the weighted mean of the judges' probabilities if votes are soft."""


def uses_weights(policy: AggregationPolicy, criterion: BaseCriterion) -> bool:
    """Return whether the judges' weights count in the mean of their probabilities."""
    return (criterion.aggregation or policy.method(criterion.level)) in _WEIGHTED


def part_by_part(aggregators: Sequence[Aggregator], *, undivided: Aggregator) -> Aggregator:
    """Return an aggregator that decides each part with its own aggregator and combines the results."""

    def combined(tally: VoteTally) -> Decision:
        rows = [tally.criterion.part_answers(answer) for answer in tally.answers]
        columns = [[one for one in column if one is not None] for column in zip(*rows, strict=True)]
        if any(len(column) < len(rows) for column in columns):
            return undivided(tally)
        parts = tally.criterion.part_fields.values()
        decisions = [
            aggregate(VoteTally(answers=column, weights=tally.weights, criterion=part))
            for aggregate, column, part in zip(aggregators, columns, parts, strict=True)
        ]
        made = tally.criterion.whole([decision.answer for decision in decisions if decision.answer])
        # If a judge gave this very answer, its other fields are kept.
        given = [replace(answer, reason="") for answer in tally.answers if answer.code == made.code]
        values = [answer.value for answer in tally.answers if answer.value is not None]
        return _make_decision(
            given[0] if given else made,
            tie=any(decision.tie for decision in decisions),
            mean_value=statistics.fmean(values) if values else None,
        )

    return combined


_CHOSEN: Final = IdentityCache[AggregationPolicy, IdentityCache[BaseCriterion, Aggregator]](
    lambda policy: IdentityCache(lambda criterion: _choose(policy, criterion))
)


def aggregator_of(policy: AggregationPolicy, criterion: BaseCriterion) -> Aggregator:
    """Return the aggregator for the method set in the criterion or, by default, for its level.

    If a criterion has parts, such as checklist items, each is aggregated separately, based on its level.

    Raises:
        ArgumentError: If the method set in the criterion is not available for its level or the level of one
            of its parts.
    """
    return _CHOSEN.of(policy).of(criterion)


def _choose(policy: AggregationPolicy, criterion: BaseCriterion) -> Aggregator:
    if not criterion.part_fields:
        return _find(policy, criterion, f"{criterion.name!r}: aggregation")
    called = f"{criterion.name!r}: part aggregation"
    parts = [_find(policy, part, called) for part in criterion.part_fields.values()]
    return part_by_part(parts, undivided=mean)


def _find(policy: AggregationPolicy, criterion: BaseCriterion, called: str) -> Aggregator:
    level = criterion.level
    name = criterion.aggregation or policy.method(level)
    if policy.votes == "soft" and level != "text" and name not in _WEIGHTED | _UNWEIGHTED:
        allowed = sorted(AGGREGATORS.get(level, {}).keys() & (_WEIGHTED | _UNWEIGHTED))
        raise ArgumentError(
            f"criterion {called} {name!r} does not combine probabilities; with votes='soft', use "
            f"{' or '.join(allowed)}, which are the mean and the weighted mean of the judges' probabilities"
        )
    known = AGGREGATORS.get(level, {})
    found = known.get(name) or load_extension(AGGREGATORS_GROUP, f"{level}.{name}")
    if found is None:
        raise ArgumentError(
            f"criterion {called} {name!r} is not available for the level {level!r}; "
            f"allowed: {', '.join(known) or 'none'}"
        )
    aggregator: Aggregator = found
    return aggregator
