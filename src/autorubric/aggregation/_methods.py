"""Aggregators, which choose an answer from the answers that count."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

from autorubric.aggregation._ballots import Count, Outcome
from autorubric.values import Answer, Level

Aggregator: TypeAlias = Callable[[Count], Outcome]

_CLOSE = 1e-12
"""Relative difference below which two sums of weights count as equal."""


def majority(count: Count) -> Outcome:
    """Return the answer of more than half of the votes cast, otherwise the conservative one as a tie."""
    return _leading_share(count, [1.0] * len(count.answers))


def weighted(count: Count) -> Outcome:
    """Return the answer with more than half of the weight, otherwise the conservative one as a tie."""
    return _leading_share(count, count.weights)


def _leading_share(count: Count, weights: Sequence[float]) -> Outcome:
    shares = _shares(count, weights)
    total = sum(weights)
    for position, share in shares.items():
        # Weights such as 0.1 + 0.2 against 0.3 are a tie despite rounding errors.
        if share * 2 - total > _CLOSE * total:
            return Outcome(answer=count.answers[position])
    return Outcome(answer=count.conservative, tie=True)


def _shares(count: Count, weights: Sequence[float]) -> dict[int, float]:
    """Return the weight behind each distinct answer, by the position of its first occurrence."""
    first: dict[str, int] = {}
    shares: dict[int, float] = {}
    for position, (answer, weight) in enumerate(zip(count.answers, weights, strict=True)):
        leader = first.setdefault(repr(answer.code), position)
        shares[leader] = shares.get(leader, 0.0) + weight
    return shares


def unanimous(count: Count) -> Outcome:
    """Return MET if all answers are MET; for choices, the common option, otherwise the conservative one."""
    codes = {repr(answer.code) for answer in count.answers}
    if len(codes) == 1:
        return Outcome(answer=count.answers[0])
    if count.criterion.level == "binary":
        return Outcome(answer=min(count.answers, key=_value))
    return Outcome(answer=count.conservative, tie=True)


def any_met(count: Count) -> Outcome:
    """Return MET if at least one answer is MET."""
    return Outcome(answer=max(count.answers, key=_value))


def _value(answer: Answer) -> float:
    return answer.value or 0.0


def mode(count: Count) -> Outcome:
    """Return the most frequent answer; if several lead, return the most conservative of them as a tie."""
    return _most(count, [1.0] * len(count.answers))


def weighted_mode(count: Count) -> Outcome:
    """Return the answer with the most weight; if several lead, return the most conservative as a tie."""
    return _most(count, count.weights)


def _most(count: Count, weights: Sequence[float]) -> Outcome:
    shares = _shares(count, weights)
    top = max(shares.values())
    leaders = [position for position, share in shares.items() if top - share <= _CLOSE * top]
    if len(leaders) == 1:
        return Outcome(answer=count.answers[leaders[0]])
    worst = _worst(count, [count.answers[position] for position in leaders])
    return Outcome(answer=worst, tie=True)


def _worst(count: Count, answers: Sequence[Answer]) -> Answer:
    """Return the answer that helps the score least; among equals, the one declared first."""
    sign = 1.0 if count.criterion.weight >= 0 else -1.0
    return min(answers, key=lambda answer: (sign * _value(answer), answer.index or 0, repr(answer.code)))


def mean(count: Count) -> Outcome:
    """Return the option nearest to the mean value; of equally near ones, the conservative one as a tie."""
    return _at(count, lambda values, _: statistics.fmean(values))


def weighted_mean(count: Count) -> Outcome:
    """Return the option nearest to the weighted mean value."""
    return _at(
        count, lambda values, weights: statistics.fmean(values, weights=weights if any(weights) else None)
    )


def median(count: Count) -> Outcome:
    """Return the option nearest to the median value."""
    return _at(count, lambda values, _: statistics.median(values))


def lowest(count: Count) -> Outcome:
    """Return the answer with the lowest value."""
    return _at(count, lambda values, _: min(values))


def highest(count: Count) -> Outcome:
    """Return the answer with the highest value."""
    return _at(count, lambda values, _: max(values))


def first(count: Count) -> Outcome:
    """Return the first answer, because texts have neither an order nor a majority."""
    return Outcome(answer=count.answers[0])


def _at(count: Count, centre: Callable[[list[float], list[float]], float]) -> Outcome:
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


def _nearest(count: Count, options: Sequence[Answer], value: float) -> Outcome:
    distances = [abs(_value(option) - value) for option in options]
    nearest = min(distances)
    close = [o for o, d in zip(options, distances, strict=True) if d - nearest <= _CLOSE]
    if len({option.value for option in close}) > 1:
        return Outcome(answer=_worst(count, close), tie=True, mean_value=value)
    # Options with the same value cannot be distinguished by it: prefer the one that was chosen.
    chosen = [o for o in close if any(answer.code == o.code for answer in count.answers)]
    return Outcome(answer=_worst(count, chosen or close), mean_value=value)


def _between(count: Count, value: float) -> Outcome:
    same = [answer for answer in count.answers if answer.value == value]
    if same:
        return Outcome(answer=replace(_worst(count, same), reason=""), mean_value=value)
    return Outcome(answer=count.criterion.answer_at(value), mean_value=value)


def borda(count: Count) -> Outcome:
    """Rank the candidates by mean value; for a pair, use the majority of preferences or their mean margin.

    Candidates with equal means share a rank. If they share the first rank, the outcome is a tie unless all
    answers agree on it.
    """
    return _mean_standing(count, [1.0] * len(count.answers))


def weighted_borda(count: Count) -> Outcome:
    """Rank the candidates by their weighted mean values."""
    return _mean_standing(count, count.weights if any(count.weights) else [1.0] * len(count.answers))


def bradley_terry(count: Count) -> Outcome:
    """Rank the candidates by their strengths in the Bradley–Terry model; for a pair, use `borda`.

    Each answer counts as one comparison of every two candidates. One comparison of each candidate with an
    average one is added, half won and half lost. Without it the likelihood often has no maximum, because with
    few votes not every candidate is connected to every other by a chain of wins.
    """
    standings = _standings(count)
    if not standings or len(standings[0]) == 2:
        return borda(count)
    # Imported late, because few panels rank more than two candidates.
    from autorubric.aggregation._bradley_terry import Contest, fit_strengths

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


def _mean_standing(count: Count, weights: Sequence[float]) -> Outcome:
    standings = _standings(count)
    if not standings:
        return mode(count)
    means = [statistics.fmean(column, weights=weights) for column in zip(*standings, strict=True)]
    return _placed(count, means, means)


def _placed(count: Count, points: Sequence[float], means: Sequence[float]) -> Outcome:
    answer = count.criterion.placed(points)
    reached = count.criterion.standing(answer)
    shared = sum(value == max(reached) for value in reached) > 1
    unlike = any(given.code != answer.code for given in count.answers)
    return Outcome(answer=answer, tie=shared and unlike, mean_value=means[0])


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
