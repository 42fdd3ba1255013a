"""Criteria that ask for written feedback, which is not scored."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, ClassVar

from autorubric.criteria.base import BaseCriterion, Shown, register_kind
from autorubric.criteria.declaration import entries
from autorubric.criteria.fields import EvalField, TextField
from autorubric.criteria.values import Answer, Level
from autorubric.support.objects import Json

_WHOLE = "narrative"


@register_kind("narrative")
class NarrativeCriterion(BaseCriterion):
    """Written feedback; it has no value and never counts towards a score, whatever its weight.

    The votes keep the texts from all judges in a panel; the decision shows the first.

    Attributes:
        sections: Topic of each feedback section, by key; None for a single text, `narrative`.
    """

    level: ClassVar[Level] = "text"

    sections: Annotated[dict[str, str], entries("sections")] | None = None

    @cached_property
    def eval_fields(self) -> dict[str, EvalField]:
        """A text field for each section, or the single field `narrative`."""
        return {key: TextField() for key in self.sections or (_WHOLE,)}

    def _describe_fields(self) -> list[str]:
        asks = super()._describe_fields()
        return asks if self.sections is None else ["the key of each section (its text)", asks[-1]]

    def _code(self, fields: Mapping[str, Json]) -> Json:
        return fields[_WHOLE] if self.sections is None else dict(fields)

    def _complete_reply(self, given: Json) -> Json:
        return {_WHOLE: given} if isinstance(given, str) and self.sections is None else given

    def parse_truth(self, raw: Json) -> Answer | None:
        """Parse a label as feedback; text such as "cannot assess" does not count as an abstention."""
        if isinstance(raw, str) and self.sections is None:
            return super().read({_WHOLE: raw})
        return super().parse_truth(raw)

    def render(self, shown: Shown | None = None) -> str:
        """Return the name, the requirement, and the sections."""
        if self.sections is None:
            return super().render(shown)
        lines = (f"- {key}: {text}" for key, text in self.sections.items())
        return "\n".join([super().render(shown), "Sections:", *lines])
