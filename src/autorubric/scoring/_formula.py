"""The score of one group: a weighted mean with penalties, bonuses and a cap."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


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
        raw: Σ value × weight; None where nothing is left to score.
    """

    score: float | None
    raw: float | None


def score_terms(terms: Iterable[Term], *, normalize: bool = True, cap: float | None = None) -> Score:
    """The score of the terms that are left, by the formulas of this package.

    Where no term is left that could be divided by, a cap of 0 is the score: a missed gate that allows nothing
    does not pass because the rest was not judged. Under any other cap there is no telling.

    Args:
        terms: What is scored together.
        normalize: Whether to normalise to [0, 1].
        cap: The most on [0, 1] that the normalised score may be; a raw sum is capped at the sum that would
            normalise to it.
    """
    kept = list(terms)
    divided = [term.weight for term in kept if not term.bonus]
    products = [term.value * term.weight for term in kept]
    raw = sum(products) if products else None
    if raw is None or not any(divided):
        return Score(score=0.0 if cap == 0.0 else None, raw=raw)
    gains = [weight for weight in divided if weight > 0]
    positive = sum(gains)
    # Penalties alone take off from a full score.
    start, scale = (0.0, positive) if positive > 0 else (1.0, sum(map(abs, divided)))
    if not normalize:
        return Score(score=raw if cap is None else min(raw, (cap - start) * scale), raw=raw)
    score = clamp(start + raw / scale)
    return Score(score=score if cap is None else min(score, cap), raw=raw)


def clamp(score: float) -> float:
    """The nearest number on [0, 1]."""
    return min(1.0, max(0.0, score))


def penalised(score: float | None, penalty: float, *, normalize: bool = True) -> float | None:
    """A score less the length penalty; clamped to [0, 1] again where normalised."""
    if score is None:
        return None
    return clamp(score - penalty) if normalize else score - penalty
