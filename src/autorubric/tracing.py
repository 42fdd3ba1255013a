"""OpenTelemetry spans for grading."""

from autorubric.integrations.optional import traced

__all__ = ["traced"]
