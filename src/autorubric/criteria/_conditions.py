"""Gates, which cap the score of a group, and conditions, which make a criterion depend on another one."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, model_serializer, model_validator

from autorubric.values import Json

# A mean of equal values may be smaller than these values because of rounding errors.
_SLACK: Final = 1e-9

_Share = Annotated[float, Field(ge=0.0, le=1.0, strict=True)]


class Gate(BaseModel):
    """A minimum value of a criterion; if the criterion does not reach it, its group's score is capped.

    The string `"required"` means the default gate: the criterion must be met, or the group's score is 0.

    Attributes:
        at_least: Value on (0, 1] that the criterion must reach.
        cap: Maximum score of the group on [0, 1] if the criterion does not reach `at_least`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    at_least: _Share = Field(default=1.0, gt=0.0)
    cap: _Share = 0.0

    def passed(self, value: float) -> bool:
        """Return whether a value reaches `at_least`, up to rounding errors."""
        return value >= self.at_least - _SLACK

    @model_validator(mode="before")
    @classmethod
    def _read_word(cls, given: Any) -> Any:
        if given == "required":
            return {}
        if isinstance(given, str):
            raise ValueError(f"gate must be 'required' or a mapping with at_least and cap; got {given!r}")
        return given

    @model_serializer
    def _written(self) -> Json:
        return "required" if self == Gate() else {"at_least": self.at_least, "cap": self.cap}


class When(BaseModel):
    """A condition under which a criterion applies: another criterion reaches a value.

    A plain criterion name means that this criterion must be met.

    Attributes:
        criterion: Name of the other criterion.
        at_least: Value on [0, 1] that the other criterion must reach.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    criterion: str = Field(min_length=1)
    at_least: _Share = 1.0

    def holds(self, value: float | None) -> bool:
        """Return whether the other criterion's value reaches `at_least`; False if it has no value."""
        return value is not None and value >= self.at_least - _SLACK

    @model_validator(mode="before")
    @classmethod
    def _read_name(cls, given: Any) -> Any:
        return {"criterion": given} if isinstance(given, str) else given

    @model_serializer
    def _written(self) -> Json:
        alone = self.at_least == 1.0
        return self.criterion if alone else {"criterion": self.criterion, "at_least": self.at_least}
