"""A rating in whole numbers on a scale with anchors."""

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
    """An anchor of a scale.

    Attributes:
        val: The rating.
        description: Its meaning.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    val: int
    description: str


@register_kind("likert")
class LikertCriterion(BaseCriterion):
    """A rating on an ordered scale; its value is `(rating - lowest) / (highest - lowest)`.

    Every whole number from the lowest to the highest is an answer; the items of the scale describe some of
    them. Give `scale`, or only the range as `rating=BoundInt(min_val=1, max_val=5)`.

    Attributes:
        scale: The anchors, lowest first; empty if only the range is given.
        rating: The range.
        explanation: The text requested with the rating.
    """

    level: ClassVar[Level] = "ordinal"

    # Lists are what users give; what is kept is a tuple.
    scale: Sequence[LikertItem] = ()
    rating: BoundInt = Field(default=cast(BoundInt, None))
    explanation: TextField = TextField()

    @field_validator("scale")
    @classmethod
    def _check_scale(cls, scale: Sequence[LikertItem]) -> tuple[LikertItem, ...]:
        values = [item.val for item in scale]
        repeated = sorted(val for val, count in Counter(values).items() if count > 1)
        if repeated:
            raise ValueError(f"the scale repeats {', '.join(map(str, repeated))}; each value stands once")
        if len(scale) == 1:
            raise ValueError(f"the scale has only {values[0]}; give two values or more")
        return tuple(sorted(scale, key=lambda item: item.val))

    @model_validator(mode="after")
    def _settle_range(self) -> Self:
        if not self.scale and self.rating is None:
            raise ValueError("give the scale, or its range as rating=BoundInt(min_val=…, max_val=…)")
        if self.scale:
            low, high = self.scale[0].val, self.scale[-1].val
            if self.rating is None:
                # The range follows from the scale; the model is frozen for its users, not for its maker.
                self.__dict__["rating"] = BoundInt(min_val=low, max_val=high)
            elif (self.rating.min_val, self.rating.max_val) != (low, high):
                raise ValueError(
                    f"rating goes from {self.rating.min_val} to {self.rating.max_val} and the scale from "
                    f"{low} to {high}; give one of them, or the same ends"
                )
        if not self.rating.steps():
            raise ValueError(
                f"{self.rating.min_val} to {self.rating.max_val} are too many points for a scale; give at "
                f"most {MOST_STEPS}, or use a NumericalRatingCriterion"
            )
        return self

    @model_serializer(mode="wrap")
    def _write(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out a range that only repeats the scale."""
        written: dict[str, Any] = {"type": self.kind, **handler(self)}
        if self.scale and self.rating == BoundInt(min_val=self.rating.min_val, max_val=self.rating.max_val):
            written.pop("rating", None)
        return written

    @property
    def anchors(self) -> Mapping[int, str]:
        """Return descriptions by rating, lowest first."""
        return {item.val: item.description for item in self.scale}

    def render(self, shown: Shown | None = None) -> str:
        """Return the name, the requirement, the range, and the meaning of its points."""
        lines = [super().render(shown), f"Rating scale: {self.rating.min_val} to {self.rating.max_val}"]
        return "\n".join([*lines, *(f"{val}: {text}" for val, text in self.anchors.items())])
