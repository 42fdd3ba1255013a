"""Integrations with pytest, training libraries, OpenTelemetry, MCP and Ray, each loaded on first use."""

from autorubric.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
