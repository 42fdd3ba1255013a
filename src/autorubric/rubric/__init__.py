"""Rubrics: ordered, weighted criteria, optionally in groups, with guidelines and file input and output."""

from autorubric.rubric._names import similar_names
from autorubric.rubric._rubric import Rubric, SupportsGrade
from autorubric.types import RubricGroup

__all__ = ["Rubric", "RubricGroup", "SupportsGrade", "similar_names"]
