"""Definitions of the tool for models, as JSON schemas and function definitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from autorubric.tool._request import CritiqueRequest
from autorubric.tool._response import CritiqueResponse
from autorubric.values import Json

WIRE_NAME: Final = "critique_evaluate"
"""Name of the tool in protocols, without a dot because clients reject dots."""

TITLE: Final = "critique.evaluate"
"""Display name of the tool."""

DESCRIPTION: Final = (
    "Evaluate code, text, a tool result or a session snapshot against criteria, and get scores, issues with "
    "severity and location, and suggestions. Use it on your own work before you hand it in, revise by what "
    "it says, and evaluate again. It only reads: it changes no file and runs nothing. Content may be sent "
    "to an external model unless a local provider is named."
)


def input_schema() -> dict[str, Json]:
    """Return the JSON schema of the tool's arguments."""
    schema: dict[str, Json] = plain_schema(CritiqueRequest.model_json_schema())
    schema.pop("description", None)
    return schema


def output_schema() -> dict[str, Json]:
    """Return the JSON schema of the tool's responses."""
    schema: dict[str, Json] = plain_schema(CritiqueResponse.model_json_schema(mode="validation"))
    schema.pop("description", None)
    return schema


def openai_definition(
    name: str = WIRE_NAME, description: str = DESCRIPTION, schema: Mapping[str, Json] | None = None
) -> dict[str, Json]:
    """Return a tool definition for the `tools` parameter of OpenAI-style chat APIs.

    Args:
        name: Name of the tool in the API.
        description: Description of the tool for models.
        schema: JSON schema of the tool's arguments; None for the arguments of `critique_evaluate`.
    """
    function = {"name": name, "description": description, "parameters": dict(schema or input_schema())}
    return {"type": "function", "function": function}


def anthropic_definition(
    name: str = WIRE_NAME, description: str = DESCRIPTION, schema: Mapping[str, Json] | None = None
) -> dict[str, Json]:
    """Return a tool definition for the `tools` parameter of Anthropic-style message APIs.

    Args:
        name: Name of the tool in the API.
        description: Description of the tool for models.
        schema: JSON schema of the tool's arguments; None for the arguments of `critique_evaluate`.
    """
    return {"name": name, "description": description, "input_schema": dict(schema or input_schema())}


def plain_schema(schema: Any) -> Any:
    """Return a schema without null defaults or the titles and class docstrings that pydantic adds."""
    if isinstance(schema, list):
        return [plain_schema(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept = {
        key: {name: plain_schema(one) for name, one in value.items()}
        if key in ("properties", "$defs")
        else plain_schema(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str)) and not (key == "default" and value is None)
    }
    # The docstring of a class lists its attributes for readers of the code, not for models.
    if "properties" in kept:
        kept.pop("description", None)
    return kept
