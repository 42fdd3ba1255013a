"""Fields of a judge's reply (`EvalField`), which are declared as attributes of a criterion."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator

from autorubric.errors import ReplyError
from autorubric.support.field_types import FiniteFloat
from autorubric.support.json_text import EXPLANATIONS, unwrapped
from autorubric.support.names import clean_name, fold_name, match_name
from autorubric.support.objects import Json

FieldSpec: TypeAlias = tuple[Any, Any]
"""A type and its pydantic `Field(...)`, in the form that `pydantic.create_model` accepts."""

_YES_NO = {
    **dict.fromkeys(("met", "pass", "passed", "1.0"), True),
    **dict.fromkeys(("unmet", "fail", "failed", "0.0"), False),
}

MOST_STEPS: Final = 1001
"""Maximum number of integers that form a scale; more integers are a numeric range."""

_SCALAR_TYPES: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool}


def _unless_boolean(given: Any) -> Any:
    if isinstance(given, bool):
        raise ValueError(f"the value must be a number; got {given!r}")
    return given


_Whole = Annotated[int, BeforeValidator(_unless_boolean, json_schema_input_type=int)]
_StrictFloat = Annotated[FiniteFloat, Field(strict=True)]


def _scalar_type(given: Any) -> Any:
    scalar = _SCALAR_TYPES.get(given, given) if isinstance(given, str) else given
    if scalar in _SCALAR_TYPES.values():
        return scalar
    raise ValueError(f"the type must be one of {', '.join(_SCALAR_TYPES)}; got {given!r}")


ScalarType = Annotated[
    type,
    BeforeValidator(_scalar_type, json_schema_input_type=Literal["str", "int", "float", "bool"]),
    PlainSerializer(lambda kind: kind.__name__, return_type=str),
]


class EvalField(BaseModel, ABC):
    """Base class of evaluation fields, each of which defines a corresponding pydantic field.

    Attributes:
        measures: Whether replies have a position in [0, 1]; `position` and `at` convert to and from it.
        description: The judge's instructions for this field.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    measures: ClassVar[bool] = False

    description: str | None = None

    @abstractmethod
    def get_field(self) -> FieldSpec:
        """Return the `(type, Field(...))` pair for `pydantic.create_model`."""

    def normalize(self, given: Json) -> Json:
        """Convert a reply or label to the field's standard form; return unknown values unchanged."""
        return given

    def position(self, given: Any) -> float | None:
        """Return the position of a reply in [0, 1], or None if the field has no positions."""
        return None

    def allowed_text(self) -> str:
        """Return a description of the allowed values; empty if any value is allowed."""
        return ""

    def at(self, position: float) -> Json:
        """Return the value at a position in [0, 1], in the field's units, or None if it has no positions."""
        return None

    def listed_replies(self) -> tuple[Json, ...]:
        """Return the allowed replies, or an empty tuple if they cannot be listed."""
        return ()

    def steps(self) -> tuple[Json, ...]:
        """Return the replies of an ordered scale, lowest first; empty if they cannot be listed."""
        return ()


class _Bounded(EvalField):
    measures: ClassVar[bool] = True

    min_val: Any
    max_val: Any

    @model_validator(mode="after")
    def _check_range(self) -> Self:
        if self.min_val >= self.max_val:
            raise ValueError(f"min_val {self.min_val} must be less than max_val {self.max_val}")
        if self.max_val - self.min_val == math.inf:
            raise ValueError(f"the range from {self.min_val} to {self.max_val} is too wide for a float")
        return self

    def normalize(self, given: Json) -> Json:
        """Return a number, or text without invisible characters; a boolean as text, which is rejected."""
        # Pydantic would read a boolean as 0 or 1.
        return clean_name(str(given)) if isinstance(given, bool | str) else given

    def position(self, given: Any) -> float | None:
        return float((given - self.min_val) / (self.max_val - self.min_val))

    def at(self, position: float) -> Json:
        """Return `min_val + position * (max_val - min_val)`, which need not be an integer."""
        return self.min_val + position * (self.max_val - self.min_val)


class BoundInt(_Bounded):
    """A field for an integer in the inclusive range from `min_val` to `max_val`."""

    min_val: _Whole
    max_val: _Whole

    def get_field(self) -> FieldSpec:
        return int, Field(description=self.description, ge=self.min_val, le=self.max_val)

    def allowed_text(self) -> str:
        return f"a whole number from {self.min_val} to {self.max_val}"

    def at(self, position: float) -> Json:
        """Return `min_val + position * (max_val - min_val)`, which need not be an integer."""
        raw = super().at(position)
        return round(raw) if math.isclose(raw, round(raw), abs_tol=1e-9) else raw

    def steps(self) -> tuple[Json, ...]:
        """Return every integer in the range; empty if there are too many for a scale."""
        many = self.max_val - self.min_val >= MOST_STEPS
        return () if many else tuple(range(self.min_val, self.max_val + 1))


