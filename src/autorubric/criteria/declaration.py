"""The declaration of a criterion: its fields, and the reply that its `EvalField`s define."""

from __future__ import annotations

import inspect
import keyword
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final, Never, Self, TypeVar, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    SkipValidation,
    ValidationError,
    create_model,
    model_serializer,
    model_validator,
)
from pydantic_core import CoreSchema

from autorubric.criteria.conditions import Gate, When, check_name
from autorubric.criteria.fields import EvalField, FieldSpec, TextField
from autorubric.criteria.transcript_checks import TranscriptCheck
from autorubric.criteria.values import Level
from autorubric.errors import ArgumentError
from autorubric.support.field_types import FiniteFloat, NonBlankText
from autorubric.support.objects import REASON_LENGTH, Json
from autorubric.support.reading_errors import short_repr, validation_text

_TAKEN: Final = frozenset({"criterion_name", "cannot_assess", "reason", "id"})
_OF_MODELS: Final = frozenset(dir(BaseModel))


def check_unique(values: Iterable[str | int], what: str) -> None:
    repeated: list[Any] = [value for value, count in Counter(values).items() if count > 1]
    if repeated:
        raise ValueError(f"{what} must be unique; repeated: {', '.join(map(repr, sorted(repeated)))}")


def entries(
    what: str, *, taken: Sequence[str] = (), fields: Callable[[str], Sequence[str]] = lambda key: (key,)
) -> AfterValidator:
    """Return a validator that freezes a mapping, whose keys must be able to name fields of an evaluation."""

    def check(given: Mapping[str, Any]) -> FrozenDict[str, Any]:
        if not given:
            raise ValueError(f"{what} must not be empty; add at least one")
        for key in given:
            if fault := _key_fault(key, fields(key), {*_TAKEN, *taken}):
                raise ValueError(f"{what}: the key {key!r} {fault}; use another name")
        return FrozenDict(given)

    return AfterValidator(check)


def field_fault(name: str, *, text: bool) -> str | None:
    """Return the reason why a criterion class cannot declare a field of this name; None if it can."""
    if name.startswith("_"):
        return "starts with an underscore, which pydantic excludes from replies"
    if name in _TAKEN and not (text and name == "reason"):
        return f"conflicts with the field {name!r} of every evaluation"
    if name in _OF_MODELS:
        return f"conflicts with the attribute {name!r} of every evaluation"
    return None


def _key_fault(key: str, fields: Sequence[str], taken: set[str]) -> str | None:
    if key.startswith("_"):
        return "starts with an underscore"
    if keyword.iskeyword(key):
        return "is a reserved word of Python"
    if not key.isidentifier():
        return "must consist of letters, digits and underscores and must not start with a digit"
    for field in fields:
        if field in taken:
            return f"conflicts with the field {field!r} of the evaluation"
        if field in _OF_MODELS:
            return f"conflicts with the attribute {field!r} of every evaluation"
    return None


KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class FrozenDict(dict[KeyT, ValueT]):
    """An immutable, hashable dict."""

    def _refuse(self, *_: Any, **__: Any) -> Never:
        raise TypeError("criteria are immutable; create a new criterion instead")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)


_NUMBER_LENGTH: Final = 24


def reason_schema() -> dict[str, Json]:
    return {"type": "string", "maxLength": REASON_LENGTH}


def object_schema(properties: Mapping[str, Json]) -> dict[str, Json]:
    """Return the JSON schema of an object with exactly these properties, all required."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def is_closed(schema: Json) -> bool:
    """Return whether every object in a JSON schema, at any depth, allows only its declared keys."""
    if isinstance(schema, Mapping):
        own = schema.get("type") != "object" or schema.get("additionalProperties") is False
        return own and all(is_closed(inner) for inner in schema.values())
    return not isinstance(schema, list) or all(is_closed(inner) for inner in schema)


def longest_reply(schema: Json) -> int | None:
    """Return the maximum length of a reply to a schema in characters, ignoring escapes; None if unbounded."""
    if "enum" in schema:
        return max(len(str(value)) for value in schema["enum"]) + 2
    if "anyOf" in schema:
        lengths = [longest_reply(one) for one in schema["anyOf"]]
        return None if None in lengths else max(length or 0 for length in lengths)
    match schema.get("type"):
        case "string":
            return schema["maxLength"] + 2 if "maxLength" in schema else None
        case "integer" | "number":
            return _NUMBER_LENGTH
        case "boolean":
            return len("false")
        case "array" if "maxItems" in schema and "items" in schema:
            item = longest_reply(schema["items"])
            return None if item is None else schema["maxItems"] * (item + len(", ")) + 2
        case "object" if schema.get("additionalProperties") is False:
            inner = [longest_reply(one) for one in schema["properties"].values()]
            names = sum(len(name) + len('"":,') for name in schema["properties"])
            return None if None in inner else sum(one or 0 for one in inner) + names + 2
    return None


def _name_or_function(given: Any) -> Any:
    if inspect.iscoroutinefunction(given):
        what = f"a check must be a synchronous function; got {short_repr(given)}"
        raise ValueError(f"{what}. Use async functions as judges")
    if isinstance(given, Mapping):
        try:
            return TranscriptCheck.model_validate(given)
        except ValidationError as error:
            raise ValueError(validation_text(error, TranscriptCheck, given)) from None
    if (isinstance(given, str) and given) or callable(given):
        return given
    raise ValueError(f"a check must be a function, a registered name or a mapping; got {short_repr(given)}")


CheckSpec = Annotated[
    str | TranscriptCheck | SkipValidation[Callable[[str], Any]],
    BeforeValidator(_name_or_function),
    PlainSerializer(
        # `final_state: null` is set, but equals the default.
        lambda x: x.model_dump(exclude_unset=True) if isinstance(x, TranscriptCheck) else check_name(x)
    ),
]


class _Evaluation(BaseModel):
    """Base class of evaluation schemas; a criterion's own field may be called `model_…`."""

    model_config = ConfigDict(protected_namespaces=())


