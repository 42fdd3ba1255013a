"""A fast check whether JSON data certainly conform to a schema that uses only common keywords."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, Final, TypeAlias

from autorubric.support.objects import Json

Check: TypeAlias = Callable[[Any], bool]

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "null": (NoneType,),
    "integer": (int,),  # 1.0 is an integer too, but only jsonschema decides on it
    "number": (int, float),
}
_IGNORED: Final = frozenset({"title", "description", "version", "$comment", "default", "examples", "$defs"})
_LOCAL: Final = re.compile(r"#/\$defs/([A-Za-z0-9_-]+)")


class _UnknownError(Exception):
    """Raised if a schema contains something that is not checked here."""


def conformance_check(schema: Mapping[str, Json]) -> Check | None:
    """Return a function that is true only for data that follow a schema; None if it is too complex."""
    try:
        # An identified subschema changes what references mean.
        if json.dumps(schema).count('"$id"') > ("$id" in schema):
            return None
        own = {key: value for key, value in schema.items() if key not in ("$schema", "$id")}
        return _compile(own, own.get("$defs"), ())
    except (_UnknownError, KeyError, TypeError, ValueError, RecursionError):
        return None


def _compile(schema: Any, definitions: Any, inside: tuple[str, ...]) -> Check:
    """Return the check of a subschema; `inside` has the names of the definitions around it."""
    if schema is True:
        schema = {}
    if type(schema) is not dict:
        raise _UnknownError
    kinds = schema.get("type", list(_TYPES))
    names = [kinds] if isinstance(kinds, str) else kinds
    checks: dict[type, list[Check]] = {kind: [] for name in names for kind in _TYPES[name]}
    for keyword, given in schema.items():
        if keyword in _IGNORED or keyword == "type":
            continue
        made = _keyword_checks(keyword, given, schema, definitions, inside)
        if keyword in ("enum", "const"):
            checks = {kind: found for kind, found in checks.items() if kind in made}
        for kind in checks.keys() & made.keys():
            checks[kind].append(made[kind])

    def conforms(data: Any) -> bool:
        # The exact type: True is no integer, and subclasses may compare differently.
        wanted = checks.get(type(data))
        return wanted is not None and all(check(data) for check in wanted)

    return conforms


def _keyword_checks(
    keyword: str, given: Any, schema: Mapping[str, Any], definitions: Any, inside: tuple[str, ...]
) -> dict[type, Check]:
    """Return the checks of a keyword by the type of the data."""
    match keyword:
        case "enum" | "const":
            # Numbers equal other types, so only texts and null are looked up.
            members = given if keyword == "enum" else [given]
            texts = frozenset(one for one in members if one is None or type(one) is str)
            return {str: texts.__contains__, NoneType: texts.__contains__}
        case "required":
            needed = frozenset(given)
            return {dict: lambda data: data.keys() >= needed}
        case "additionalProperties" if given is False:
            known = frozenset(schema.get("properties", ()))
            return {dict: lambda data: data.keys() <= known}
        case "properties":
            parts = [(name, _compile(one, definitions, inside)) for name, one in given.items()]
            return {dict: lambda data: all(name not in data or check(data[name]) for name, check in parts)}
        case "items":
            element = _compile(given, definitions, inside)
            return {list: lambda data: all(map(element, data))}
        case "minimum":
            return dict.fromkeys((int, float), lambda data: data >= given)
        case "maximum":
            return dict.fromkeys((int, float), lambda data: data <= given)
        case "minLength" | "minItems":
            return {str if keyword == "minLength" else list: lambda data: len(data) >= given}
        case "$ref" if (found := _LOCAL.fullmatch(given)) and found[1] not in inside:
            check = _compile(definitions[found[1]], definitions, (*inside, found[1]))
            return dict.fromkeys((kind for kinds in _TYPES.values() for kind in kinds), check)
    raise _UnknownError
