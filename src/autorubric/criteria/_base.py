"""The criterion contract: everything that is special about a kind of criterion stands in its class."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    SkipValidation,
    ValidationError,
    create_model,
    model_validator,
)

from autorubric.criteria._checks import check_name
from autorubric.criteria._fields import EvalField, FieldSpec, TextField
from autorubric.errors import ReplyError
from autorubric.values import Answer, Json, Level, Submission

CheckSpec = Annotated[
    str | SkipValidation[Callable[[str], Any]],
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

    def answers(self) -> tuple[Answer, ...]:
        """The declared answers from the first to the last; empty where they cannot be listed."""
        return ()

    def show(self, submission: Submission, rng: random.Random | None) -> Shown:
        """How to show this criterion in one call; `rng` is None where nothing is to be shuffled."""
        return Shown()

    def render(self, shown: Shown | None = None) -> str:
        """The criterion as a judge reads it."""
        head = self.name or "criterion"
        return f"{head}: {self.requirement}" if self.requirement else head

    def instruction(self) -> str:
        """One line on how to answer, for the prompt."""
        names = ", ".join(self.wire_schema["properties"])
        return f"Answer with: {names}. Set cannot_assess to true only if the text gives no basis to judge."

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
        measuring = self._measuring_fields()
        fields = {k: v for k, v in evaluation.model_dump().items() if k != "criterion_name"}
        code = fields[measuring[0]] if len(measuring) == 1 else fields
        texts = [str(fields[n]) for n, field in self.eval_fields.items() if isinstance(field, TextField)]
        return Answer(
            code=code,
            value=self.value_of(evaluation),
            label=str(code) if len(measuring) == 1 else None,
            reason=" ".join(texts),
            evaluation=fields,
        )

    def _measuring_fields(self) -> list[str]:
        return [name for name, field in self.eval_fields.items() if not isinstance(field, TextField)]

    def _validated(self, given: Json) -> BaseModel:
        if not isinstance(given, Mapping):
            measuring = self._measuring_fields()
            if len(measuring) != 1:
                raise ReplyError(f"{self.name}: {given!r} is no object with {', '.join(self.eval_fields)}")
            blank = {n: "" for n, field in self.eval_fields.items() if isinstance(field, TextField)}
            given = {**blank, measuring[0]: given}
        try:
            return self.evaluation_schema.model_validate(
                {k: v for k, v in given.items() if k not in ("criterion_name", "cannot_assess")}
            )
        except ValidationError as fault:
            raise ReplyError(f"{self.name}: {reply_faults(fault)}") from None

    def parse_truth(self, raw: Json) -> Answer | None:
        """The answer that a ground-truth label stands for; None for a missing label.

        Raises:
            ReplyError: The label is none of this criterion's.
        """
        return None if raw is None else self.read(raw)

    def conservative(self) -> Answer:
        """The answer that helps the score least: the worst for a positive weight, the best for a penalty."""
        placed = [answer for answer in self.answers() if answer.value is not None]
        if not placed:
            return Answer(code=None, value=0.0 if self.weight >= 0 else 1.0)
        pick = min if self.weight >= 0 else max
        return pick(placed, key=lambda answer: answer.value or 0.0)

    def asked(self) -> dict[str, Json]:
        """What a vote on this criterion depends on: everything but weight and aggregation."""
        return self.model_dump(mode="json", exclude={"weight", "aggregation"})

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


def reply_faults(fault: ValidationError) -> str:
    """A validation error as one line that a judge can act on."""
    return "; ".join(
        f"{'.'.join(map(str, error['loc'])) or 'reply'}: {error['msg']}" for error in fault.errors()
    )
