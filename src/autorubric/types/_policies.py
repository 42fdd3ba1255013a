"""Policies for the effect of missing judgments and length on a score."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SkipValidation,
    model_validator,
)

from autorubric.criteria import qualified_name

PenaltyType = Literal["ALL", "OUTPUT_ONLY", "THINKING_ONLY"]


def _function(given: Any) -> Any:
    if not callable(given):
        raise ValueError(
            f"{given!r} is not a function; pass a function that returns the number of units in a text"
        )
    return given


CountFunction = Annotated[
    SkipValidation[Callable[[str], int]],
    BeforeValidator(_function),
    PlainSerializer(qualified_name, return_type=str),
]


class CannotAssessStrategy(StrEnum):
    """How to score a criterion that has no judgment (CANNOT_ASSESS or NA).

    `SKIP` removes the criterion from numerator and denominator, `ZERO` scores it as 0, `PARTIAL` as
    `partial_credit`, and `FAIL` as the worst answer: the lowest or, for a negative weight, the highest.
    """

    SKIP = "skip"
    ZERO = "zero"
    PARTIAL = "partial"
    FAIL = "fail"

    @classmethod
    def _missing_(cls, value: object) -> CannotAssessStrategy | None:
        return next((one for one in cls if isinstance(value, str) and value.lower() == one), None)


class CannotAssessConfig(BaseModel):
    """Policy for criteria that have no judgment.

    Attributes:
        strategy: How to score such criteria.
        partial_credit: Value in [0, 1] used by `PARTIAL`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    strategy: CannotAssessStrategy = CannotAssessStrategy.SKIP
    partial_credit: float = Field(default=0.5, ge=0.0, le=1.0)


class LengthPenalty(BaseModel):
    """Policy for a length penalty that is subtracted from the score.

    Attributes:
        free_budget: Maximum number of units without a penalty.
        max_cap: Number of units at which the penalty reaches `penalty_at_cap`.
        penalty_at_cap: Maximum penalty, in score units.
        exponent: Exponent of the increase between the two limits; 1 is linear.
        count_fn: Function that counts the units in a text; words by default.
        penalty_type: Part of the submission to count.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    free_budget: int = Field(default=6000, ge=0)
    max_cap: int = Field(default=8000, ge=0)
    penalty_at_cap: float = Field(default=0.5, ge=0.0, allow_inf_nan=False)
    exponent: float = Field(default=1.6, gt=0.0, allow_inf_nan=False)
    count_fn: CountFunction | None = None
    penalty_type: PenaltyType = "ALL"

    @model_validator(mode="after")
    def _check_budget(self) -> LengthPenalty:
        if self.free_budget >= self.max_cap:
            raise ValueError(f"free_budget ({self.free_budget}) must be less than max_cap ({self.max_cap})")
        return self
