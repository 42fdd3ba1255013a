"""Criteria that ask for written feedback, which is not scored."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar

from pydantic import BaseModel, field_validator

from autorubric.criteria.base import BaseCriterion, FrozenDict, Shown
from autorubric.criteria.declaration import check_keys
from autorubric.criteria.fields import EvalField, TextField
from autorubric.criteria.registry import register_kind
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

    sections: dict[str, str] | None = None

    @field_validator("sections")
    @classmethod
    def _check_sections(cls, sections: dict[str, str] | None) -> dict[str, str] | None:
        if sections is not None:
            check_keys(sections, "sections")
        return sections if sections is None else FrozenDict(sections)

    @cached_property
    def eval_fields(self) -> dict[str, EvalField]:
        """A text field for each section, or the single field `narrative`."""
        return {key: TextField() for key in self.sections or (_WHOLE,)}

    def _describe_fields(self) -> list[str]:
        asks = super()._describe_fields()
        return asks if self.sections is None else ["the key of each section (its text)", asks[-1]]

    def _code(self, fields: Mapping[str, Json]) -> Json:
        return fields[_WHOLE] if self.sections is None else dict(fields)

    def read(self, reply: Json | BaseModel, shown: Shown | None = None) -> Answer:
        """Parse a reply (an evaluation, its dict or, if there are no sections, plain text) into feedback.

        Raises:
            ReplyError: If a section is missing.
        """
        whole = isinstance(reply, str) and self.sections is None and not self._says_cannot_assess(reply)
        return super().read({_WHOLE: reply} if whole else reply, shown)

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
