"""What length takes off a score."""

from __future__ import annotations

from autorubric.types import LengthPenalty, Submission


def compute_length_penalty(text: str, config: LengthPenalty) -> float:
    """What length takes off the score of a text.

    0 up to the free budget, `penalty_at_cap` from the cap on, and between them
    `penalty_at_cap * ((n - free_budget) / (max_cap - free_budget)) ** exponent` for `n` units.
    """
    return _penalty(_units(text, config), config)


def _units(text: str, config: LengthPenalty) -> int:
    return config.count_fn(text) if config.count_fn else len(text.split())


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
