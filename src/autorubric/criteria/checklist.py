"""Criteria that list items which a text contains or lacks."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar

from pydantic import Field

from autorubric.criteria.base import BaseCriterion, Shown, answer_without_parts, register_kind, show_shuffled
from autorubric.criteria.declaration import entries
from autorubric.criteria.fields import BoolField, EvalField, FieldSpec, TextField
from autorubric.criteria.values import Answer, Level, Submission
from autorubric.errors import ReplyError
from autorubric.support.objects import Json, is_number
from autorubric.support.reading_errors import nearest_key, short_repr

_MISSING = "missing_items"


class TickBox(BaseCriterion):
    """A checklist item, which is present or missing."""

    level: ClassVar[Level] = "binary"

    there: BoolField = BoolField()

    def _label(self, code: Json) -> str:
        return "yes" if code else "no"


@register_kind("checklist")
class ChecklistCriterion(BaseCriterion):
    """A checklist; the value is the proportion of items that the text contains.

    A panel decides each item separately, as a binary criterion (by default by majority; a tie counts as
    missing, or as present if the weight is negative), and the value is computed from these decisions. Metrics
    also have a binary row for each item, `name/key`.

    A label maps every key to yes or no, lists the keys that are present, or is the proportion as a number in
    [0, 1], which leaves the individual items unlabelled.

    Attributes:
        items: Item descriptions by key; the keys become fields of the evaluation.
    """

    level: ClassVar[Level] = "interval"

    items: Annotated[dict[str, str], entries("items", taken=(_MISSING,))]

    @cached_property
    def eval_fields(self) -> dict[str, EvalField]:
        """A yes-or-no field for each key."""
        return {key: BoolField() for key in self.items}

    def _evaluation_fields(self) -> dict[str, FieldSpec]:
        missing: Any = Field(default_factory=list, description="Keys of the items that are missing")
        return {**super()._evaluation_fields(), _MISSING: (list[str], missing)}

    def _fields_to_ask(self) -> dict[str, EvalField]:
        evidence = TextField(description="the evidence for each item, in a few words")
        return {"reason": evidence, **super()._fields_to_ask()}

    def _describe_fields(self) -> list[str]:
        reason, *_, last = super()._describe_fields()
        return [reason, "the key of each item (true or false)", last]

    def _complete(self, evaluation: Any) -> None:
        missing = [key for key in self.items if not getattr(evaluation, key)]
        if _MISSING in evaluation.model_fields_set and set(evaluation.missing_items) != set(missing):
            what = f"missing_items is {evaluation.missing_items}, but the answers say {missing}"
            raise ValueError(f"{what}; they must agree")
        evaluation.missing_items = missing

    def _code(self, fields: Mapping[str, Json]) -> Json:
        return dict(fields)

    @cached_property
    def part_fields(self) -> Mapping[str, BaseCriterion]:
        """A binary criterion for each item."""
        return {key: self._part(TickBox, key, text) for key, text in self.items.items()}

    def _complete_reply(self, given: Json) -> Json:
        if not isinstance(given, list):
            return given
        for key in given:
            if not isinstance(key, str) or key not in self.items:
                hint = nearest_key(str(key), list(self.items))
                raise ReplyError(f"{self._title}: unknown item {short_repr(key)}; {hint}")
        return {key: key in given for key in self.items}

    def parse_truth(self, raw: Json) -> Answer | None:
        """Parse a label, in any form that `read` accepts or as a proportion in [0, 1], into an answer.

        Raises:
            ReplyError: If the label has none of these forms.
        """
        if is_number(raw) and 0.0 <= raw <= 1.0:
            return answer_without_parts(raw, float(raw))
        return super().parse_truth(raw)

    def show(self, submission: Submission, rng: random.Random | None) -> Shown:
        """Return a random order of the items, or the declared order if `rng` is None."""
        return show_shuffled(len(self.items), rng)

    def render(self, shown: Shown | None = None) -> str:
        """Return the name, the requirement, and the items in the order shown."""
        lines = (f"- {key}: {text}" for key, text in Shown.arrange(self.items.items(), shown))
        return "\n".join([super().render(shown), "Items, each true if the text has it:", *lines])
