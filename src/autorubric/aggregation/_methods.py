"""Aggregators: answers that count → the answer decided on. One function and one row each."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

from autorubric.aggregation._ballots import Count, Outcome
from autorubric.values import Answer, Level

Aggregator: TypeAlias = Callable[[Count], Outcome]


def majority(count: Count) -> Outcome:
    """The answer of more than half of the votes cast; else the conservative one, as a tie."""
    return _leading_share(count, [1.0] * len(count.answers))


def weighted(count: Count) -> Outcome:
    """The answer that holds more than half of the weight; else the conservative one, as a tie."""
    return _leading_share(count, count.weights)


def _leading_share(count: Count, weights: Sequence[float]) -> Outcome:
    shares = _shares(count, weights)
    total = sum(weights)
    for position, share in shares.items():
        # Weights such as 0.1 + 0.2 against 0.3 are a tie, whatever their binary fractions say.
        if share * 2 - total > 1e-12 * max(total, 1.0):
            return Outcome(answer=count.answers[position])
    return Outcome(answer=count.conservative, tie=True)


def _shares(count: Count, weights: Sequence[float]) -> dict[int, float]:
    """Weight behind each different answer, by the position where it first stands."""
    first: dict[str, int] = {}
    shares: dict[int, float] = {}
    for position, (answer, weight) in enumerate(zip(count.answers, weights, strict=True)):
        leader = first.setdefault(repr(answer.code), position)
        shares[leader] = shares.get(leader, 0.0) + weight
    return shares


def unanimous(count: Count) -> Outcome:
    """MET if all are; for a choice the option that all chose, else the conservative one."""
    codes = {repr(answer.code) for answer in count.answers}
    if len(codes) == 1:
        return Outcome(answer=count.answers[0])
    if count.criterion.level == "binary":
        return Outcome(answer=_declared(count, 0.0))
    return Outcome(answer=count.conservative, tie=True)


def any_met(count: Count) -> Outcome:
    """MET if one is."""
    return Outcome(answer=_declared(count, max(answer.value or 0.0 for answer in count.answers)))


def _declared(count: Count, value: float) -> Answer:
    return next(answer for answer in count.criterion.answers() if answer.value == value)


def mode(count: Count) -> Outcome:
    """The answer given most often; the conservative one where several lead, as a tie."""
    return _most(count, [1.0] * len(count.answers))


def weighted_mode(count: Count) -> Outcome:
    """The answer with the most weight behind it; the conservative one where several lead, as a tie."""
    return _most(count, count.weights)


def _most(count: Count, weights: Sequence[float]) -> Outcome:
    shares = _shares(count, weights)
    top = max(shares.values())
    leaders = [position for position, share in shares.items() if top - share <= 1e-12 * max(top, 1.0)]
    if len(leaders) == 1:
        return Outcome(answer=count.answers[leaders[0]])
    worst = _worst(count, [count.answers[position] for position in leaders])
    return Outcome(answer=worst, tie=True)


def _worst(count: Count, answers: Sequence[Answer]) -> Answer:
    pick = min if count.criterion.weight >= 0 else max
    return pick(answers, key=lambda answer: answer.value or 0.0)


def mean(count: Count) -> Outcome:
    """The option nearest to the mean value; the conservative of two equally near ones, as a tie."""
    return _nearest(count, statistics.fmean(_values(count)))


def weighted_mean(count: Count) -> Outcome:
    """The option nearest to the weighted mean value."""
    if not sum(count.weights):
        return mean(count)
    return _nearest(count, statistics.fmean(_values(count), weights=count.weights))


def median(count: Count) -> Outcome:
    """The option nearest to the median value."""
    return _nearest(count, statistics.median(_values(count)))


def lowest(count: Count) -> Outcome:
    """The answer of the lowest value."""
    return _nearest(count, min(_values(count)))


def highest(count: Count) -> Outcome:
    """The answer of the highest value."""
    return _nearest(count, max(_values(count)))


def _values(count: Count) -> list[float]:
    return [answer.value or 0.0 for answer in count.answers]


def _nearest(count: Count, value: float) -> Outcome:
    options = [answer for answer in count.criterion.answers() if answer.value is not None]
    if not options:
        return _between(count, value)
    distances = [abs((option.value or 0.0) - value) for option in options]
    nearest = min(distances)
    close = [o for o, d in zip(options, distances, strict=True) if d - nearest <= 1e-12]
    values = {option.value for option in close}
    if len(values) > 1:
        return Outcome(answer=_worst(count, close), tie=True, mean_value=value)
    # Options of one value cannot be told apart by it: prefer the one that was chosen.
    chosen = [o for o in close if any(answer.code == o.code for answer in count.answers)]
    return Outcome(answer=(chosen or close)[0], mean_value=value)


def _between(count: Count, value: float) -> Outcome:
    same = [answer for answer in count.answers if answer.value == value]
    if same:
        return Outcome(answer=replace(same[0], reason=""), mean_value=value)
    return Outcome(answer=Answer(code=value, value=value), mean_value=value)


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

AGGREGATORS: Mapping[Level, Mapping[str, Aggregator]] = MappingProxyType(
    {"binary": _BINARY, "ordinal": _ORDERED, "interval": _ORDERED, "nominal": _NOMINAL}
)
"""Aggregators by measurement level and name."""
