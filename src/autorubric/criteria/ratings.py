"""Criteria that are answered on one scale: Likert items, numbers in a range, pass or fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Final, Literal, Self, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from autorubric.criteria.base import BaseCriterion, Shown, register_kind
from autorubric.criteria.declaration import check_unique
from autorubric.criteria.fields import (
    EVIDENCE,
    MOST_STEPS,
    BoolField,
    BoundFloat,
    BoundInt,
    EvalField,
    TextField,
)
from autorubric.criteria.values import Level
from autorubric.support.field_types import FiniteFloat
from autorubric.support.objects import Json


class LikertItem(BaseModel):
    """An anchor of a rating scale.

    Attributes:
        val: Rating that the anchor describes.
        description: Meaning of the rating.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    val: int
    description: str


@register_kind("likert")
class LikertCriterion(BaseCriterion):
    """A rating on an ordinal scale; the value is `(rating - lowest) / (highest - lowest)`.

    Every integer from the lowest to the highest rating is a valid answer, and the anchors describe some or
    all of these ratings. Pass `scale`, or just a range such as `rating=BoundInt(min_val=1, max_val=5)`.

    Attributes:
        scale: Anchors of the scale, lowest first; empty if only the range is set.
        rating: Range of the ratings.
        explanation: Text field requested with the rating.
    """

    level: ClassVar[Level] = "ordinal"

    # Users pass lists, which are stored as tuples.
    scale: Sequence[LikertItem] = ()
    rating: BoundInt = Field(default=cast(BoundInt, None))
    explanation: TextField = TextField()

    @field_validator("scale")
    @classmethod
    def _check_scale(cls, scale: Sequence[LikertItem]) -> tuple[LikertItem, ...]:
        check_unique((item.val for item in scale), "scale values")
        if len(scale) == 1:
            raise ValueError(f"the scale must have at least two values; got only {scale[0].val}")
        return tuple(sorted(scale, key=lambda item: item.val))

    @model_validator(mode="after")
    def _settle_range(self) -> Self:
        if not self.scale and self.rating is None:
            raise ValueError("a scale is missing; set scale, or rating=BoundInt(min_val=…, max_val=…)")
        if self.scale:
            low, high = self.scale[0].val, self.scale[-1].val
            if self.rating is None:
                # The range is derived from the scale, before the frozen model is returned to the user.
                self.__dict__["rating"] = BoundInt(min_val=low, max_val=high)
            elif (self.rating.min_val, self.rating.max_val) != (low, high):
                raise ValueError(
                    f"the range of rating is {self.rating.min_val} to {self.rating.max_val}, but the scale "
                    f"ranges from {low} to {high}; omit one of them, or use the same bounds"
                )
        if not self.rating.steps():
            what = f"the range from {self.rating.min_val} to {self.rating.max_val} has too many points"
            raise ValueError(f"{what}; use at most {MOST_STEPS} points, or a NumericalRatingCriterion")
        return self

    @model_serializer(mode="wrap")
    def _write(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Omit the range if it follows from the scale."""
        written: dict[str, Any] = {"type": self.kind, **handler(self)}
        if self.scale and self.rating == BoundInt(min_val=self.rating.min_val, max_val=self.rating.max_val):
            written.pop("rating", None)
        return written

    @property
    def anchors(self) -> Mapping[int, str]:
        """Anchor descriptions by rating, lowest rating first."""
        return {item.val: item.description for item in self.scale}

    def _meanings(self) -> Mapping[str, str]:
        return {str(val): text for val, text in self.anchors.items()}

    def render(self, shown: Shown | None = None) -> str:
        """Return the name, the requirement, the range, and the anchors."""
        lines = [super().render(shown), f"Rating scale: {self.rating.min_val} to {self.rating.max_val}"]
        return "\n".join([*lines, *(f"{val}: {text}" for val, text in self.anchors.items())])


RatingMode = Literal["absolute", "relative_to_target", "relative_to_exemplar"]

_RATING_INSTRUCTIONS: Final[Mapping[RatingMode, str]] = {
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

    min_value: FiniteFloat = 0.0
    max_value: FiniteFloat = 10.0
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
        return {"score": BoundFloat(min_val=self.min_value, max_val=self.max_value), "explanation": EVIDENCE}

    @property
    def needs_reference(self) -> bool:
        """Whether the mode requires a reference."""
        return self.mode != "absolute"

    def render(self, shown: Shown | None = None) -> str:
        """Return the name, the requirement, and the range."""
        return f"{super().render(shown)}\nRating range: {self.min_value:g} to {self.max_value:g}"

    def question(self) -> str:
        """Return the name, the requirement, and the role of the reference."""
        return f"{super().question()}\n{self._role()}".strip()

    def _role(self) -> str:
        return _RATING_INSTRUCTIONS[self.mode].format(low=self.min_value, high=self.max_value)

    def instruction(self) -> str:
        """Return a line that explains the expected answer and the role of the reference."""
        return self._role() + super().instruction()


PassFailMode = Literal["absolute", "target", "exemplar"]

_PASS_FAIL_INSTRUCTIONS: Final[Mapping[PassFailMode, str]] = {
    "absolute": "",
    "target": "The reference is the target: the submission passes if it does what the reference does. ",
    "exemplar": "The reference is an example that passes: what is as good passes too, however different. ",
}


@register_kind("pass_fail")
class PassFailCriterion(BaseCriterion):
    """A judgment with two outcomes, pass (1) and fail (0).

    Attributes:
        passing_criteria: Conditions for a pass.
        mode: Whether the text is judged without a reference, against a reference as the target, or with a
            reference as an example of a pass.
    """

    level: ClassVar[Level] = "binary"

    passing_criteria: str | None = None
    mode: PassFailMode = "absolute"

    @cached_property
    def eval_fields(self) -> dict[str, EvalField]:
        """The fields `passed` and `reason`."""
        return {"passed": BoolField(description="whether it passes"), "reason": EVIDENCE}

    @property
    def needs_reference(self) -> bool:
        """Whether the mode requires a reference."""
        return self.mode != "absolute"

    def _label(self, code: Json) -> str:
        return "passed" if code else "failed"

    def render(self, shown: Shown | None = None) -> str:
        """Return the name, the requirement, and the conditions for a pass."""
        head = super().render(shown)
        return f"{head}\nPasses if: {self.passing_criteria}" if self.passing_criteria else head

    def _meanings(self) -> Mapping[str, str]:
        return {"passed": self.passing_criteria or "The text passes.", "failed": "The text does not pass."}

    def question(self) -> str:
        """Return the name, the requirement, and the role of the reference."""
        return f"{super().question()}\n{_PASS_FAIL_INSTRUCTIONS[self.mode]}Does the submission pass?"

    def instruction(self) -> str:
        """Return a line that explains the expected answer and the role of the reference."""
        return _PASS_FAIL_INSTRUCTIONS[self.mode] + super().instruction()
