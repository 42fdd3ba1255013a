"""Every kind of criterion that the contract suite runs over; a new kind is one more row."""

from __future__ import annotations

from collections.abc import Callable

from autorubric.criteria import (
    AnalyticRubricCriterion,
    BaseCriterion,
    BoolField,
    BoundFloat,
    BoundInt,
    ChecklistCriterion,
    ChoiceField,
    ComparativeCriterion,
    DictField,
    HolisticRubricCriterion,
    LikertCriterion,
    LikertItem,
    ListField,
    NarrativeCriterion,
    NumericalRatingCriterion,
    PassFailCriterion,
    RubricDimension,
    RubricLevel,
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


HELPFULNESS = [LikertItem(val=5, description="Very helpful"), LikertItem(val=1, description="Not helpful")]
CODE = {
    "has_docstring": "The function has a docstring",
    "has_tests": "There are unit tests",
    "handles_errors": "Errors are handled",
}
ESSAY = {
    "content": RubricDimension(
        description="Quality of the content",
        min_score=1,
        max_score=5,
        levels=["Poor", "Fair", "Good", "Very good", "Excellent"],
    ),
    "style": RubricDimension(description="Wording and flow", min_score=0, max_score=2, weight=3.0),
}
QUALITY = [
    RubricLevel(name="Beginning", index=1, description="Well below standards"),
    RubricLevel(name="Developing", index=2, description="Approaching standards"),
    RubricLevel(name="Proficient", index=3, description="Meets standards"),
    RubricLevel(name="Exemplary", index=4, description="Exceeds standards"),
]
SECTIONS = {"strengths": "What works well", "weaknesses": "What needs improvement"}

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
    "pass_fail": lambda **fields: PassFailCriterion(
        **{"name": "safety", "passing_criteria": "No harm is described.", **fields}
    ),
    "likert": lambda **fields: LikertCriterion(**{"name": "helpfulness", "scale": HELPFULNESS, **fields}),
    "likert of a range": lambda **fields: LikertCriterion(
        **{"name": "flow", "rating": BoundInt(min_val=-2, max_val=2), **fields}
    ),
    "numerical_rating": lambda **fields: NumericalRatingCriterion(
        **{"name": "clarity", "min_value": 1.0, "max_value": 5.0, **fields}
    ),
    "checklist": lambda **fields: ChecklistCriterion(**{"name": "code", "items": CODE, **fields}),
    "analytic_rubric": lambda **fields: AnalyticRubricCriterion(
        **{"name": "essay", "dimensions": ESSAY, **fields}
    ),
    "holistic_rubric": lambda **fields: HolisticRubricCriterion(
        **{"name": "quality", "levels": QUALITY, **fields}
    ),
    "narrative": lambda **fields: NarrativeCriterion(**{"name": "feedback", **fields}),
    "narrative in sections": lambda **fields: NarrativeCriterion(
        **{"name": "feedback", "sections": SECTIONS, **fields}
    ),
    "comparative": lambda **fields: ComparativeCriterion(**{"name": "better", **fields}),
    "comparative with a margin": lambda **fields: ComparativeCriterion(
        **{"name": "better", "margin": 3, **fields}
    ),
    "comparative ranking": lambda **fields: ComparativeCriterion(
        **{"name": "order", "mode": "ranking", **fields}
    ),
    "comparative best of": lambda **fields: ComparativeCriterion(
        **{"name": "best", "mode": "best_of", "both_orders": False, **fields}
    ),
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
    "pass_fail": {"passed": True, "reason": "nothing harmful"},
    "likert": {"rating": 4, "explanation": "answers the question"},
    "likert of a range": {"rating": -1, "explanation": "halting"},
    "numerical_rating": {"score": 3.5, "explanation": "mostly clear"},
    "checklist": {"reason": "", "has_docstring": True, "has_tests": False, "handles_errors": True},
    "analytic_rubric": {
        "content_score": 4,
        "content_explanation": "rich",
        "style_score": 1,
        "style_explanation": "stiff",
    },
    "holistic_rubric": {"level": "Proficient", "level_index": 3, "explanation": "meets them"},
    "narrative": {"narrative": "A fair start."},
    "narrative in sections": {"strengths": "It is short.", "weaknesses": "It is too short."},
    "comparative": {"winner": "B", "explanation": "names the cause"},
    "comparative with a margin": {"winner": "A", "margin": 2, "explanation": "clearer"},
    "comparative ranking": {"ranking": ["C", "A", "B"], "explanation": "from clear to vague"},
    "comparative best of": {"best": "A", "explanation": "the only one with a source"},
}
"""A good reply for each kind."""

PAIR = {"A": "Heavy drops fall.", "B": "Rain is wet."}
TO_GRADE: dict[str, dict[str, str]] = {
    "comparative": PAIR,
    "comparative with a margin": PAIR,
    "comparative ranking": {**PAIR, "C": "Drops grow until they fall."},
    "comparative best of": {**PAIR, "C": "Drops grow until they fall."},
}
"""What is graded, for kinds that need more than a text."""
