"""Criteria: the requirements to judge and the form of the answers."""

from typing import TYPE_CHECKING

from autorubric._late import loading
from autorubric.criteria._base import AS_DECLARED, BaseCriterion, Shown
from autorubric.criteria._candidates import candidate_id
from autorubric.criteria._conditions import (
    Check,
    Gate,
    When,
    check_name,
    find_check,
    is_registered,
    qualified_name,
    register_check,
)
from autorubric.criteria._fields import (
    BoolField,
    BoundFloat,
    BoundInt,
    ChoiceField,
    DictField,
    EvalField,
    ListField,
    TextField,
)
from autorubric.criteria._identity import code_digest
from autorubric.criteria._plain import Criterion, CriterionOption
from autorubric.criteria._registry import (
    criterion_from_dict,
    criterion_to_dict,
    kind_of,
    register_kind,
    registered_kinds,
)
from autorubric.criteria._wire import longest_reply, object_schema

if TYPE_CHECKING:
    from autorubric.criteria._analytic_rubric import AnalyticRubricCriterion, RubricDimension
    from autorubric.criteria._checklist import ChecklistCriterion
    from autorubric.criteria._comparative import ComparativeCriterion, ComparisonMode
    from autorubric.criteria._holistic_rubric import HolisticRubricCriterion, RubricLevel
    from autorubric.criteria._likert import LikertCriterion, LikertItem
    from autorubric.criteria._narrative import NarrativeCriterion
    from autorubric.criteria._numerical_rating import NumericalRatingCriterion
    from autorubric.criteria._pass_fail import PassFailCriterion

__all__ = [
    "AS_DECLARED", "AnalyticRubricCriterion", "BaseCriterion", "BoolField",
    "BoundFloat", "BoundInt", "Check", "ChecklistCriterion", "ChoiceField", "ComparativeCriterion",
    "ComparisonMode", "Criterion", "CriterionOption", "DictField", "EvalField", "Gate",
    "HolisticRubricCriterion", "LikertCriterion", "LikertItem", "ListField", "NarrativeCriterion",
    "NumericalRatingCriterion", "PassFailCriterion", "RubricDimension", "RubricLevel", "Shown",
    "TextField", "When", "candidate_id", "check_name", "code_digest", "criterion_from_dict",
    "criterion_to_dict", "find_check", "is_registered", "kind_of", "longest_reply", "object_schema",
    "qualified_name", "register_check", "register_kind", "registered_kinds",
]  # fmt: skip

# Most rubrics use one or two kinds; the others are loaded when a file uses their tag.
_HOMES = {
    "_analytic_rubric": ("AnalyticRubricCriterion", "RubricDimension"),
    "_checklist": ("ChecklistCriterion",),
    "_comparative": ("ComparativeCriterion", "ComparisonMode"),
    "_holistic_rubric": ("HolisticRubricCriterion", "RubricLevel"),
    "_likert": ("LikertCriterion", "LikertItem"),
    "_narrative": ("NarrativeCriterion",),
    "_numerical_rating": ("NumericalRatingCriterion",),
    "_pass_fail": ("PassFailCriterion",),
}  # fmt: skip

__getattr__ = loading(__name__, _HOMES)
