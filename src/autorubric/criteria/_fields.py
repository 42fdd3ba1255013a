"""EvalFields: the fields of a judge's reply, declared as attributes of a criterion."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator

from autorubric.values import Json

_BoundT = TypeVar("_BoundT", "BoundInt", "BoundFloat")

FieldSpec: TypeAlias = tuple[Any, Any]
"""A type and its pydantic `Field(...)`, as `pydantic.create_model` takes them."""

_YES_NO = {
    **dict.fromkeys(("met", "pass", "passed", "1.0"), True),
    **dict.fromkeys(("unmet", "fail", "failed", "0.0"), False),
}

MOST_STEPS: Final = 1001
"""As many whole numbers are still a scale; more are a range of numbers."""

_SCALAR_TYPES: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool}


def _unless_boolean(given: Any) -> Any:
    if isinstance(given, bool):
        raise ValueError(f"{given!r} is not a number")
    return given


_Whole = Annotated[int, BeforeValidator(_unless_boolean, json_schema_input_type=int)]
_FiniteFloat = Annotated[float, Field(allow_inf_nan=False)]


def _scalar_type(given: Any) -> Any:
    if isinstance(given, str) and given in _SCALAR_TYPES:
        return _SCALAR_TYPES[given]
    if given in _SCALAR_TYPES.values():
        return given
    raise ValueError(f"{given!r} is not a scalar type; give one of {', '.join(_SCALAR_TYPES)}")


ScalarType = Annotated[
    type,
    BeforeValidator(_scalar_type, json_schema_input_type=Literal["str", "int", "float", "bool"]),
    PlainSerializer(lambda kind: kind.__name__, return_type=str),
]


class EvalField(BaseModel, ABC):
    """One field of an evaluation; it defines the corresponding pydantic field.

    Attributes:
        measures: Whether a reply has a position on [0, 1]; then `position` and `at` convert it.
        description: The instruction to the judge for this field.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    measures: ClassVar[bool] = False

    description: str | None = None

    @abstractmethod
    def get_field(self) -> FieldSpec:
        """Return the `(type, Field(...))` pair for `pydantic.create_model`."""

    def reading(self, given: Json) -> Json:
        """Return the value of a reply or label that is written in other words than the field's own."""
        return given

    def position(self, given: Any) -> float | None:
        """Return the position of a reply on [0, 1]; None for a field that measures nothing."""
        return None

    def allowed(self) -> str:
        """Return the allowed values in words; empty if any value is allowed."""
        return ""

    def at(self, position: float) -> Json:
        """Return the value at a position on [0, 1], in the field's units; None without positions."""
        return None

    def declared(self) -> tuple[Json, ...]:
        """Return the allowed replies if they are few; otherwise empty."""
        return ()

    def steps(self) -> tuple[Json, ...]:
        """Return the replies on an ordered scale, lowest first; empty if they cannot be listed."""
        return ()


class BoundInt(EvalField):
    """A whole number from `min_val` to `max_val`, inclusive."""

    measures: ClassVar[bool] = True

    min_val: _Whole
    max_val: _Whole

    @model_validator(mode="after")
    def _check_range(self) -> BoundInt:
        return _ordered_bounds(self)

    def get_field(self) -> FieldSpec:
        """Return an `int` within the bounds."""
        return int, Field(description=self.description, ge=self.min_val, le=self.max_val)

    def reading(self, given: Json) -> Json:
        """Return the number; a boolean is none."""
        return _no_boolean(given)

    def allowed(self) -> str:
        """Return the bounds."""
        return f"a whole number from {self.min_val} to {self.max_val}"

    def position(self, given: Any) -> float | None:
        """`(given - min_val) / (max_val - min_val)`."""
        return float((given - self.min_val) / (self.max_val - self.min_val))

    def at(self, position: float) -> Json:
        """`min_val + position * (max_val - min_val)`; a mean of whole numbers need not be one."""
        raw = self.min_val + position * (self.max_val - self.min_val)
        return round(raw) if math.isclose(raw, round(raw), abs_tol=1e-9) else raw

    def steps(self) -> tuple[Json, ...]:
        """Return every whole number within the bounds, unless they are too many for a scale."""
        many = self.max_val - self.min_val >= MOST_STEPS
        return () if many else tuple(range(self.min_val, self.max_val + 1))


