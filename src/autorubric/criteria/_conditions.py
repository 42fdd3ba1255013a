"""Gates and conditions: a criterion that caps its group, or depends on another criterion."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, model_serializer, model_validator

from autorubric.values import Json

# A mean of equal values may fall short of them by a rounding error.
_SLACK: Final = 1e-9

_Share = Annotated[float, Field(ge=0.0, le=1.0, strict=True)]


class Gate(BaseModel):
    """A demand on a criterion's value; where it is missed, the enclosing group's score is capped.

    `"required"` stands for the default one: the criterion must be met, or the group scores 0.

    Attributes:
        at_least: The value on (0, 1] that the criterion must reach.
        cap: The most, on [0, 1], that the group scores where it does not.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    at_least: _Share = Field(default=1.0, gt=0.0)
    cap: _Share = 0.0

    def passed(self, value: float) -> bool:
        """Return whether a value reaches it, rounding errors aside."""
        return value >= self.at_least - _SLACK

    @model_validator(mode="before")
    @classmethod
    def _read_word(cls, given: Any) -> Any:
        if given == "required":
            return {}
        if isinstance(given, str):
            raise ValueError(f"{given!r} is not a gate; give 'required', or at_least and cap")
        return given

    @model_serializer
    def _written(self) -> Json:
        return "required" if self == Gate() else {"at_least": self.at_least, "cap": self.cap}


class When(BaseModel):
    """A condition: the criterion applies only where another one reaches a value.

    A name alone stands for the criterion of that name being met.

    Attributes:
        criterion: The other criterion's name.
        at_least: The value on [0, 1] that it must reach.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    criterion: str = Field(min_length=1)
    at_least: _Share = 1.0

    def holds(self, value: float | None) -> bool:
        """Return whether the other criterion's value reaches it; without a value it does not."""
        return value is not None and value >= self.at_least - _SLACK

    @model_validator(mode="before")
    @classmethod
    def _read_name(cls, given: Any) -> Any:
        return {"criterion": given} if isinstance(given, str) else given

    @model_serializer
    def _written(self) -> Json:
        alone = self.at_least == 1.0
        return self.criterion if alone else {"criterion": self.criterion, "at_least": self.at_least}
