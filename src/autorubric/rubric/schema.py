"""JSON schema of rubric files, for editors, built from the registered kinds of criteria."""

from __future__ import annotations

from typing import Final

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from autorubric.criteria.base import BaseCriterion, kind_of, registered_kinds
from autorubric.criteria.conditions import Gate, When
from autorubric.criteria.criterion import CriterionOption
from autorubric.criteria.declaration import object_schema
from autorubric.rubric.read import FORMAT
from autorubric.support.objects import Json

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


class _Generator(GenerateJsonSchema):
    """A schema generator that extends pydantic's schema with the forms that validators accept."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        made = super().model_schema(schema)
        if schema["cls"] is CriterionOption:
            return {"anyOf": [{"type": "string", "pattern": r"\S"}, _na_without_value(made)]}
        if issubclass(schema["cls"], BaseCriterion):
            return _requirement_or_description(made)
        if schema["cls"] is Gate:
            return {"anyOf": [{"const": "required"}, made]}
        if schema["cls"] is When:
            return {"anyOf": [{"type": "string", "minLength": 1}, made]}
        return made


def _na_without_value(made: JsonSchemaValue) -> JsonSchemaValue:
    required = [name for name in made["required"] if name != "value"]
    na = {"properties": {"na": {"const": True}}, "required": ["na"]}
    return {**made, "required": required, "anyOf": [{"required": ["value"]}, na]}


def _requirement_or_description(made: JsonSchemaValue) -> JsonSchemaValue:
    required = made.get("required", [])
    if "requirement" not in required:
        return made
    text = made["properties"]["requirement"]
    names = ("requirement", "description")
    return {
        **made,
        "properties": {**made["properties"], **{name: {"anyOf": [text, {"type": "null"}]} for name in names}},
        "required": [name for name in required if name != "requirement"],
        "anyOf": [{"properties": {name: text}, "required": [name]} for name in names],
    }


def rubric_json_schema() -> dict[str, Json]:
    """Return the JSON schema (2020-12) of a rubric file in any of its four forms."""
    kinds = {tag: kind_of(tag) for tag in (None, *registered_kinds())}
    references, made = models_json_schema(
        [(kind, "validation") for kind in kinds.values()], schema_generator=_Generator
    )
    shared = made["$defs"]
    options = []
    for tag, kind in kinds.items():
        reference = references[kind, "validation"]
        options.append(reference)
        if tag is not None:
            schema = shared[reference["$ref"].rpartition("/")[2]]
            schema["properties"] = {"type": {"const": tag}, **schema["properties"]}
            schema["required"] = ["type", *schema.get("required", [])]
    return {
        "$schema": _DIALECT,
        "title": "autorubric rubric",
        "anyOf": [_ref("criteria"), *(_body(form) for form in ("criteria", "sections", "rubric"))],
        "$defs": {**shared, **_containers(options)},
    }


def _containers(kinds: list[JsonSchemaValue]) -> dict[str, Json]:
    name = {"type": "string", "minLength": 1}
    weight = {"type": "number", "minimum": 0, "default": 10.0}
    return {
        "criteria": {"type": "array", "minItems": 1, "items": {"anyOf": [*kinds, _ref("group")]}},
        "group": _closed({"name": name, "weight": weight, "criteria": _ref("criteria")}, "name", "criteria"),
        "section": _closed({"name": name, "criteria": _ref("criteria")}, "name", "criteria"),
        "sections": {"type": "array", "minItems": 1, "items": _ref("section")},
        "rubric": {"anyOf": [_ref("criteria"), _body("criteria"), _body("sections")]},
    }


def _body(form: str) -> dict[str, Json]:
    guidelines = {"type": ["string", "null"], "description": "Advice to judges on the whole rubric"}
    version = {"type": "integer", "minimum": 1, "maximum": FORMAT}
    return _closed({form: _ref(form), "guidelines": guidelines, "format": version}, form)


def _closed(properties: dict[str, Json], *required: str) -> dict[str, Json]:
    return {**object_schema(properties), "required": list(required)}


def _ref(name: str) -> dict[str, Json]:
    return {"$ref": f"#/$defs/{name}"}
