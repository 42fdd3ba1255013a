"""Probabilities of the answers to a criterion: how they are read, and the most probable answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, Final, TypeAlias

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.values import Answer, Level
from autorubric.errors import ReplyError
from autorubric.scoring.votes import JudgeVote, Probabilities, prefers_alike
from autorubric.support.reading_errors import short_repr

ABSTENTION: Final = "CANNOT_ASSESS"
"""Key of the probability that a criterion cannot be assessed."""

_ROUNDING: Final = 1e-6
"""Largest distance of a probability outside [0, 1]; servers compute with numbers of 32 bits."""

SUM_TOLERANCE: Final = 0.02
"""Largest difference of the sum of a distribution from 1; servers round probabilities."""

CLOSE: Final = 1e-12
"""Difference below which two probabilities are equal, as with `_CLOSE` in `aggregation`."""


def read_probabilities(criterion: BaseCriterion, given: object) -> Probabilities:
    """Return probabilities by label or, with parts, by part and label; a `ReplyError` says what is wrong."""
    if not isinstance(given, Mapping) or not given:
        raise ReplyError(
            f"{_title(criterion)}: probabilities must map answers to numbers; got {short_repr(given)}"
        )
    parts = criterion.part_fields
    if not parts:
        return _read_distribution(criterion, given)
    named = {(part.name or "").rpartition("/")[2]: key for key, part in parts.items()}
    named |= {key: key for key in parts}
    if unknown := [key for key in given if key not in named]:
        raise ReplyError(
            f"{_title(criterion)}: probabilities of unknown part {short_repr(unknown[0])}; "
            f"parts: {', '.join(parts)}"
        )
    read = {named[key]: _read_distribution(parts[named[key]], one) for key, one in given.items()}
    if missing := [key for key in parts if key not in read]:
        raise ReplyError(f"{_title(criterion)}: probabilities are missing for {', '.join(missing)}")
    return {key: read[key] for key in parts}


def _title(criterion: BaseCriterion) -> str:
    return criterion.name or "criterion"


def _read_distribution(criterion: BaseCriterion, given: Any) -> dict[str, float]:
    if not isinstance(given, Mapping):
        raise ReplyError(
            f"{_title(criterion)}: probabilities must map answers to numbers; got {short_repr(given)}"
        )
    found: dict[str, float] = {}
    for key, share in given.items():
        label = label_of_key(criterion, key)
        number = as_probability(share)
        if number is None:
            raise ReplyError(
                f"{_title(criterion)}: the probability of {short_repr(label)} must be a number between 0 and "
                f"1; got {short_repr(share)}"
            )
        if label in found:
            raise ReplyError(f"{_title(criterion)}: the probability of {label!r} is given twice")
        found[label] = number
    if problem := sum_problem(found.values()):
        raise ReplyError(f"{_title(criterion)}: {problem}")
    return found


def as_probability(given: object) -> float | None:
    """Return a number in [0, 1], also of numpy, without a rounding error; None for anything else."""
    number = float(given) if isinstance(given, Real) and not isinstance(given, bool) else math.nan
    return min(max(number, 0.0), 1.0) if -_ROUNDING <= number <= 1.0 + _ROUNDING else None


def sum_problem(shares: Iterable[float]) -> str:
    """Return why probabilities are not a distribution; empty if their sum is 1 within the tolerance."""
    total = math.fsum(shares)
    if abs(total - 1.0) <= SUM_TOLERANCE + CLOSE:
        return ""
    return f"the probabilities must sum to 1 (±{SUM_TOLERANCE:g}); the sum is {total:.9g}"


def label_of_key(criterion: BaseCriterion, key: Any) -> str:
    """Return the label of the answer that a key of a distribution means."""
    if key == ABSTENTION or any(key == answer.label for answer in criterion.answers()):
        return str(key)
    try:
        answer = criterion.parse_truth(key)
    except ReplyError as error:
        raise ReplyError(f"probability of an unknown answer: {error}") from None
    if answer is not None and answer.cannot_assess:
        return ABSTENTION
    if answer is None or answer.label is None:
        raise ReplyError(f"{_title(criterion)}: {short_repr(key)} is not an answer with a label")
    return answer.label


def answer_of_label(criterion: BaseCriterion, label: str) -> Answer:
    if label == ABSTENTION:
        return Answer(code=None, cannot_assess=True)
    for answer in criterion.answers():
        if answer.label == label:
            return answer
    read = criterion.parse_truth(label)
    return read or Answer(code=None, cannot_assess=True)


def most_probable(
    criterion: BaseCriterion, distribution: Mapping[str, float], threshold: float | None = None
) -> tuple[Answer, bool]:
    """Return the most probable answer, and whether several answers tie, of which it is the conservative one.

    A threshold applies to the positive share of the mass of a binary criterion that is not an abstention.
    """
    top = max(distribution.values())
    leading = [answer_of_label(criterion, key) for key, p in distribution.items() if top - p <= CLOSE]
    if threshold is not None and criterion.level == "binary" and not all(one.abstains for one in leading):
        negative, positive = criterion.answers()
        mass = {one.label: distribution.get(one.label or "", 0.0) for one in (negative, positive)}
        total = math.fsum(mass.values())
        return (positive if mass[positive.label] >= threshold * total - CLOSE else negative), False
    if len(leading) == 1:
        return leading[0], False
    sign = 1.0 if criterion.weight >= 0 else -1.0
    valued = [one for one in leading if not one.abstains] or leading
    if criterion.level == "ranking" and not all(prefers_alike(one.code, valued[0].code) for one in valued):
        # As with hard votes, preferences for both candidates of a pair are a tie.
        middle = criterion.answer_at(0.5)
        if middle.code is not None:
            return middle, True
    return min(valued, key=lambda one: (sign * (one.value or 0.0), one.index or 0, str(one.label))), True


def by_part(
    criterion: BaseCriterion, probabilities: Probabilities
) -> list[tuple[BaseCriterion, Mapping[str, float]]]:
    """Return each part of a criterion with its distribution; without parts, the criterion itself."""
    given: Mapping[str, Any] = probabilities
    if not criterion.part_fields:
        return [(criterion, given)]
    return [(part, given[key]) for key, part in criterion.part_fields.items()]


def probable_answer(
    criterion: BaseCriterion, probabilities: Probabilities, threshold: float | None = None
) -> tuple[Answer, bool]:
    """Return the most probable answer, part by part, and whether answers tie; see `most_probable`."""
    chosen = [most_probable(*one, threshold) for one in by_part(criterion, probabilities)]
    answers, tie = [answer for answer, _ in chosen], any(tied for _, tied in chosen)
    if not criterion.part_fields:
        return answers[0], tie
    if any(one.abstains for one in answers):
        return Answer(code=None, cannot_assess=True), tie
    return criterion.whole(answers), tie


def expected_value(criterion: BaseCriterion, probabilities: Probabilities) -> tuple[float | None, float]:
    """Return the expected value in [0, 1] (None if no answer has a value) and P(no abstention).

    With parts, both are weighted means over the parts.
    """
    found = [_expected_value(*one) for one in by_part(criterion, probabilities)]
    if not criterion.part_fields:
        return found[0]
    weighted = [(w * valued, mean) for w, (mean, valued) in zip(criterion.part_weights, found, strict=True)]
    valued = math.fsum(mass for mass, _ in weighted)
    gained = math.fsum(mass * (mean or 0.0) for mass, mean in weighted)
    return min(gained / valued, 1.0) if valued else None, min(valued / math.fsum(criterion.part_weights), 1.0)


def _expected_value(
    criterion: BaseCriterion, distribution: Mapping[str, float]
) -> tuple[float | None, float]:
    answers = [(answer_of_label(criterion, label), p) for label, p in distribution.items() if p]
    values = [(one.value, p) for one, p in answers if one.value is not None and not one.abstains]
    valued = math.fsum(p for _, p in values)
    abstaining = math.fsum(p for one, p in answers if one.abstains)
    if not valued:
        return None, 0.0 if criterion.measures else 1.0 - abstaining / math.fsum(p for _, p in answers)
    mean = math.fsum(p * value for value, p in values) / valued
    lowest, highest = min(value for value, _ in values), max(value for value, _ in values)
    return min(max(mean, lowest), highest), valued / (valued + abstaining)


def mean_probabilities(
    criterion: BaseCriterion,
    given: Sequence[Probabilities],
    weights_of: Callable[[BaseCriterion], Sequence[float]],
) -> Probabilities:
    """Return the mean of several probabilities, with weights by part; their order makes no difference."""
    rows = list(zip(*[by_part(criterion, one) for one in given], strict=True))
    means = [
        _mean_distribution(part[0][0], [row for _, row in part], weights_of(part[0][0])) for part in rows
    ]
    return dict(zip(criterion.part_fields, means, strict=True)) if criterion.part_fields else means[0]


def _mean_distribution(
    criterion: BaseCriterion, rows: Sequence[Mapping[str, float]], weights: Sequence[float]
) -> dict[str, float]:
    if len(rows) == 1:
        return dict(rows[0])
    total = math.fsum(weights)
    if not total:
        weights, total = [1.0] * len(rows), float(len(rows))
    places = {answer.label: at for at, answer in enumerate(criterion.answers())}
    labels = {label for row in rows for label in row}
    return {
        label: math.fsum([w * row.get(label, 0.0) for w, row in zip(weights, rows, strict=True)]) / total
        for label in sorted(labels, key=lambda label: (places.get(label, len(places)), label))
    }


def certain_of(criterion: BaseCriterion, answer: Answer | None) -> Probabilities | None:
    """Return the probabilities that give all mass to an answer; None if it or a part of it has no label."""
    if not criterion.part_fields:
        return _certain_distribution(criterion, answer)
    if answer is None or answer.abstains:
        return {key: {ABSTENTION: 1.0} for key in criterion.part_fields}
    parts = zip(criterion.part_fields.items(), criterion.part_answers(answer), strict=True)
    found = {key: one and _certain_distribution(part, one) for (key, part), one in parts}
    return {key: one for key, one in found.items() if one} if all(found.values()) else None


def _certain_distribution(criterion: BaseCriterion, answer: Answer | None) -> Mapping[str, float] | None:
    if answer is None or answer.cannot_assess:
        return {ABSTENTION: 1.0}
    if answer.label is None or answer.label == ABSTENTION:
        return None
    # Labels of lists and objects are words for people, which do not give the answer back.
    try:
        same = answer_of_label(criterion, answer.label).code == answer.code
    except ReplyError:
        same = False
    return {answer.label: 1.0} if same else None


def is_certain(criterion: BaseCriterion, probabilities: Probabilities, answer: Answer) -> bool:
    """Return whether an answer has all mass, part by part."""
    certain = certain_of(criterion, answer)
    if certain is None:
        return False
    pairs = zip(by_part(criterion, certain), by_part(criterion, probabilities), strict=True)
    return all({key for key, p in given.items() if p} == {*one} for (_, one), (_, given) in pairs)


Band: TypeAlias = tuple[float, float]  # a lower and an upper probability, in [0, 1]


def probability_of(criterion: BaseCriterion, votes: Sequence[JudgeVote]) -> float | None:
    """Return the mean probability that a band applies to (see `EscalationConfig`); None if it is unknown."""
    given = [(one.probabilities, one.weight) for one in votes if one.probabilities is not None]
    if not given:
        return None
    mean: Any = mean_probabilities(criterion, [one for one, _ in given], lambda part: [w for _, w in given])
    if criterion.level == "binary":
        return float(mean.get(criterion.answers()[-1].label, 0.0))
    return min(max(shares.values()) for _, shares in by_part(criterion, mean))


def is_in_band(level: Level, probability: float | None, band: Band) -> bool:
    """Return whether a criterion with this probability is escalated; see `EscalationConfig`."""
    if probability is None or level != "binary":
        return probability is None or probability < band[1]
    return band[0] <= probability <= band[1]