def _reply_fields(cls: type[BaseModel]) -> dict[str, type[EvalField]]:
    """Return the `EvalField`s of a class, including those that pydantic treats as private."""
    declared: dict[str, Any] = {name: field.annotation for name, field in cls.model_fields.items()}
    declared |= {name: type(private.default) for name, private in cls.__private_attributes__.items()}
    return {k: kind for k, kind in declared.items() if isinstance(kind, type) and issubclass(kind, EvalField)}


class Declaration(BaseModel):
    """The fields of a criterion and the schema of its replies; `BaseCriterion` interprets the replies."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    level: ClassVar[Level] = "interval"
    kind: ClassVar[str | None] = None
    takes_bare: ClassVar[bool] = False

    name: NonBlankText | None = None
    requirement: str | None = None
    description: str | None = Field(default=None, exclude=True, repr=False)
    weight: FiniteFloat = 10.0
    gate: Gate | None = None
    bonus: bool = False
    when: When | None = None
    check: CheckSpec | None = None
    aggregation: str | None = None

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        for name in Declaration.model_fields:
            if isinstance(cls.model_fields[name].default, EvalField):
                what = f"{cls.__name__}.{name}: every criterion already has a field {name!r}"
                raise ArgumentError(f"{what}; use another name for the reply field")
        for name, kind in _reply_fields(cls).items():
            fault = field_fault(name, text=issubclass(kind, TextField))
            if any(name in vars(base) for base in cls.__mro__[1:]):
                fault = fault or f"hides the attribute {name!r} of every criterion"
            if fault:
                what = f"{cls.__name__}.{name}: the field {fault}"
                raise ArgumentError(f"{what}; use another name for the reply field")

    @model_validator(mode="before")
    @classmethod
    def _drop_type(cls, given: Any) -> Any:
        if not isinstance(given, Mapping) or cls.kind is None or "type" not in given:
            return given
        if given["type"] != cls.kind:
            raise ValueError(f"type of a {cls.__name__} must be {cls.kind!r}; got {given['type']!r}")
        return {key: value for key, value in given.items() if key != "type"}

    @model_serializer(mode="wrap")
    def _write(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Return the fields, with the `type` tag for kinds other than the plain criterion."""
        fields: dict[str, Any] = handler(self)
        return fields if self.kind is None else {"type": self.kind, **fields}

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler(core)
        if cls.kind is not None:
            handler.resolve_ref_schema(schema).setdefault("properties", {})["type"] = {"const": cls.kind}
        return schema

    @model_validator(mode="before")
    @classmethod
    def _unite_requirement_and_description(cls, given: Any) -> Any:
        if not isinstance(given, Mapping) or not {"requirement", "description"} & set(given):
            return given
        requirement, description = given.get("requirement"), given.get("description")
        if None not in (requirement, description) and requirement != description:
            raise ValueError("requirement and description are aliases, but their texts differ; set only one")
        text = requirement if requirement is not None else description
        return {**given, "requirement": text, "description": text}

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        if self.weight < 0 and self.gate is not None:
            raise ValueError("a penalty cannot have a gate; rephrase it with a positive weight")
        if self.weight < 0 and self.bonus:
            raise ValueError("a penalty cannot be a bonus; remove bonus, or use a positive weight")
        if isinstance(self.check, TranscriptCheck) and self.level != "binary":
            advice = "remove the check, or the options, points or levels"
            raise ValueError(f"a check of tool calls is met or not; {advice}")
        return self

    @cached_property
    def evaluation_schema(self) -> type[BaseModel]:
        """The pydantic model of one evaluation, with `criterion_name` and the declared fields."""
        fields: dict[str, Any] = {"criterion_name": (str, Field(default=self.name or ""))}
        fields.update(self._evaluation_fields())

        def complete(evaluation: Any) -> Any:
            self._complete(evaluation)
            return evaluation

        name, check = f"{self._schema_name}Evaluation", cast(Any, model_validator(mode="after")(complete))
        made: Any = create_model(name, __base__=_Evaluation, __validators__={"complete": check}, **fields)
        return cast(type[BaseModel], made)

    def _complete(self, evaluation: Any) -> None:
        """Fill in derived fields of an evaluation; raise a ValueError if fields contradict each other."""

    @cached_property
    def batch_evaluation_schema(self) -> type[BaseModel]:
        """The pydantic model of several evaluations of this criterion, in order."""
        return create_model(
            f"{self._schema_name}BatchEvaluation",
            criterion_name=(str, Field(default=self.name or "")),
            evaluations=(
                list[self.evaluation_schema],  # type: ignore[name-defined]
                Field(description="The evaluations, in order"),
            ),
        )

    @property
    def _title(self) -> str:
        return self.name or self.requirement or type(self).__name__

    @property
    def _schema_name(self) -> str:
        return "_".join((self.name or "").split())

    @cached_property
    def eval_fields(self) -> dict[str, EvalField]:
        """The declared reply fields by name, in order."""
        given = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: field for name, field in given.items() if isinstance(field, EvalField)}

    def _evaluation_fields(self) -> dict[str, FieldSpec]:
        return {name: field.get_field() for name, field in self.eval_fields.items()}

    def _measuring_fields(self) -> list[str]:
        return [name for name, field in self.eval_fields.items() if not isinstance(field, TextField)]

    def _blank_texts(self) -> dict[str, str]:
        return {name: "" for name, field in self.eval_fields.items() if isinstance(field, TextField)}

    @cached_property
    def wire_schema(self) -> dict[str, Json]:
        """The JSON schema sent to a model, with explanations first and every field required.

        The schema does not contain the criterion's name, so that similar criteria share a prompt prefix.
        """
        asked: dict[str, Any] = {name: field.get_field() for name, field in self._fields_to_ask().items()}
        ordered = create_model("Wire", __base__=_Evaluation, **asked).model_json_schema()["properties"]
        if not self._blank_texts() and "reason" not in ordered:
            ordered = {"reason": reason_schema(), **ordered}
        if self._measuring_fields():
            # If the text itself is the answer, its length is not limited.
            for name in {*self._blank_texts(), "reason"} & ordered.keys():
                ordered[name]["maxLength"] = REASON_LENGTH
        ordered["cannot_assess"] = {"type": "boolean"}
        for spec in ordered.values():
            spec.pop("title", None)
            spec.pop("default", None)
        return object_schema(ordered)

    def _fields_to_ask(self) -> dict[str, EvalField]:
        """Return the fields that a model fills in, with explanations first."""
        fields = self.eval_fields
        texts = {name: field for name, field in fields.items() if isinstance(field, TextField)}
        return {**texts, **fields}

    @cached_property
    def strict(self) -> bool:
        """Whether `wire_schema` allows only declared keys, so that a provider can enforce it."""
        return is_closed(self.wire_schema)

    def instruction(self) -> str:
        """Return one line for the prompt that explains the expected answer."""
        asks = "; ".join(self._describe_fields())
        return f"Answer with: {asks} (true only if the text gives no basis to judge)."

    def _describe_fields(self) -> list[str]:
        """Describe the fields of the reply in order, with `cannot_assess` last; similar ones are combined."""
        return [self._describe_field(name) for name in self.wire_schema["properties"]]

    def _describe_field(self, name: str) -> str:
        """Describe the allowed values and meaning of a reply field, since some servers hide the schema."""
        field = self._fields_to_ask().get(name)
        meaning = ": ".join(filter(None, (field.allowed_text(), field.description))) if field else ""
        return f"{name} ({meaning})" if meaning else name

    def vote_fields(self) -> dict[str, Json]:
        """Return the fields that affect a vote, without those for scoring and aggregation."""
        fields = self.model_dump(mode="json", exclude={"weight", "gate", "bonus", "when", "aggregation"})
        fields.pop("type", None)
        return fields if self.kind is None else {**fields, "type": self.kind, "asks": self.instruction()}

    def __getstate__(self) -> dict[Any, Any]:
        """Return only the fields, since another process can rebuild the schema classes."""
        return {**super().__getstate__(), "__dict__": self._own_fields()}

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with updated fields, which are not validated; cached schemas are not copied."""
        copied = super().model_copy(update=update, deep=deep)
        fields = copied._own_fields()
        copied.__dict__.clear()
        copied.__dict__.update(fields)
        return copied

    def _own_fields(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in type(self).model_fields}
