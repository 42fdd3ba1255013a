"""Rubrics: weighted criteria in order, with guidelines, from and to files."""

from autorubric.rubric._rubric import Rubric, SupportsGrade

__all__ = ["Rubric", "SupportsGrade"]
