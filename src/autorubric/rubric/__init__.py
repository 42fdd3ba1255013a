"""Rubrics, which are ordered, weighted criteria with optional groups and guidelines, and rubric files."""

from autorubric.rubric._names import similar_names
from autorubric.rubric._rubric import Rubric, SupportsGrade
from autorubric.types import RubricGroup

__all__ = ["Rubric", "RubricGroup", "SupportsGrade", "similar_names"]
