"""Criteria with described levels, for the whole text (holistic) or per dimension (analytic)."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from autorubric.criteria.base import BaseCriterion, Shown, answer_without_parts, register_kind, show_shuffled
from autorubric.criteria.declaration import check_unique, entries
from autorubric.criteria.fields import (
    EVIDENCE,
    MOST_STEPS,
    BoundInt,
    ChoiceField,
    EvalField,
    FieldSpec,
    TextField,
)
from autorubric.criteria.values import Answer, Level, Submission
from autorubric.support.field_types import NonBlankText, PositiveFloat
from autorubric.support.names import fold_name
from autorubric.support.objects import Json, is_number


class RubricLevel(BaseModel):
    """A level of a holistic rubric.

    Attributes:
        name: Name that the judge chooses.
        index: Rank among the levels, as a consecutive integer.
        description: Description of a text at this level.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: NonBlankText
    index: int
    description: str


@register_kind("holistic_rubric")
class HolisticRubricCriterion(BaseCriterion):
    """A rating of the whole text on named levels; the value is `(index - lowest) / (highest - lowest)`.

    A model answers with the name of a level. If a reply also contains an index, it must match the name. A
    label can be a name or an index.

    Attributes:
        levels: The levels, lowest first, with consecutive indices.
    """

    level: ClassVar[Level] = "ordinal"

    # Users pass lists, which are stored as tuples.
    levels: Sequence[RubricLevel]

    @field_validator("levels")
    @classmethod
    def _check_levels(cls, levels: Sequence[RubricLevel]) -> tuple[RubricLevel, ...]:
        if len(levels) < 2:
            raise ValueError(f"levels must have at least two entries; got {len(levels)}")
        check_unique((fold_name(level.name) for level in levels), "level names")
        ordered = sorted(levels, key=lambda level: level.index)
        indices = [level.index for level in ordered]
        if indices != list(range(indices[0], indices[0] + len(indices))):
            raise ValueError(f"level indices must be consecutive integers; got {indices}")
        for level in ordered:
            others = [str(index) for index in indices if index != level.index]
            if level.name.strip().removesuffix(".0") in others:
                raise ValueError(
                    f"the level {level.name!r} has index {level.index}, but its name is the index of another "
                    f"level, so a reply of {level.name} would be ambiguous; rename the level"
                )
        return tuple(ordered)

    @cached_property
    def eval_fields(self) -> dict[str, EvalField]:
        """The fields `level`, `level_index` and `explanation`."""
        return {
            "level": ChoiceField(choices=tuple(level.name for level in self.levels)),
            "level_index": BoundInt(min_val=self.levels[0].index, max_val=self.levels[-1].index),
            "explanation": EVIDENCE,
        }

    def _fields_to_ask(self) -> dict[str, EvalField]:
        # The index follows from the level, and a model asked for both could contradict itself.
        return {name: field for name, field in super()._fields_to_ask().items() if name != "level_index"}

    def _describe_field(self, name: str) -> str:
        # The prompt lists the levels above this line.
        return "level (the name of one level)" if name == "level" else super()._describe_field(name)

    def _complete(self, evaluation: Any) -> None:
        meant = next(level.index for level in self.levels if level.name == evaluation.level)
        if evaluation.level_index != meant:
            what = f"level {evaluation.level!r} has index {meant}"
            raise ValueError(f"{what}, but level_index is {evaluation.level_index}; they must agree")

    def _code(self, fields: Mapping[str, Json]) -> Json:
        return fields["level"]

    @cached_property
    def _declared_codes(self) -> tuple[Json, ...]:
        return tuple(level.name for level in self.levels)

    def _complete_reply(self, given: Json) -> Json:
        if not isinstance(given, Mapping):
            given = {**self._blank_texts(), "level": given}
        named_level = given.get("level", given.get("level_index"))
        if named_level is None or isinstance(named_level, list | Mapping):
            return given
        named = {fold_name(level.name): level for level in self.levels}
        numbered = {str(level.index): level for level in self.levels}
        word = fold_name(str(named_level))
        level = named.get(word) or numbered.get(word.removesuffix(".0"))
        if level is None:
            return given
        return {**given, "level": level.name, "level_index": given.get("level_index", level.index)}

    def _meanings(self) -> Mapping[str, str]:
        return {level.name: level.description for level in self.levels}

    def render(self, shown: Shown | None = None) -> str:
        """Return the name, the requirement, and the levels with their descriptions."""
        lines = (f"{level.index}: {level.name} - {level.description}" for level in self.levels)
        return "\n".join([super().render(shown), "Levels:", *lines])


