"""Aggregators, which choose an answer from the votes that count, by measurement level."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.values import Answer, Level
from autorubric.scoring.votes import Decision, prefers_alike


@dataclass(frozen=True, slots=True, kw_only=True)
class Ballot:
    """One vote, or one judge's decision, as input to the aggregation.

    Attributes:
        status: `answered`, `abstained`, `failed` or `not_asked`.
        answer: The answer, if any; abstentions such as NA can also have one.
        unreadable: Whether the vote failed because its reply could not be read.
        weight: Weight in a weighted aggregation.
    """

    status: str
    answer: Answer | None = None
    unreadable: bool = False
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """The input of an aggregator: the answers that count, with their weights.

    Attributes:
        answers: The answers, in the order of the votes; never empty.
        weights: One weight per answer.
        criterion: The criterion that was answered.
    """

    answers: Sequence[Answer]
    weights: Sequence[float]
    criterion: BaseCriterion

    @property
    def conservative(self) -> Answer:
        """The answer that helps the score least."""
        return self.criterion.conservative()


@dataclass(frozen=True, slots=True, kw_only=True)
class BallotOutcome:
    """The result of an aggregator.

    Attributes:
        answer: The chosen answer.
        tie: Whether no answer led, so that the conservative answer was used.
        mean_value: Aggregate in [0, 1] before an option was selected, if any.
    """

    answer: Answer
    tie: bool = False
    mean_value: float | None = None


def decision_without_answers(ballots: Sequence[Ballot]) -> Decision:
    """Return the decision if no answer counts: abstained or failed if any ballot is, otherwise not asked."""
    abstained = [ballot.answer for ballot in ballots if ballot.status == "abstained"]
    if abstained:
        said_na = [answer for answer in abstained if answer is not None and answer.na]
        answer = said_na[0] if 2 * len(said_na) > len(abstained) else Answer(code=None, cannot_assess=True)
        return Decision(status="abstained", answer=answer)
    failed = any(ballot.status == "failed" for ballot in ballots)
    return Decision(status="failed" if failed else "not_asked")


def agreement(criterion: BaseCriterion, ballots: Sequence[Ballot], decided: Answer) -> float | None:
    """Return the share of answered ballots whose answer equals the decision; None if it is undefined.

    Preferences are equal if they prefer the same candidate, by any margin. For a criterion with parts, the
    result is the mean share over the parts. Agreement is undefined if no ballot was answered, and for texts,
    which are hardly ever equal.
    """
    answered = [ballot.answer for ballot in ballots if ballot.status == "answered" and ballot.answer]
    if not answered or criterion.level == "text":
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


Aggregator: TypeAlias = Callable[[Count], BallotOutcome]

_CLOSE = 1e-12
"""Relative difference below which two sums of weights count as equal."""


def majority(count: Count) -> BallotOutcome:
    """Return the answer of more than half of the votes cast, otherwise the conservative one as a tie."""
    return _leading_share(count, [1.0] * len(count.answers))


def weighted(count: Count) -> BallotOutcome:
    """Return the answer with more than half of the weight, otherwise the conservative one as a tie."""
    return _leading_share(count, count.weights)


def _leading_share(count: Count, weights: Sequence[float]) -> BallotOutcome:
    shares = _shares(count, weights)
    total = sum(weights)
    for position, share in shares.items():
        # Weights such as 0.1 + 0.2 against 0.3 are a tie despite rounding errors.
        if share * 2 - total > _CLOSE * total:
            return BallotOutcome(answer=count.answers[position])
    return BallotOutcome(answer=count.conservative, tie=True)


def _shares(count: Count, weights: Sequence[float]) -> dict[int, float]:
    """Return the weight behind each distinct answer, by the position of its first occurrence."""
    first: dict[str, int] = {}
    shares: dict[int, float] = {}
    for position, (answer, weight) in enumerate(zip(count.answers, weights, strict=True)):
        leader = first.setdefault(repr(answer.code), position)
        shares[leader] = shares.get(leader, 0.0) + weight
    return shares


def unanimous(count: Count) -> BallotOutcome:
    """Return MET if all answers are MET; for choices, the common option, otherwise the conservative one."""
    codes = {repr(answer.code) for answer in count.answers}
    if len(codes) == 1:
        return BallotOutcome(answer=count.answers[0])
    if count.criterion.level == "binary":
        return BallotOutcome(answer=min(count.answers, key=_value))
    return BallotOutcome(answer=count.conservative, tie=True)


def any_met(count: Count) -> BallotOutcome:
    """Return MET if at least one answer is MET."""
    return BallotOutcome(answer=max(count.answers, key=_value))


def _value(answer: Answer) -> float:
    return answer.value or 0.0


def mode(count: Count) -> BallotOutcome:
    """Return the most frequent answer; if several lead, return the most conservative of them as a tie."""
    return _most(count, [1.0] * len(count.answers))


def weighted_mode(count: Count) -> BallotOutcome:
    """Return the answer with the most weight; if several lead, return the most conservative as a tie."""
    return _most(count, count.weights)


def _most(count: Count, weights: Sequence[float]) -> BallotOutcome:
    shares = _shares(count, weights)
    top = max(shares.values())
    leaders = [position for position, share in shares.items() if top - share <= _CLOSE * top]
    if len(leaders) == 1:
        return BallotOutcome(answer=count.answers[leaders[0]])
    worst = _worst(count, [count.answers[position] for position in leaders])
    return BallotOutcome(answer=worst, tie=True)


def _worst(count: Count, answers: Sequence[Answer]) -> Answer:
    """Return the answer that helps the score least; among equals, the one declared first."""
    sign = 1.0 if count.criterion.weight >= 0 else -1.0
    return min(answers, key=lambda answer: (sign * _value(answer), answer.index or 0, repr(answer.code)))


def mean(count: Count) -> BallotOutcome:
    """Return the option nearest to the mean value; of equally near ones, the conservative one as a tie."""
    return _at(count, lambda values, _: statistics.fmean(values))


def weighted_mean(count: Count) -> BallotOutcome:
    """Return the option nearest to the weighted mean value."""
    return _at(
        count, lambda values, weights: statistics.fmean(values, weights=weights if any(weights) else None)
    )


def median(count: Count) -> BallotOutcome:
    """Return the option nearest to the median value."""
    return _at(count, lambda values, _: statistics.median(values))


def lowest(count: Count) -> BallotOutcome:
    """Return the answer with the lowest value."""
    return _at(count, lambda values, _: min(values))


def highest(count: Count) -> BallotOutcome:
    """Return the answer with the highest value."""
    return _at(count, lambda values, _: max(values))


def first(count: Count) -> BallotOutcome:
    """Return the first answer, because texts have neither an order nor a majority."""
    return BallotOutcome(answer=count.answers[0])


def _at(count: Count, centre: Callable[[list[float], list[float]], float]) -> BallotOutcome:
    """Return the answer at the center of the values; the most frequent one if no answer has a value."""
    placed = [
        (answer.value, weight)
        for answer, weight in zip(count.answers, count.weights, strict=True)
        if answer.value is not None
    ]
    if not placed:
        return mode(count)
    values, weights = [value for value, _ in placed], [weight for _, weight in placed]
    # The mean of equal values may differ from them in its last digit and would match no answer.
    value = values[0] if len(set(values)) == 1 else centre(values, weights)
    options = [answer for answer in count.criterion.answers() if answer.value is not None]
    return _nearest(count, options, value) if options else _between(count, value)


def _nearest(count: Count, options: Sequence[Answer], value: float) -> BallotOutcome:
    distances = [abs(_value(option) - value) for option in options]
    nearest = min(distances)
    close = [o for o, d in zip(options, distances, strict=True) if d - nearest <= _CLOSE]
    if len({option.value for option in close}) > 1:
        return BallotOutcome(answer=_worst(count, close), tie=True, mean_value=value)
    # Options with the same value cannot be distinguished by it: prefer the one that was chosen.
    chosen = [o for o in close if any(answer.code == o.code for answer in count.answers)]
    return BallotOutcome(answer=_worst(count, chosen or close), mean_value=value)


def _between(count: Count, value: float) -> BallotOutcome:
    same = [answer for answer in count.answers if answer.value == value]
    if same:
        return BallotOutcome(answer=replace(_worst(count, same), reason=""), mean_value=value)
    return BallotOutcome(answer=count.criterion.answer_at(value), mean_value=value)


def borda(count: Count) -> BallotOutcome:
    """Rank the candidates by mean value; for a pair, use the majority of preferences or their mean margin.

    Candidates with equal means share a rank. If they share the first rank, the outcome is a tie unless all
    answers agree on it.
    """
    return _mean_standing(count, [1.0] * len(count.answers))


def weighted_borda(count: Count) -> BallotOutcome:
    """Rank the candidates by their weighted mean values."""
    return _mean_standing(count, count.weights if any(count.weights) else [1.0] * len(count.answers))


def bradley_terry(count: Count) -> BallotOutcome:
    """Rank the candidates by their strengths in the Bradley–Terry model; for a pair, use `borda`.

    Each answer counts as one comparison of every two candidates. One comparison of each candidate with an
    average one is added, half won and half lost. Without it the likelihood often has no maximum, because with
    few votes not every candidate is connected to every other by a chain of wins.
    """
    standings = _standings(count)
    if not standings or len(standings[0]) == 2:
        return borda(count)
    # Imported late, because few panels rank more than two candidates.
    from autorubric.scoring.bradley_terry import Contest, fit_strengths

    players = range(len(standings[0]))
    contests = [
        Contest(
            left=one,
            right=other,
            won=sum(s[one] > s[other] for s in standings),
            lost=sum(s[one] < s[other] for s in standings),
            tied=sum(s[one] == s[other] for s in standings),
        )
        for one, other in itertools.combinations(players, 2)
    ]
    fit = fit_strengths(len(players), contests, prior=1.0)
    means = [statistics.fmean(column) for column in zip(*standings, strict=True)]
    return _placed(count, fit.strengths or means, means)


def _standings(count: Count) -> list[tuple[float, ...]]:
    """Return the value of each candidate in each answer; empty if an answer compares nothing."""
    found = [count.criterion.standing(answer) for answer in count.answers]
    return found if all(found) else []


def _mean_standing(count: Count, weights: Sequence[float]) -> BallotOutcome:
    standings = _standings(count)
    if not standings:
        return mode(count)
    means = [statistics.fmean(column, weights=weights) for column in zip(*standings, strict=True)]
    return _placed(count, means, means)


def _placed(count: Count, points: Sequence[float], means: Sequence[float]) -> BallotOutcome:
    answer = count.criterion.placed(points)
    reached = count.criterion.standing(answer)
    shared = sum(value == max(reached) for value in reached) > 1
    unlike = any(given.code != answer.code for given in count.answers)
    return BallotOutcome(answer=answer, tie=shared and unlike, mean_value=means[0])


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
_RANKING = {"borda": borda, "weighted_borda": weighted_borda, "bradley_terry": bradley_terry}

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


def part_by_part(aggregators: Sequence[Aggregator], *, undivided: Aggregator) -> Aggregator:
    """Return an aggregator that decides each part with its own aggregator and combines the results.

    Args:
        aggregators: One aggregator per part, in order.
        undivided: Aggregator to use if an answer has no parts, such as a checklist with only its share.
    """

    def combined(count: Count) -> BallotOutcome:
        rows = [count.criterion.part_answers(answer) for answer in count.answers]
        columns = [_complete(column) for column in zip(*rows, strict=True)]
        if not all(columns):
            return undivided(count)
        parts = count.criterion.part_fields.values()
        outcomes = [
            aggregate(Count(answers=column, weights=count.weights, criterion=part))
            for aggregate, column, part in zip(aggregators, columns, parts, strict=True)
        ]
        made = count.criterion.whole([outcome.answer for outcome in outcomes])
        # If a judge gave this very answer, its other fields are kept.
        given = [replace(answer, reason="") for answer in count.answers if answer.code == made.code]
        values = [answer.value for answer in count.answers if answer.value is not None]
        return BallotOutcome(
            answer=given[0] if given else made,
            tie=any(outcome.tie for outcome in outcomes),
            mean_value=statistics.fmean(values) if values else None,
        )

    return combined


def _complete(column: Sequence[Answer | None]) -> list[Answer]:
    """Return the answers to one part, or an empty list if one of them is missing."""
    given = [answer for answer in column if answer is not None]
    return given if len(given) == len(column) else []
