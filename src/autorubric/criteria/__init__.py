"""Criteria: what is judged, and what an answer looks like."""

from autorubric.criteria._base import BaseCriterion, Shown, object_schema
from autorubric.criteria._checks import (
    Check,
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

__all__ = [
    "BaseCriterion",
    "BoolField",
    "BoundFloat",
    "BoundInt",
    "Check",
    "ChoiceField",
    "Criterion",
    "CriterionOption",
    "DictField",
    "EvalField",
    "ListField",
    "Shown",
    "TextField",
    "check_name",
    "code_digest",
    "criterion_from_dict",
    "criterion_to_dict",
    "find_check",
    "is_registered",
    "kind_of",
    "object_schema",
    "qualified_name",
    "register_check",
    "register_kind",
    "registered_kinds",
]