_OVERALL: Final = "overall_score"


class WholeScore(BaseCriterion):
    """A dimension of an analytic rubric, scored with an integer on an ordinal scale."""

    level: ClassVar[Level] = "ordinal"

    score: BoundInt
    names: tuple[str, ...] | None = None  # names of the scores, lowest first

    def _meanings(self) -> Mapping[str, str]:
        return {str(score): name for score, name in enumerate(self.names or (), start=self.score.min_val)}


class RubricDimension(BaseModel):
    """One dimension of an analytic rubric.

    Attributes:
        description: Description of the aspect to score.
        min_score: Lowest possible score.
        max_score: Highest possible score.
        levels: Names of the scores, lowest first; None if the scores have no names.
        weight: Weight of the dimension in the criterion's value.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    description: str
    min_score: int
    max_score: int
    levels: tuple[str, ...] | None = None
    weight: PositiveFloat = 1.0

    @model_validator(mode="after")
    def _check_scores(self) -> Self:
        if self.min_score >= self.max_score:
            raise ValueError(f"min_score {self.min_score} must be less than max_score {self.max_score}")
        points = self.max_score - self.min_score + 1
        if points > MOST_STEPS:
            raise ValueError(f"a dimension must have at most {MOST_STEPS} scores; got {points}")
        if self.levels is not None and len(self.levels) != points:
            raise ValueError(
                f"there are {len(self.levels)} levels for the {points} scores from {self.min_score} to "
                f"{self.max_score}; name every score, or omit levels"
            )
        if self.levels is not None and len(set(self.levels)) != points:
            raise ValueError(f"level names must be unique; got {self.levels!r}")
        return self

    @property
    def scale(self) -> BoundInt:
        """The scores as a field of an evaluation."""
        return BoundInt(min_val=self.min_score, max_val=self.max_score)

    def place(self, score: float) -> float:
        """Return the position of a score in the range, from 0 to 1."""
        return (score - self.min_score) / (self.max_score - self.min_score)


def _fields_of(key: str) -> tuple[str, str]:
    return f"{key}_score", f"{key}_explanation"


@register_kind("analytic_rubric")
class AnalyticRubricCriterion(BaseCriterion):
    """A rubric of several dimensions, each with an integer score.

    The value is the weighted mean of the scores, each rescaled to [0, 1]. `overall_score`, the weighted mean
    of the original scores, is computed, not read from a reply. A panel decides each dimension separately on
    an ordinal scale, and the value is computed from these decisions. Metrics also have an ordinal row for
    each dimension, `name/key`.

    A label maps every key (or `<key>_score`) to its score. If all dimensions have the same range, a label can
    also be the overall score as a number, which leaves the individual dimensions unlabelled.

    Attributes:
        dimensions: Dimensions by key; each adds the fields `<key>_score` and `<key>_explanation` to the
            evaluation.
    """

    level: ClassVar[Level] = "interval"

    dimensions: Annotated[
        dict[str, RubricDimension], entries("dimensions", taken=(_OVERALL,), fields=_fields_of)
    ]

    @field_validator("dimensions")
    @classmethod
    def _check_fields(cls, dimensions: dict[str, RubricDimension]) -> dict[str, RubricDimension]:
        for key in dimensions:
            for field in _fields_of(key):
                if field in dimensions:
                    what = f"dimensions: the key {field!r} conflicts with an evaluation field"
                    raise ValueError(f"{what} of the dimension {key!r}; use another name")
        return dimensions

    @cached_property
    def eval_fields(self) -> dict[str, EvalField]:
        """The score and explanation fields of each dimension."""
        fields: dict[str, EvalField] = {}
        for key, dimension in self.dimensions.items():
            fields |= zip(_fields_of(key), (dimension.scale, TextField()), strict=True)
        return fields

    @cached_property
    def part_weights(self) -> tuple[float, ...]:
        """The weights of the dimensions."""
        return tuple(dimension.weight for dimension in self.dimensions.values())

    def _evaluation_fields(self) -> dict[str, FieldSpec]:
        # The value in a reply is ignored.
        dropped = Annotated[float, BeforeValidator(lambda _: 0.0)]
        overall = Field(default=0.0, description="Weighted mean of the scores; computed")
        return {**super()._evaluation_fields(), _OVERALL: (dropped, overall)}

    def _fields_to_ask(self) -> dict[str, EvalField]:
        names = (name for key in self.dimensions for name in reversed(_fields_of(key)))
        return {name: self.eval_fields[name] for name in names}

    def _describe_fields(self) -> list[str]:
        key = next(iter(self.dimensions))
        score, explanation = _fields_of(key)
        each = f"for each dimension, as for {key}: {explanation}; {score} (whole, in its range)"
        return [each, super()._describe_fields()[-1]]

    def _complete(self, evaluation: Any) -> None:
        evaluation.overall_score = self._mean(evaluation, lambda _, score: float(score))

    def _mean(self, evaluation: Any, number_of: Callable[[RubricDimension, int], float]) -> float:
        scores = [(one, getattr(evaluation, f"{key}_score")) for key, one in self.dimensions.items()]
        total = sum(number_of(one, score) * one.weight for one, score in scores)
        return total / sum(self.part_weights)

    def value_of(self, evaluation: Any) -> float | None:
        """Return the weighted mean of `(score - min_score) / (max_score - min_score)`."""
        return self._mean(evaluation, RubricDimension.place)

    def _code(self, fields: Mapping[str, Json]) -> Json:
        return {name: given for name, given in fields.items() if name.endswith("_score")}

    def _reason(self, given: Json) -> str:
        fields = given if isinstance(given, Mapping) else {}
        reasons = {key: fields.get(f"{key}_explanation") for key in self.dimensions}
        texts = [f"{key}: {text}" for key, text in reasons.items() if text]
        return "; ".join(texts) or super()._reason(given)

    @cached_property
    def part_fields(self) -> Mapping[str, BaseCriterion]:
        """An ordinal criterion for each dimension."""
        return {
            f"{key}_score": self._part(WholeScore, key, one.description, score=one.scale, names=one.levels)
            for key, one in self.dimensions.items()
        }

    def parse_truth(self, raw: Json) -> Answer | None:
        """Parse a label (scores by key, an evaluation, or an overall score) and return the answer.

        Raises:
            ReplyError: If the label has none of these forms.
        """
        if isinstance(raw, Mapping):
            scores = {_fields_of(key)[0]: raw[key] for key in self.dimensions if key in raw}
            return super().parse_truth({**raw, **scores})
        ranges = {(one.min_score, one.max_score) for one in self.dimensions.values()}
        if is_number(raw) and len(ranges) == 1:
            value = next(iter(self.dimensions.values())).place(raw)
            if 0.0 <= value <= 1.0:
                return answer_without_parts(raw, value)
        return super().parse_truth(raw)

    def vote_fields(self) -> dict[str, Json]:
        """Return the fields that affect a vote; dimension weights are not included."""
        fields = super().vote_fields()
        for dimension in fields["dimensions"].values():
            del dimension["weight"]
        return fields

    def show(self, submission: Submission, rng: random.Random | None) -> Shown:
        """Return a random order of the dimensions, or the declared order if `rng` is None."""
        return show_shuffled(len(self.dimensions), rng)

    def render(self, shown: Shown | None = None) -> str:
        """Return the name, the requirement, and the dimensions with ranges and levels in the order shown."""
        lines = [super().render(shown), "Dimensions:"]
        for key, dimension in Shown.arrange(self.dimensions.items(), shown):
            lines.append(f"- {key} ({dimension.min_score} to {dimension.max_score}): {dimension.description}")
            named = enumerate(dimension.levels or (), start=dimension.min_score)
            lines += [f"  {score}: {name}" for score, name in named]
        return "\n".join(lines)
