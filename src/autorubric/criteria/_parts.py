"""Parts of criteria: checklist items, and dimensions with integer scores."""

from __future__ import annotations

from typing import ClassVar

from autorubric.criteria._base import BaseCriterion
from autorubric.criteria._fields import BoolField, BoundInt
from autorubric.values import Json, Level


class TickBox(BaseCriterion):
    """A checklist item, which is present or missing."""

    level: ClassVar[Level] = "binary"

    there: BoolField = BoolField()

    def _label(self, code: Json) -> str:
        return "yes" if code else "no"


class WholeScore(BaseCriterion):
    """A dimension of an analytic rubric, scored with an integer on an ordinal scale."""

    level: ClassVar[Level] = "ordinal"

    score: BoundInt
