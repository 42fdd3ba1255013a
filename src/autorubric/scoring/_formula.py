"""The score of one group: a weighted mean with penalties, bonuses and a cap."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Final, NamedTuple, TypeVar

from autorubric.errors import ArgumentError

_LEAST_SUM: Final = 1e-280

Number = TypeVar("Number", float, Fraction)


class Term(NamedTuple):
    """One term of a score: a criterion or a group.

    Attributes:
        value: Value on [0, 1].
        weight: Weight, of any sign.
        bonus: Whether the term is excluded from the denominator.
    """

    value: float
    weight: float
    bonus: bool = False


class Score(NamedTuple):
    """A score before the length penalty.

    Attributes:
        score: The score, either normalized to [0, 1] or a raw sum; None if nothing can be scored.
        raw: Σ value × weight; None if nothing can be scored or the sum exceeds the largest float.
    """

    score: float | None
    raw: float | None


def score_terms(terms: Iterable[Term], *, normalize: bool = True, cap: float | None = None) -> Score:
    """Compute the score of several terms with the formulas of this package.

    If the denominator would be empty or zero, the score is 0 if the cap is 0, so that a missed gate with cap
    0 does not pass because nothing else was judged. With any other cap the score is then undefined.

    If the sum of the weights exceeds the largest float (1.8e308), or is so small that products would
    underflow, exact fractions are used, so that the normalized score is still correct.

    Args:
        terms: The terms to score together.
        normalize: Whether to normalize to [0, 1].
        cap: Upper limit of the normalized score, on [0, 1]; a raw sum is limited to the sum that has this
            normalized score.

    Raises:
        ArgumentError: If the score is a raw sum that exceeds the largest float.
    """
    kept = list(terms)
    total = sum(abs(term.weight) for term in kept)
    if math.isfinite(total) and (total == 0 or total > _LEAST_SUM):
        return Score(*_score_and_raw(kept, normalize, cap))
    exact = [(Fraction(term.value), Fraction(term.weight), term.bonus) for term in kept]
    score, raw = _score_and_raw(exact, normalize, None if cap is None else Fraction(cap))
    shown = _as_float(score)
    if score is not None and shown is None:
        largest = max((term.weight for term in kept), key=abs)
        raise ArgumentError(
            f"the sum of value × weight exceeds the largest float (the largest weight is {largest:g}); "
            "divide all weights by the same number, or grade with normalize=True"
        )
    return Score(score=shown, raw=_as_float(raw))


def _score_and_raw(
    terms: Sequence[tuple[Number, Number, bool]], normalize: bool, cap: Number | None
) -> tuple[Number | None, Number | None]:
    products = [value * weight for value, weight, _ in terms]
    divided = [weight for _, weight, bonus in terms if not bonus]
    if not products or not any(divided):
        return (cap if cap == 0 else None), (sum(products[1:], products[0]) if products else None)
    raw = sum(products[1:], products[0])
    gains = [weight for weight in divided if weight > 0]
    # If there are only penalties, they are subtracted from a full score.
    start, shares = (0, gains) if gains else (1, [abs(weight) for weight in divided])
    scale = sum(shares[1:], shares[0])
    if not normalize:
        return (raw if cap is None else min(raw, (cap - start) * scale)), raw
    score = clamp(start + raw / scale)
    return (score if cap is None else min(score, cap)), raw


def _as_float(figure: Fraction | None) -> float | None:
    """Return the nearest float; None if the value overflows."""
    try:
        return None if figure is None else float(figure)
    except OverflowError:
        return None


def clamp(score: Number) -> Number:
    """Clip a number to [0, 1]."""
    low, high = type(score)(0), type(score)(1)
    return min(high, max(low, score))


def penalised(score: float | None, penalty: float, *, normalize: bool = True) -> float | None:
    """Subtract the length penalty from a score, and clip a normalized score to [0, 1]."""
    if score is None:
        return None
    return clamp(score - penalty) if normalize else score - penalty
