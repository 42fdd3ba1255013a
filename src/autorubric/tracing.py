"""OpenTelemetry spans for grading."""

from autorubric.integrations.optional import trace_grader

__all__ = ["trace_grader"]
