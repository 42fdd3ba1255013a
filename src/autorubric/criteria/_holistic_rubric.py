"""Criteria that assign one of several described levels to the whole text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from autorubric.criteria._base import BaseCriterion, Shown
from autorubric.criteria._fields import BoundInt, ChoiceField, EvalField, TextField
from autorubric.criteria._registry import register_kind
from autorubric.values import Answer, Json, Level


class RubricLevel(BaseModel):
    """A level of a holistic rubric.

    Attributes:
        name: Name that the judge chooses.
        index: Rank among the levels, as a consecutive integer.
        description: Description of a text at this level.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, pattern=r"\S")
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
        names = [level.name.strip().casefold() for level in levels]
        repeated = sorted(name for name, count in Counter(names).items() if count > 1)
        if repeated:
            raise ValueError(f"level names must be unique; repeated: {', '.join(map(repr, repeated))}")
        ordered = sorted(levels, key=lambda level: level.index)
        indices = [level.index for level in ordered]
        if indices != list(range(indices[0], indices[0] + len(indices))):
            raise ValueError(f"level indices must be consecutive integers; got {indices}")
        for level in ordered:
            if any(
                level.name.strip().removesuffix(".0") == str(other.index)
                for other in ordered
                if other is not level
            ):
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
            "explanation": TextField(description="the evidence, in a sentence or two"),
        }

    def _asked_fields(self) -> dict[str, EvalField]:
        # The index follows from the level, and a model asked for both could contradict itself.
        return {name: field for name, field in super()._asked_fields().items() if name != "level_index"}

    def _wanted(self, name: str) -> str:
        # The prompt lists the levels above this line.
        return "level (the name of one level)" if name == "level" else super()._wanted(name)

    def _complete(self, evaluation: Any) -> None:
        meant = self._index_of(evaluation.level)
        if evaluation.level_index != meant:
            raise ValueError(
                f"level {evaluation.level!r} has index {meant}, but level_index is {evaluation.level_index}; "
                "they must agree"
            )

    def _index_of(self, name: str) -> int:
        return next(level.index for level in self.levels if level.name == name)

    def _code(self, fields: Mapping[str, Json]) -> Json:
        return fields["level"]

    @cached_property
    def _declared(self) -> tuple[Json, ...]:
        return tuple(level.name for level in self.levels)

    def read(self, reply: Json | BaseModel, shown: Shown | None = None) -> Answer:
        """Parse a reply (an evaluation, its dict, or a level's name or index) and return the level.

        Raises:
            ReplyError: If the level is unknown, or the name and the index do not match.
        """
        given = reply.model_dump() if isinstance(reply, BaseModel) else reply
        if self._says_cannot_assess(given):
            return super().read(given, shown)
        if not isinstance(given, Mapping):
            given = {**self._blank_texts(), "level": given}
        return super().read(self._with_both(given), shown)

    def _with_both(self, given: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return a reply completed with the declared name and the index of its level."""
        said = given.get("level", given.get("level_index"))
        named = {level.name.strip().casefold(): level for level in self.levels}
        numbered = {str(level.index): level for level in self.levels}
        word = str(said).strip().casefold()
        level = named.get(word) or numbered.get(word.removesuffix(".0"))
        if level is None:
            return given
        return {**given, "level": level.name, "level_index": given.get("level_index", level.index)}

    def render(self, shown: Shown | None = None) -> str:
        """Return the name, the requirement, and the levels with their descriptions."""
        lines = (f"{level.index}: {level.name} - {level.description}" for level in self.levels)
        return "\n".join([super().render(shown), "Levels:", *lines])
