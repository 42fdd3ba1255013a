"""Every kind of criterion that the contract suite runs over; a new kind is one more row."""

from __future__ import annotations

from collections.abc import Callable

from autorubric.criteria import (
    BaseCriterion,
    BoolField,
    BoundFloat,
    BoundInt,
    ChoiceField,
    DictField,
    ListField,
    TextField,
    register_kind,
)
from tests.doubles import binary, choice


@register_kind("test_warmth")
class Warmth(BaseCriterion):
    """A kind as a user writes one: a rating and an explanation."""

    rating: BoundInt = BoundInt(min_val=1, max_val=7, description="1 is cold, 7 is warm")
    explanation: TextField = TextField()


@register_kind("test_share")
class Share(BaseCriterion):
    """A kind with a number."""

    share: BoundFloat = BoundFloat(min_val=-1.0, max_val=3.0)


@register_kind("test_polite")
class Polite(BaseCriterion):
    """A kind with a yes or no."""

    level = "binary"

    polite: BoolField = BoolField()
    why: TextField = TextField()


@register_kind("test_tone")
class Tone(BaseCriterion):
    """A kind that sorts and does not measure."""

    level = "nominal"

    tone: ChoiceField = ChoiceField(choices=("warm", "cold", "neutral"))


@register_kind("test_counts")
class Counts(BaseCriterion):
    """A kind with an open dict, which measures nothing."""

    counts: DictField = DictField(value_type=float)


@register_kind("test_findings")
class Findings(BaseCriterion):
    """A kind with a list, which measures nothing."""

    findings: ListField = ListField(item_type=int)


@register_kind("test_two_marks")
class TwoMarks(BaseCriterion):
    """A kind with two measures and a text."""

    form: BoundInt = BoundInt(min_val=0, max_val=10)
    content: BoundInt = BoundInt(min_val=0, max_val=10)
    explanation: TextField = TextField()


@register_kind("test_remarks")
class Remarks(BaseCriterion):
    """A kind of text alone."""

    level = "text"

    remark: TextField = TextField()


NOMINAL = {"red": 0.2, "green": 0.9, "blue": 0.9}

KINDS: dict[str, Callable[..., BaseCriterion]] = {
    "binary": lambda **fields: binary(**fields),
    "penalty": lambda **fields: binary(**{"weight": -5.0, **fields}),
    "ordinal": lambda **fields: choice(**fields),
    "nominal": lambda **fields: choice(values=NOMINAL, scale_type="nominal", **fields),
    "with NA": lambda **fields: choice(na="does not apply", **fields),
    "bound int": lambda **fields: Warmth(**{"name": "warmth", **fields}),
    "bound float": lambda **fields: Share(**{"name": "share", **fields}),
    "bool": lambda **fields: Polite(**{"name": "polite", **fields}),
    "choice": lambda **fields: Tone(**{"name": "tone", **fields}),
    "dict": lambda **fields: Counts(**{"name": "counts", **fields}),
    "list": lambda **fields: Findings(**{"name": "findings", **fields}),
    "two marks": lambda **fields: TwoMarks(**{"name": "marks", **fields}),
    "text": lambda **fields: Remarks(**{"name": "remarks", **fields}),
}

REPLIES: dict[str, dict[str, object]] = {
    "binary": {"verdict": "MET", "reason": "it has"},
    "penalty": {"verdict": "UNMET", "reason": "it has not"},
    "ordinal": {"label": "fair", "reason": "so-so"},
    "nominal": {"label": "blue", "reason": "the sky"},
    "with NA": {"label": "does not apply", "reason": "no basis"},
    "bound int": {"rating": 4, "explanation": "neither"},
    "bound float": {"share": 1.0},
    "bool": {"polite": True, "why": "please"},
    "choice": {"tone": "cold"},
    "dict": {"counts": {"a": 1.5}},
    "list": {"findings": [1, 2]},
    "two marks": {"form": 5, "content": 10, "explanation": "good content"},
    "text": {"remark": "fine"},
}
"""A good reply for each kind."""
