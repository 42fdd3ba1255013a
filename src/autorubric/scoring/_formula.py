"""The score of one group, a weighted mean with penalties, bonuses and a cap, and the length penalty."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, NamedTuple, TypeVar

from pydantic import ValidationError

from autorubric._files import shortened
from autorubric.errors import ArgumentError
from autorubric.types import LengthPenalty, Submission

_LEAST_SUM: Final = 1e-280

Number = TypeVar("Number", float, Fraction)


class Term(NamedTuple):
    """One term of a score: a criterion or a group.

    Attributes:
        value: Value in [0, 1].
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
    """Combine several terms into a score.

    If the denominator is empty or zero, the score is 0 if the cap is 0 and None otherwise, so that missing a
    gate with cap 0 counts even if nothing else was judged.

    If the sum of the weights exceeds the largest float (1.8e308) or is so small that products would
    underflow, exact fractions keep the normalized score correct.

    Args:
        terms: The terms to score together.
        normalize: Whether to normalize to [0, 1].
        cap: Upper limit of the normalized score, in [0, 1]; a raw sum is limited to the equivalent sum.

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


def compute_length_penalty(
    text: str | Mapping[str, Any], config: LengthPenalty | Mapping[str, Any] | None = None
) -> float:
    """Compute the length penalty of a text.

    For `n` units of text, the penalty is 0 up to `free_budget`, `penalty_at_cap` at `max_cap` and above, and
    `penalty_at_cap * ((n - free_budget) / (max_cap - free_budget)) ** exponent` in between.

    Args:
        text: A text, or a submission such as `{"thinking", "output"}`; the policy selects the part to count.
        config: The policy, or a mapping of its fields; by default, `LengthPenalty()`.

    Raises:
        ArgumentError: If the text or the policy is invalid, or if `count_fn` fails or returns an invalid
            count.
    """
    policy = config if isinstance(config, LengthPenalty) else _length_policy(config or {})
    if isinstance(text, Mapping):
        return submission_length_penalty(Submission.parse(text), policy)
    if not isinstance(text, str):
        raise ArgumentError(f"text must be a string or a submission mapping; got {shortened(text)}")
    return _penalty_of(_length_of(text, policy), policy)


def _length_policy(fields: Any) -> LengthPenalty:
    try:
        return LengthPenalty.model_validate(fields)
    except ValidationError as error:
        wrong = [
            f"{'.'.join(map(str, one['loc'])) or 'config'}: {one['msg']}"
            for one in error.errors(include_url=False)
        ]
        fields_of = ", ".join(LengthPenalty.model_fields)
        raise ArgumentError(
            f"config={shortened(fields)} is not a length penalty: {'; '.join(wrong)}. Fields: {fields_of}"
        ) from None


def _length_of(text: str, config: LengthPenalty) -> int:
    if config.count_fn is None:
        return len(text.split())
    try:
        units = config.count_fn(text)
    # The function is user code, so its exceptions are reported as errors in the policy.
    except Exception as error:
        raise ArgumentError(f"count_fn raised {type(error).__name__}: {error}") from error
    if isinstance(units, bool) or not isinstance(units, (int, float)) or not 0 <= units < math.inf:
        raise ArgumentError(f"count_fn must return a non-negative number of units; got {units!r}")
    return int(units)


def _penalty_of(units: int, config: LengthPenalty) -> float:
    if units <= config.free_budget:
        return 0.0
    if units >= config.max_cap:
        return config.penalty_at_cap
    share = (units - config.free_budget) / (config.max_cap - config.free_budget)
    return float(config.penalty_at_cap * share**config.exponent)


def submission_length_penalty(submission: Submission, config: LengthPenalty | None) -> float:
    """Compute the length penalty of a submission; only the part selected by `penalty_type` is counted."""
    if config is None:
        return 0.0
    parts = {
        "ALL": (submission.thinking, submission.text),
        "OUTPUT_ONLY": (submission.text,),
        "THINKING_ONLY": (submission.thinking,),
    }[config.penalty_type]
    return _penalty_of(sum(_length_of(part, config) for part in parts if part), config)
