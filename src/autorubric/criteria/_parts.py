"""Parts of criteria: an item of a checklist, and a dimension with a whole-number score."""

from __future__ import annotations

from typing import ClassVar

from autorubric.criteria._base import BaseCriterion
from autorubric.criteria._fields import BoolField, BoundInt
from autorubric.values import Json, Level


class TickBox(BaseCriterion):
    """An item of a checklist: there or missing."""

    level: ClassVar[Level] = "binary"

    there: BoolField = BoolField()

    def _label(self, code: Json) -> str:
        return "yes" if code else "no"


class WholeScore(BaseCriterion):
    """A dimension of a rubric: a whole number on a scale with an order."""

    level: ClassVar[Level] = "ordinal"

    score: BoundInt