class BoundFloat(EvalField):
    """A number from `min_val` to `max_val`, inclusive."""

    measures: ClassVar[bool] = True

    min_val: float = Field(strict=True, allow_inf_nan=False)
    max_val: float = Field(strict=True, allow_inf_nan=False)

    @model_validator(mode="after")
    def _check_range(self) -> BoundFloat:
        return _ordered_bounds(self)

    def get_field(self) -> FieldSpec:
        """Return a finite `float` within the bounds."""
        return float, Field(
            description=self.description, ge=self.min_val, le=self.max_val, allow_inf_nan=False
        )

    def reading(self, given: Json) -> Json:
        """Return the number; a boolean is none."""
        return _no_boolean(given)

    def allowed(self) -> str:
        """Return the bounds."""
        return f"a number from {self.min_val:g} to {self.max_val:g}"

    def position(self, given: Any) -> float | None:
        """`(given - min_val) / (max_val - min_val)`."""
        return float((given - self.min_val) / (self.max_val - self.min_val))

    def at(self, position: float) -> Json:
        """`min_val + position * (max_val - min_val)`."""
        return self.min_val + position * (self.max_val - self.min_val)


def _ordered_bounds(bounds: _BoundT) -> _BoundT:
    if bounds.min_val >= bounds.max_val:
        raise ValueError(f"min_val {bounds.min_val} is not below max_val {bounds.max_val}")
    if bounds.max_val - bounds.min_val == math.inf:
        raise ValueError(f"from {bounds.min_val} to {bounds.max_val} is further than a float can hold")
    return bounds


def _no_boolean(given: Json) -> Json:
    """Return the reply; a boolean becomes text, because pydantic would read true as 1."""
    return str(given) if isinstance(given, bool) else given


def says_yes(given: Json) -> bool:
    """Return whether a reply to an optional yes-or-no question is yes, in any word for it."""
    if isinstance(given, str):
        return given.strip().casefold() in ("true", "yes", "1")
    return given is True or (isinstance(given, (int, float)) and given == 1)


class TextField(EvalField):
    """A text."""

    def get_field(self) -> FieldSpec:
        """Return a `str`."""
        return str, Field(description=self.description)


class BoolField(EvalField):
    """Yes or no."""

    measures: ClassVar[bool] = True

    def get_field(self) -> FieldSpec:
        """Return a `bool`."""
        return bool, Field(description=self.description)

    def reading(self, given: Json) -> Json:
        """Read MET, pass and passed as true and their opposites as false; pydantic reads yes, no, 1 and 0."""
        return _YES_NO.get(given.strip().casefold(), given.strip()) if isinstance(given, str) else given

    def allowed(self) -> str:
        """True or false."""
        return "true or false"

    def position(self, given: Any) -> float | None:
        """1 for true, 0 for false."""
        return 1.0 if given else 0.0

    def declared(self) -> tuple[Json, ...]:
        """False and true."""
        return (False, True)


class ChoiceField(EvalField):
    """One of several texts.

    Attributes:
        choices: The allowed texts: at least two, all different.
    """

    choices: tuple[str, ...]

    @model_validator(mode="after")
    def _check_choices(self) -> ChoiceField:
        if len(set(self.choices)) != len(self.choices) or len(self.choices) < 2:
            raise ValueError(f"choices {self.choices!r} are not two or more different texts")
        if not all(choice.strip() for choice in self.choices):
            raise ValueError(f"choices {self.choices!r} hold a blank one; give each a text")
        return self

    def get_field(self) -> FieldSpec:
        """Return a `Literal` of the choices."""
        return Literal[self.choices], Field(description=self.description)

    def reading(self, given: Json) -> Json:
        """Return the matching choice, ignoring case and surrounding white space."""
        if not isinstance(given, str) or given in self.choices:
            return given
        folded = given.strip().casefold()
        meant = [choice for choice in self.choices if choice.strip().casefold() == folded]
        return meant[0] if len(meant) == 1 else given

    def allowed(self) -> str:
        """Return the choices."""
        return f"one of {', '.join(self.choices)}"

    def declared(self) -> tuple[Json, ...]:
        """Return the choices."""
        return self.choices


class DictField(EvalField):
    """Named values of one type, with any names.

    Attributes:
        value_type: `str`, `int`, `float` or `bool`.
    """

    value_type: ScalarType = Field(default="str", validate_default=True)

    def get_field(self) -> FieldSpec:
        """Return a `dict` from text to `value_type`."""
        return dict[str, _element(self.value_type)], Field(description=self.description)  # type: ignore[misc]

    def allowed(self) -> str:
        """Return the type of the values."""
        return f"an object from names to {self.value_type.__name__}"


class ListField(EvalField):
    """Several values of one type.

    Attributes:
        item_type: `str`, `int`, `float` or `bool`.
    """

    item_type: ScalarType = Field(default="str", validate_default=True)

    def get_field(self) -> FieldSpec:
        """Return a `list` of `item_type`, empty by default."""
        kind = list[_element(self.item_type)]  # type: ignore[misc, valid-type]
        return kind, Field(description=self.description, default_factory=list)

    def allowed(self) -> str:
        """Return the type of the values."""
        return f"a list of {self.item_type.__name__}"


def _element(kind: type) -> Any:
    """Return a scalar type as JSON represents it, which excludes NaN and infinities."""
    return _FiniteFloat if kind is float else kind
