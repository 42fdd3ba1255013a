"""JSON schemas of replies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from autorubric.values import REASON_LENGTH, Json

_NUMBER_LENGTH: Final = 24


def reason_schema() -> dict[str, Json]:
    """Return the JSON schema of a reason or explanation."""
    return {"type": "string", "maxLength": REASON_LENGTH}


def object_schema(properties: Mapping[str, Json]) -> dict[str, Json]:
    """Return the JSON schema of an object with exactly these properties, all required."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def is_closed(schema: Json) -> bool:
    """Return whether every object in a JSON schema, at any depth, allows only its declared keys."""
    if isinstance(schema, Mapping):
        own = schema.get("type") != "object" or schema.get("additionalProperties") is False
        return own and all(is_closed(inner) for inner in schema.values())
    return not isinstance(schema, list) or all(is_closed(inner) for inner in schema)


def longest_reply(schema: Json) -> int | None:
    """Return the maximum length of a reply to a schema in characters, ignoring escapes; None if unbounded."""
    if "enum" in schema:
        return max(len(str(value)) for value in schema["enum"]) + 2
    if "anyOf" in schema:
        return _largest([longest_reply(one) for one in schema["anyOf"]])
    match schema.get("type"):
        case "string":
            return schema["maxLength"] + 2 if "maxLength" in schema else None
        case "integer" | "number":
            return _NUMBER_LENGTH
        case "boolean":
            return len("false")
        case "array" if "maxItems" in schema and "items" in schema:
            item = longest_reply(schema["items"])
            return None if item is None else schema["maxItems"] * (item + len(", ")) + 2
        case "object" if schema.get("additionalProperties") is False:
            inner = [longest_reply(one) for one in schema["properties"].values()]
            names = sum(len(name) + len('"":,') for name in schema["properties"])
            return None if None in inner else sum(one or 0 for one in inner) + names + 2
    return None


def _largest(lengths: list[int | None]) -> int | None:
    return None if None in lengths else max(length or 0 for length in lengths)
