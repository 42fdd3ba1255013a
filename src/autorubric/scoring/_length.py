"""Computation of length penalties."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from autorubric._files import shortened
from autorubric.errors import ArgumentError
from autorubric.types import LengthPenalty, Submission


def compute_length_penalty(
    text: str | Mapping[str, Any], config: LengthPenalty | Mapping[str, Any] | None = None
) -> float:
    """Compute the length penalty of a text.

    With `n` units of text, the penalty is 0 up to `free_budget`, `penalty_at_cap` from `max_cap` on, and
    `penalty_at_cap * ((n - free_budget) / (max_cap - free_budget)) ** exponent` in between.

    Args:
        text: A text, or a submission such as `{"thinking", "output"}`, of which the policy selects a part.
        config: The policy, or a mapping of its fields; by default, `LengthPenalty()`.

    Raises:
        ArgumentError: If the text or the policy is invalid, or if `count_fn` fails or returns no count.
    """
    policy = config if isinstance(config, LengthPenalty) else _policy(config or {})
    if isinstance(text, Mapping):
        return submission_length_penalty(Submission.parse(text), policy)
    if not isinstance(text, str):
        raise ArgumentError(f"text must be a string or a submission mapping; got {shortened(text)}")
    return _penalty(_units(text, policy), policy)


def _policy(fields: Any) -> LengthPenalty:
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


def _units(text: str, config: LengthPenalty) -> int:
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


def _penalty(units: int, config: LengthPenalty) -> float:
    if units <= config.free_budget:
        return 0.0
    if units >= config.max_cap:
        return config.penalty_at_cap
    share = (units - config.free_budget) / (config.max_cap - config.free_budget)
    return float(config.penalty_at_cap * share**config.exponent)


def submission_length_penalty(submission: Submission, config: LengthPenalty | None) -> float:
    """Compute the length penalty of a submission from the parts that the policy counts."""
    if config is None:
        return 0.0
    parts = {
        "ALL": (submission.thinking, submission.text),
        "OUTPUT_ONLY": (submission.text,),
        "THINKING_ONLY": (submission.thinking,),
    }[config.penalty_type]
    return _penalty(sum(_units(part, config) for part in parts if part), config)
