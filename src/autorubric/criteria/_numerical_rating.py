"""Criteria that are scored with a number in a range."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar, Final, Literal, Self

from pydantic import Field, model_validator

from autorubric.criteria._base import BaseCriterion, Shown
from autorubric.criteria._fields import BoundFloat, EvalField, TextField
from autorubric.criteria._registry import register_kind
from autorubric.values import Level

RatingMode = Literal["absolute", "relative_to_target", "relative_to_exemplar"]

_AGAINST: Final[Mapping[RatingMode, str]] = {
    "absolute": "",
    "relative_to_target": (
        "The reference is the target: {high:g} is for reaching it, {low:g} for missing it altogether. "
    ),
    "relative_to_exemplar": (
        "The reference would score {high:g}: score how near in quality the submission is, however different. "
    ),
}


@register_kind("numerical_rating")
class NumericalRatingCriterion(BaseCriterion):
    """A numeric score in a range; its value in [0, 1] is `(score - min_value) / (max_value - min_value)`.

    Attributes:
        min_value: Lowest possible score.
        max_value: Highest possible score.
        mode: Whether the text is judged without a reference, against a reference as the target, or with a
            reference as an example. The mode changes the judge's instructions but not the value of a score.
    """

    level: ClassVar[Level] = "interval"

    min_value: float = Field(default=0.0, allow_inf_nan=False)
    max_value: float = Field(default=10.0, allow_inf_nan=False)
    mode: RatingMode = "absolute"

    @model_validator(mode="after")
    def _check_range(self) -> Self:
        if self.min_value >= self.max_value:
            raise ValueError(f"min_value {self.min_value:g} must be less than max_value {self.max_value:g}")
        # Rejects ranges that are too wide for a float.
        BoundFloat(min_val=self.min_value, max_val=self.max_value)
        return self

    @cached_property
    def eval_fields(self) -> dict[str, EvalField]:
        """The fields `score` and `explanation`."""
        return {
            "score": BoundFloat(min_val=self.min_value, max_val=self.max_value),
            "explanation": TextField(description="the evidence, in a sentence or two"),
        }

    @property
    def needs_reference(self) -> bool:
        """Whether the mode requires a reference."""
        return self.mode != "absolute"

    def render(self, shown: Shown | None = None) -> str:
        """Return the name, the requirement, and the range."""
        return f"{super().render(shown)}\nRating range: {self.min_value:g} to {self.max_value:g}"

    def instruction(self) -> str:
        """Return a line that explains the expected answer and the role of the reference."""
        against = _AGAINST[self.mode].format(low=self.min_value, high=self.max_value)
        return against + super().instruction()
