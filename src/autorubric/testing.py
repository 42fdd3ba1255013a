"""Assertions that texts meet rubrics, for pytest, unittest and other code."""

from autorubric.integrations.assertions import assert_rubric, assert_rubric_async

__all__ = ["assert_rubric", "assert_rubric_async"]
