"""Criteria that are rated with integers on a scale with anchors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from autorubric.criteria._base import BaseCriterion, Shown
from autorubric.criteria._fields import MOST_STEPS, BoundInt, TextField
from autorubric.criteria._registry import register_kind
from autorubric.values import Level


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
        values = [item.val for item in scale]
        repeated = sorted(val for val, count in Counter(values).items() if count > 1)
        if repeated:
            raise ValueError(f"scale values must be unique; repeated: {', '.join(map(str, repeated))}")
        if len(scale) == 1:
            raise ValueError(f"the scale must have at least two values; got only {values[0]}")
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
            raise ValueError(
                f"the range from {self.rating.min_val} to {self.rating.max_val} has too many points; use at "
                f"most {MOST_STEPS} points, or a NumericalRatingCriterion"
            )
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

    def render(self, shown: Shown | None = None) -> str:
        """Return the name, the requirement, the range, and the anchors."""
        lines = [super().render(shown), f"Rating scale: {self.rating.min_val} to {self.rating.max_val}"]
        return "\n".join([*lines, *(f"{val}: {text}" for val, text in self.anchors.items())])
