"""Answers, weights and policies to a score; and what length takes off it. All pure.

With `v` the value of a criterion on [0, 1] and `w` its weight, the raw score is Σ v·w. Normalised it is
`clamp(Σ v·w / Σ positive w, 0, 1)`; a rubric of penalties alone scores `clamp(1 + Σ v·w / Σ |w|, 0, 1)`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, assert_never

from autorubric.criteria import BaseCriterion
from autorubric.errors import ArgumentError
from autorubric.types import (
    CannotAssessConfig,
    CannotAssessStrategy,
    Decision,
    LengthPenalty,
    Submission,
)


class Term(NamedTuple):
    """One criterion's part in a score.

    Attributes:
        value: On [0, 1].
        weight: Any sign.
    """

    value: float
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A score before the length penalty.

    Attributes:
        score: Normalised to [0, 1] where asked for, else the raw sum; None where nothing is left to score.
        raw: Σ value × weight; None where nothing is left to score.
    """

    score: float | None
    raw: float | None


def entering_value(
    criterion: BaseCriterion, decision: Decision | None, policy: CannotAssessConfig
) -> float | None:
    """The value on [0, 1] with which a decision enters the score; None where it leaves it.

    A missing judgment counts as the policy says; a failed criterion, one that was not asked and one that
    does not apply leave numerator and denominator, and so does a criterion that measures nothing.
    """
    if decision is None or decision.status in ("failed", "not_asked", "not_applicable"):
        return None
    if decision.status == "answered":
        return decision.value
    match policy.strategy:
        case CannotAssessStrategy.SKIP:
            return None
        case CannotAssessStrategy.ZERO:
            return 0.0
        case CannotAssessStrategy.PARTIAL:
            return policy.partial_credit
        case CannotAssessStrategy.FAIL:
            return criterion.conservative().value
        case _:
            assert_never(policy.strategy)


def score_terms(terms: Iterable[Term], *, normalize: bool = True) -> Score:
    """The score of the terms that are left, by the formulas of this module."""
    kept = list(terms)
    if not kept:
        return Score(score=None, raw=None)
    raw = sum(term.value * term.weight for term in kept)
    if not any(term.weight for term in kept):
        return Score(score=None, raw=raw)
    if not normalize:
        return Score(score=raw, raw=raw)
    positive = sum(term.weight for term in kept if term.weight > 0)
    if positive > 0:
        return Score(score=_clamp(raw / positive), raw=raw)
    return Score(score=_clamp(1 + raw / sum(abs(term.weight) for term in kept)), raw=raw)


def score_values(
    criteria: Sequence[BaseCriterion], values: Sequence[float | None], *, normalize: bool = True
) -> Score:
    """The score of values beside their criteria; a value of None leaves the score."""
    pairs = zip(criteria, values, strict=True)
    return score_terms(
        (Term(value, criterion.weight) for criterion, value in pairs if value is not None),
        normalize=normalize,
    )


def _clamp(score: float) -> float:
    return min(1.0, max(0.0, score))


def penalised(score: float | None, penalty: float, *, normalize: bool = True) -> float | None:
    """A score less the length penalty; clamped to [0, 1] again where normalised."""
    if score is None:
        return None
    return _clamp(score - penalty) if normalize else score - penalty


def compute_length_penalty(text: str, config: LengthPenalty) -> float:
    """What length takes off the score of a text.

    0 up to the free budget, `penalty_at_cap` from the cap on, and between them
    `penalty_at_cap * ((n - free_budget) / (max_cap - free_budget)) ** exponent` for `n` units.

    Raises:
        ArgumentError: `count_fn` raised, or returned no count.
    """
    return _penalty(_units(text, config), config)


def _units(text: str, config: LengthPenalty) -> int:
    if config.count_fn is None:
        return len(text.split())
    try:
        units = config.count_fn(text)
    # The function is its author's code, not ours: what it raises is told as a fault of the policy.
    except Exception as error:
        raise ArgumentError(f"count_fn raised {type(error).__name__}: {error}") from error
    if isinstance(units, bool) or not isinstance(units, (int, float)) or not 0 <= units < math.inf:
        raise ArgumentError(f"count_fn returned {units!r}; it returns how many units a text has, from 0 up")
    return int(units)


def _penalty(units: int, config: LengthPenalty) -> float:
    if units <= config.free_budget:
        return 0.0
    if units >= config.max_cap:
        return config.penalty_at_cap
    share = (units - config.free_budget) / (config.max_cap - config.free_budget)
    return float(config.penalty_at_cap * share**config.exponent)


def submission_length_penalty(submission: Submission, config: LengthPenalty | None) -> float:
    """What length takes off the score of a submission, of the parts that the policy counts."""
    if config is None:
        return 0.0
    parts = {
        "ALL": (submission.thinking, submission.text),
        "OUTPUT_ONLY": (submission.text,),
        "THINKING_ONLY": (submission.thinking,),
    }[config.penalty_type]
    return _penalty(sum(_units(part, config) for part in parts if part), config)
