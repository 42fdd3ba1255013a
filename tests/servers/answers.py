"""Deterministic answers to any JSON schema: what the test server replies when no script says otherwise."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

SCHEMA_MARK = "JSON schema:\n"
"""What stands before a schema that is given in a prompt."""


def answer(body: Mapping[str, Any]) -> str:
    """The content of a reply to a chat request: JSON that follows its schema, or a plain sentence."""
    last = str(body["messages"][-1]["content"])
    schema = wanted_schema(body)
    if schema is None:
        return "A plain reply."
    if "evaluations" in schema.get("properties", {}):
        return json.dumps({"evaluations": _evaluations(schema, last)})
    return json.dumps(example(schema, seed=last))


def _evaluations(schema: Mapping[str, Any], prompt: str) -> list[Any]:
    """An answer to each criterion of a shared request, in the shape that its options ask for."""
    wanted = schema["properties"]["evaluations"]
    blocks = re.findall(r"^\[(c\w+)\] (.*?)(?=\n\n)", prompt, re.MULTILINE | re.DOTALL)
    if "prefixItems" in wanted:
        # The shape of each criterion, in the order of the prompt.
        return [
            example(shape, seed=block)
            for shape, (_, block) in zip(wanted["prefixItems"], blocks, strict=False)
        ]
    items = wanted["items"]
    shapes = items.get("anyOf", [items])

    def fits(shape: Mapping[str, Any], block: str) -> bool:
        labels = shape["properties"].get("label", {}).get("enum", [])
        return all(f"- {label}" in block for label in labels) and ("Options:" in block) == bool(labels)

    return [
        {**example(next((one for one in shapes if fits(one, block)), shapes[0]), seed=block), "id": key}
        for key, block in blocks
    ]


def wanted_schema(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The schema that a request asks for, in its `response_format` or at the end of its last message."""
    wanted = body.get("response_format")
    if isinstance(wanted, Mapping) and wanted.get("type") == "json_schema":
        schema: Mapping[str, Any] = wanted["json_schema"]["schema"]
        return schema
    last = str(body["messages"][-1]["content"])
    if SCHEMA_MARK in last:
        try:
            schema = json.loads(last.rpartition(SCHEMA_MARK)[2])
        except ValueError:
            return None
        return schema
    return None


def example(schema: Mapping[str, Any], *, seed: str, root: Mapping[str, Any] | None = None) -> Any:
    """A value that follows the schema; the same for the same seed."""
    root = root if root is not None else schema
    schema = _resolved(schema, root)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][_draw(seed) % len(schema["enum"])]
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    if kind == "object" or "properties" in schema:
        properties = schema.get("properties", {})
        return {name: example(part, seed=f"{seed}/{name}", root=root) for name, part in properties.items()}
    if kind == "array":
        return _list(schema, seed, root)
    return _plain(kind, schema, seed)


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    while True:
        if "$ref" in schema:
            target: Any = root
            for part in schema["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            schema = target
            continue
        choices = schema.get("anyOf") or schema.get("oneOf")
        if not choices:
            return schema
        schema = next((one for one in choices if one.get("type") != "null"), choices[0])


def _list(schema: Mapping[str, Any], seed: str, root: Mapping[str, Any]) -> list[Any]:
    items = _resolved(schema.get("items", {}), root)
    ids = items.get("properties", {}).get("id", {}).get("enum")
    if ids:
        return [{**example(items, seed=f"{seed}/{one}", root=root), "id": one} for one in ids]
    choices = items.get("enum")
    if choices and schema.get("uniqueItems"):
        return sorted(choices, key=lambda one: _draw(f"{seed}/{one}"))
    count = schema.get("minItems", 1)
    return [example(items, seed=f"{seed}/{position}", root=root) for position in range(count)]


def _plain(kind: Any, schema: Mapping[str, Any], seed: str) -> Any:
    low = schema.get("minimum", 0)
    high = schema.get("maximum", max(low + 1, 1))
    match kind:
        case "boolean":
            return _draw(seed) % 2 == 0
        case "integer":
            return int(low) + _draw(seed) % (int(high) - int(low) + 1)
        case "number":
            return low + (high - low) * (_draw(seed) % 101) / 100
        case "null":
            return None
        case _:
            return "Because the text says so."


def _draw(seed: str) -> int:
    return int.from_bytes(hashlib.sha256(seed.encode("utf-8", "replace")).digest()[:6], "big")
