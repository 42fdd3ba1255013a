"""The criterion contract: everything that is special about a kind of criterion stands in its class."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SkipValidation,
    ValidationError,
    create_model,
    model_validator,
)

from autorubric._files import shortened
from autorubric.criteria._checks import check_name
from autorubric.criteria._fields import EvalField, FieldSpec, TextField
from autorubric.errors import ReplyError
from autorubric.values import Answer, Json, Level, Submission


def _name_or_function(given: Any) -> Any:
    if inspect.iscoroutinefunction(given):
        raise ValueError(
            f"{shortened(given)} is async; a check is a plain function. Use it as a judge instead"
        )
    if (isinstance(given, str) and given) or callable(given):
        return given
    raise ValueError(f"{shortened(given)} is no check; give a function of the text, or the name of one")


CheckSpec = Annotated[
    str | SkipValidation[Callable[[str], Any]],
    BeforeValidator(_name_or_function),
    PlainSerializer(check_name, return_type=str),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """How a criterion was shown to a judge in one call.

    Attributes:
        order: Positions of the options in the order shown; empty for the declared order.
    """

    order: tuple[int, ...] = ()


class BaseCriterion(BaseModel):
    """One thing to judge. Kinds declare their reply as EvalField attributes and set `level`.

    Attributes:
        name: Its name in reports, truth and metrics; a rubric names the nameless.
        requirement: What is judged; `description` is another name for it.
        weight: Its share of the score; negative for a penalty.
        check: A function of the text, or the registered name of one, that judges instead of the panel.
        aggregation: How its votes are combined, where not as the grader says.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    level: ClassVar[Level] = "interval"
    kind: ClassVar[str | None] = None

    name: str | None = Field(default=None, min_length=1)
    requirement: str | None = None
    description: str | None = Field(default=None, exclude=True, repr=False)
    weight: float = Field(default=10.0, allow_inf_nan=False)
    check: CheckSpec | None = None
    aggregation: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _unite_requirement_and_description(cls, given: Any) -> Any:
        if not isinstance(given, Mapping) or not {"requirement", "description"} & set(given):
            return given
        requirement, description = given.get("requirement"), given.get("description")
        if None not in (requirement, description) and requirement != description:
            raise ValueError("requirement and description are two names for one text; give one of them")
        text = requirement if requirement is not None else description
        return {**given, "requirement": text, "description": text}

    @cached_property
    def evaluation_schema(self) -> type[BaseModel]:
        """The pydantic model of one evaluation; carries `criterion_name` and the declared fields."""
        fields: dict[str, Any] = {"criterion_name": (str, Field(default=self.name or ""))}
        fields.update(self._evaluation_fields())
        schema: type[BaseModel] = create_model(f"{self._schema_name}Evaluation", **fields)
        return schema

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
    def _called(self) -> str:
        """What errors call it."""
        return self.name or self.requirement or type(self).__name__

    @property
    def _schema_name(self) -> str:
        return "_".join((self.name or "").split())

    @property
    def eval_fields(self) -> dict[str, EvalField]:
        """The declared reply fields by name, in order."""
        given = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: field for name, field in given.items() if isinstance(field, EvalField)}

    def _evaluation_fields(self) -> dict[str, FieldSpec]:
        return {name: field.get_field() for name, field in self.eval_fields.items()}

    @cached_property
    def wire_schema(self) -> dict[str, Json]:
        """The JSON schema sent to a model: explanations first, no names, every field required.

        Criteria of the same kind and shape give equal schemas, so that a shared prompt prefix survives.
        """
        properties = self.evaluation_schema.model_json_schema()["properties"]
        del properties["criterion_name"]
        texts = [name for name, field in self.eval_fields.items() if isinstance(field, TextField)]
        ordered = {name: properties[name] for name in [*texts, *(n for n in properties if n not in texts)]}
        ordered["cannot_assess"] = {"type": "boolean"}
        for spec in ordered.values():
            spec.pop("title", None)
            spec.pop("default", None)
        return object_schema(ordered)

    @property
    def strict(self) -> bool:
        """Whether `wire_schema` names every key, so that a provider may enforce it."""
        return _is_closed(self.wire_schema)

    @property
    def measures(self) -> bool:
        """Whether answers have a value; a criterion that measures nothing never enters a score."""
        if type(self).value_of is not BaseCriterion.value_of:
            return True
        fields = any(field.measures for field in self.eval_fields.values())
        return fields or any(answer.value is not None for answer in self.answers())

    @cached_property
    def _declared(self) -> tuple[Json, ...]:
        measuring = self._measuring_fields()
        return self.eval_fields[measuring[0]].declared() if len(measuring) == 1 else ()

    def answers(self) -> tuple[Answer, ...]:
        """The declared answers from the first to the last; empty where they cannot be listed."""
        return tuple(replace(self.read(code), reason="", evaluation=None) for code in self._declared)

    def answer_at(self, value: float) -> Answer:
        """The answer at a value on [0, 1] that need not be a declared one, as a mean; in its own units."""
        measuring = self._measuring_fields()
        own = type(self).value_of is not BaseCriterion.value_of
        code = self.eval_fields[measuring[0]].at(value) if len(measuring) == 1 and not own else None
        return Answer(code=code, value=value, label=None if code is None else str(code))

    def show(self, submission: Submission, rng: random.Random | None) -> Shown:
        """How to show this criterion in one call; `rng` is None where nothing is to be shuffled."""
        return Shown()

    def render(self, shown: Shown | None = None) -> str:
        """The criterion as a judge reads it."""
        head = self.name or "criterion"
        return f"{head}: {self.requirement}" if self.requirement else head

    def instruction(self) -> str:
        """One line on how to answer, for the prompt."""
        wanted = "; ".join(self._wanted(name) for name in self.wire_schema["properties"])
        return f"Answer with: {wanted} (true only if the text gives no basis to judge)."

    def _wanted(self, name: str) -> str:
        """A field of the reply, what may stand there and what it means; not every server shows the schema."""
        field = self.eval_fields.get(name)
        told = ": ".join(part for part in (field.allowed(), field.description or "") if part) if field else ""
        return f"{name} ({told})" if told else name

    def value_of(self, evaluation: Any) -> float | None:
        """Where an evaluation stands on [0, 1]: by default the mean position of its measuring fields."""
        placed = [
            place
            for name, field in self.eval_fields.items()
            if (place := field.position(getattr(evaluation, name))) is not None
        ]
        return sum(placed) / len(placed) if placed else None

    def read(self, reply: Json | BaseModel, shown: Shown | None = None) -> Answer:
        """The answer that a reply gives.

        Args:
            reply: An evaluation, its dict, or the bare value of the one measuring field.
            shown: How the criterion was shown.

        Raises:
            ReplyError: The reply is no answer to this criterion; the message can be sent back to the judge.
        """
        given = reply.model_dump() if isinstance(reply, BaseModel) else reply
        if isinstance(given, Mapping) and given.get("cannot_assess") is True:
            return Answer(code=None, cannot_assess=True, reason=str(given.get("reason") or ""))
        evaluation = self._validated(given)
        fields = {k: v for k, v in evaluation.model_dump().items() if k != "criterion_name"}
        code = self._code(fields)
        bare = not isinstance(code, Mapping)
        return Answer(
            code=code,
            value=self.value_of(evaluation),
            label=str(code) if bare else None,
            index=self._declared.index(code) if bare and code in self._declared else None,
            reason=" ".join(str(fields[name]) for name in self._blank_texts()),
            evaluation=fields,
        )

    def _code(self, fields: Mapping[str, Json]) -> Json:
        """The bare value of the one measuring field, else all of them; the fields where none measures."""
        measuring = self._measuring_fields()
        if len(measuring) == 1 and not isinstance(fields[measuring[0]], Mapping):
            return fields[measuring[0]]
        return {name: fields[name] for name in measuring} if measuring else dict(fields)

    def _measuring_fields(self) -> list[str]:
        return [name for name, field in self.eval_fields.items() if not isinstance(field, TextField)]

    def _blank_texts(self) -> dict[str, str]:
        return {name: "" for name, field in self.eval_fields.items() if isinstance(field, TextField)}

    def _validated(self, given: Json) -> BaseModel:
        if not isinstance(given, Mapping):
            measuring = self._measuring_fields()
            if len(measuring) != 1:
                wanted = ", ".join(self.eval_fields)
                raise ReplyError(f"{self._called}: {shortened(given)} is no object with {wanted}")
            given = {**self._blank_texts(), measuring[0]: given}
        try:
            return self.evaluation_schema.model_validate(
                {k: v for k, v in given.items() if k not in ("criterion_name", "cannot_assess")}
            )
        except ValidationError as fault:
            raise ReplyError(f"{self._called}: {reply_faults(fault)}") from None

    def parse_truth(self, raw: Json) -> Answer | None:
        """The answer that a ground-truth label stands for; None for a missing label.

        Raises:
            ReplyError: The label is none of this criterion's.
        """
        if raw is None:
            return None
        # A label, as a stored vote's answer, needs no explanation beside it.
        return self.read({**self._blank_texts(), **raw} if isinstance(raw, Mapping) else raw)

    def conservative(self) -> Answer:
        """The answer that helps the score least: the worst for a positive weight, the best for a penalty.

        Its value is None where the criterion measures nothing: then no answer helps or harms.
        """
        placed = [answer for answer in self.answers() if answer.value is not None]
        if not placed:
            worst = 0.0 if self.weight >= 0 else 1.0
            return self.answer_at(worst) if self.measures else Answer(code=None)
        pick = min if self.weight >= 0 else max
        return pick(placed, key=lambda answer: answer.value or 0.0)

    def asked(self) -> dict[str, Json]:
        """What a vote on this criterion depends on: everything but weight and aggregation."""
        return self.model_dump(mode="json", exclude={"weight", "aggregation"})

    def __getstate__(self) -> dict[Any, Any]:
        """The fields alone: schemas are classes made on the way, which another process makes for itself."""
        state = super().__getstate__()
        return {**state, "__dict__": self._own_fields()}

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with other fields, unvalidated; it makes its own schemas."""
        copied = super().model_copy(update=update, deep=deep)
        fields = copied._own_fields()
        copied.__dict__.clear()
        copied.__dict__.update(fields)
        return copied

    def _own_fields(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in type(self).model_fields}

    def named(self, name: str) -> BaseCriterion:
        """The same criterion under a name of its own."""
        fields = {field: getattr(self, field) for field in type(self).model_fields}
        return type(self).model_validate({**fields, "name": name})


def object_schema(properties: Mapping[str, Json]) -> dict[str, Json]:
    """The JSON schema of an object with exactly these properties, all required."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _is_closed(schema: Json) -> bool:
    """Whether every object in a JSON schema, at any depth, allows the keys that it names and no others."""
    if isinstance(schema, Mapping):
        own = schema.get("type") != "object" or schema.get("additionalProperties") is False
        return own and all(_is_closed(inner) for inner in schema.values())
    return not isinstance(schema, list) or all(_is_closed(inner) for inner in schema)


def reply_faults(fault: ValidationError) -> str:
    """A validation error as one line that a judge can act on."""
    return "; ".join(
        f"{'.'.join(map(str, error['loc'])) or 'reply'}: {error['msg']}" for error in fault.errors()
    )
