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
    """One part in a score: a criterion's, or a group's.

    Attributes:
        value: On [0, 1].
        weight: Any sign.
        bonus: Whether it is left out of the denominator.
    """

    value: float
    weight: float
    bonus: bool = False


class Score(NamedTuple):
    """A score before the length penalty.

    Attributes:
        score: Normalised to [0, 1] where asked for, else the raw sum; None where nothing is left to score.
        raw: Σ value × weight; None where nothing is left to score, or the sum is beyond the largest float.
    """

    score: float | None
    raw: float | None


def score_terms(terms: Iterable[Term], *, normalize: bool = True, cap: float | None = None) -> Score:
    """Return the score of the terms that are left, by the formulas of this package.

    Where no term is left that could be divided by, a cap of 0 is the score: a missed gate that allows nothing
    does not pass because the rest was not judged. Under any other cap the score is undefined.

    Weights whose sum is beyond the largest float (1.8e308), or so small that products would underflow, are
    summed as exact fractions, so that the normalised score is still right.

    Args:
        terms: What is scored together.
        normalize: Whether to normalise to [0, 1].
        cap: The most on [0, 1] that the normalised score may be; a raw sum is capped at the sum that would
            normalise to it.

    Raises:
        ArgumentError: The score is a raw sum, and it is beyond the largest float.
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
            f"the sum of value × weight is beyond the largest float (a weight is {largest:g}); "
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
    # Penalties alone take off from a full score.
    start, shares = (0, gains) if gains else (1, [abs(weight) for weight in divided])
    scale = sum(shares[1:], shares[0])
    if not normalize:
        return (raw if cap is None else min(raw, (cap - start) * scale)), raw
    score = clamp(start + raw / scale)
    return (score if cap is None else min(score, cap)), raw


def _as_float(figure: Fraction | None) -> float | None:
    """The nearest float; None where there is none below infinity."""
    try:
        return None if figure is None else float(figure)
    except OverflowError:
        return None


def clamp(score: Number) -> Number:
    """Return the nearest number on [0, 1]."""
    low, high = type(score)(0), type(score)(1)
    return min(high, max(low, score))


def penalised(score: float | None, penalty: float, *, normalize: bool = True) -> float | None:
    """A score less the length penalty; clamped to [0, 1] again where normalised."""
    if score is None:
        return None
    return clamp(score - penalty) if normalize else score - penalty