class BoundFloat(_Bounded):
    """A field for a number in the inclusive range from `min_val` to `max_val`."""

    min_val: _StrictFloat
    max_val: _StrictFloat

    def get_field(self) -> FieldSpec:
        return float, Field(
            description=self.description, ge=self.min_val, le=self.max_val, allow_inf_nan=False
        )

    def allowed_text(self) -> str:
        return f"a number from {self.min_val:g} to {self.max_val:g}"


def wrapped_answer(given: Mapping[str, Json], keys: Collection[str]) -> list[Mapping[str, Json]]:
    """Return the object in a reply that has the keys, after those that wrap it; by default the reply."""
    wanted = {*keys} - EXPLANATIONS - {"criterion_name"} or keys
    held: list[Mapping[str, Json]] = [*unwrapped(given)] or [given]
    at = (at for at, one in enumerate(held) if any(match_name(str(key), wanted) for key in one))
    return held[: next(at, 0) + 1]


def unwrap_reply(given: Mapping[str, Json], keys: Collection[str]) -> Mapping[str, Json]:
    """Return a reply with its keys as declared; keys in another case, or in a wrapped object, match."""
    reply = wrapped_answer(given, keys)[-1]
    found: dict[str, Json] = {"reason": given["reason"]} if reply is not given and "reason" in given else {}
    found |= {key: reply[key] for key in keys if key in reply}
    for key, value in reply.items():
        own = match_name(str(key), keys) or key
        if own not in EXPLANATIONS and fold_name(str(found.get(own, value))) != fold_name(str(value)):
            raise ReplyError(f"the reply has keys that differ only in case: {', '.join(map(str, reply))}")
        found.setdefault(own, value)
    return found


def says_yes(given: Json) -> bool:
    """Return whether a reply to a yes-or-no question means yes: true, "yes", "true" or 1."""
    if isinstance(given, str):
        return fold_name(given) in ("true", "yes", "1")
    return given is True or (isinstance(given, (int, float)) and given == 1)


class TextField(EvalField):
    """A field for free text."""

    def get_field(self) -> FieldSpec:
        return str, Field(description=self.description)


EVIDENCE: Final = TextField(description="the evidence, in a sentence or two")
"""The usual explanation of an answer."""


class BoolField(EvalField):
    """A field for a yes-or-no answer."""

    measures: ClassVar[bool] = True

    def get_field(self) -> FieldSpec:
        return bool, Field(description=self.description)

    def normalize(self, given: Json) -> Json:
        """Convert words such as MET, pass or fail to a boolean; pydantic converts yes, no, 1 and 0."""
        return _YES_NO.get(fold_name(given), given.strip()) if isinstance(given, str) else given

    def allowed_text(self) -> str:
        return "true or false"

    def position(self, given: Any) -> float | None:
        return 1.0 if given else 0.0

    def listed_replies(self) -> tuple[Json, ...]:
        return (False, True)


class ChoiceField(EvalField):
    """A field for one of several strings.

    Attributes:
        choices: The allowed strings: at least two, all different and none blank.
    """

    choices: tuple[str, ...]

    @model_validator(mode="after")
    def _check_choices(self) -> ChoiceField:
        if len(set(self.choices)) != len(self.choices) or len(self.choices) < 2:
            raise ValueError(f"choices must be at least two different strings; got {self.choices!r}")
        if not all(choice.strip() for choice in self.choices):
            raise ValueError(f"choices must not contain a blank string; got {self.choices!r}")
        return self

    def get_field(self) -> FieldSpec:
        return Literal[self.choices], Field(description=self.description)

    def normalize(self, given: Json) -> Json:
        """Return the matching choice, ignoring case and surrounding whitespace."""
        return (match_name(given, self.choices) or given) if isinstance(given, str) else given

    def allowed_text(self) -> str:
        return f"one of {', '.join(self.choices)}"

    def listed_replies(self) -> tuple[Json, ...]:
        return self.choices


class DictField(EvalField):
    """A field for a mapping of arbitrary names to values of one type.

    Attributes:
        value_type: Type of the values: `str`, `int`, `float` or `bool`.
    """

    value_type: ScalarType = Field(default="str", validate_default=True)

    def get_field(self) -> FieldSpec:
        return dict[str, _element(self.value_type)], Field(description=self.description)  # type: ignore[misc]

    def allowed_text(self) -> str:
        return f"an object from names to {self.value_type.__name__}"


class ListField(EvalField):
    """A field for a list of values of one type.

    Attributes:
        item_type: Type of the values: `str`, `int`, `float` or `bool`.
    """

    item_type: ScalarType = Field(default="str", validate_default=True)

    def get_field(self) -> FieldSpec:
        kind = list[_element(self.item_type)]  # type: ignore[misc, valid-type]
        return kind, Field(description=self.description, default_factory=list)

    def allowed_text(self) -> str:
        return f"a list of {self.item_type.__name__}"


def _element(kind: type) -> Any:
    """Return a scalar type without values that JSON cannot represent, such as NaN and infinities."""
    return FiniteFloat if kind is float else kind
