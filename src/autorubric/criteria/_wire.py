"""JSON schemas of replies."""

from __future__ import annotations

from collections.abc import Mapping

from autorubric.values import Json


def object_schema(properties: Mapping[str, Json]) -> dict[str, Json]:
    """The JSON schema of an object with exactly these properties, all required."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def is_closed(schema: Json) -> bool:
    """Whether every object in a JSON schema, at any depth, allows the keys that it names and no others."""
    if isinstance(schema, Mapping):
        own = schema.get("type") != "object" or schema.get("additionalProperties") is False
        return own and all(is_closed(inner) for inner in schema.values())
    return not isinstance(schema, list) or all(is_closed(inner) for inner in schema)
