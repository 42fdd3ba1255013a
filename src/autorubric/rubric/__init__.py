"""Rubrics: weighted criteria in order and in groups, with guidelines, from and to files."""

from autorubric.rubric._names import similar_names
from autorubric.rubric._rubric import Rubric, SupportsGrade
from autorubric.types import RubricGroup

__all__ = ["Rubric", "RubricGroup", "SupportsGrade", "similar_names"]
