"""The fast check of critiques says yes only where jsonschema does."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, strategies as st
from jsonschema import Draft202012Validator

from autorubric import load_critique_schema
from autorubric.apps.drafts.conformance import conformance_check
from tests.drafts.teachers import CRITIQUE

ODD = [
    *(None, True, False, 0, 1, 5, 6, 1.0, 1.5, -1, 10**400, float("nan"), float("inf")),
    *("", "low", "pass", "x", [], [""], [1], {}, {"id": "a"}),
]
odd = st.sampled_from(ODD) | st.recursive(
    st.sampled_from(ODD[:13]) | st.text(max_size=2),
    lambda part: st.lists(part, max_size=2) | st.dictionaries(st.sampled_from("abc"), part, max_size=2),
    max_leaves=4,
)


def _places(data: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    pairs: Any = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [at, *(place for key, part in pairs for place in _places(part, (*at, key)))]


@st.composite
def changed(draw: st.DrawFn, data: Any) -> Any:
    """The data with some parts replaced, removed or added."""
    made = copy.deepcopy(data)
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.sampled_from(_places(made)))
        if not place:
            continue
        around = made
        for key in place[:-1]:
            around = around[key]
        if draw(st.booleans()):
            around[place[-1]] = copy.deepcopy(draw(odd))
        elif isinstance(around, dict):
            around.pop(place[-1])
            if draw(st.booleans()):
                around["extra"] = copy.deepcopy(draw(odd))
        else:
            around.append(copy.deepcopy(draw(odd)))
    return made


schemas = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["integer", "number", "string", "array", "object", "null", "boolean"])
            | st.lists(st.sampled_from(["integer", "string", "null"]), min_size=1, unique=True),
            "enum": st.lists(st.sampled_from([*ODD[:9], "", "x"]), min_size=1),
            "const": st.sampled_from([None, True, 1, 1.0, "", "x", []]),
            "minimum": st.sampled_from([0, 1, 1.5, 10**400]),
            "maximum": st.sampled_from([0, 1, 5.5]),
            "minLength": st.integers(0, 2),
            "minItems": st.integers(0, 2),
            "required": st.lists(st.sampled_from("abc"), unique=True),
            "additionalProperties": st.booleans() | st.just({"type": "string"}),
            "uniqueItems": st.just(True),
            "$ref": st.sampled_from(["#/$defs/one", "#/$defs/two"]),
        },
    )
    | st.booleans(),
    lambda part: st.fixed_dictionaries(
        {"type": st.just("object") | st.just("array")},
        optional={
            "items": part,
            "properties": st.dictionaries(st.sampled_from("abc"), part),
            "additionalProperties": st.booleans(),
        },
    ),
    max_leaves=5,
)


@given(changed(CRITIQUE))
def test_what_passes_the_fast_check_follows_the_schema_of_critiques(critique: Any) -> None:
    """With the shipped schema and critiques in which parts are odd, missing or added."""
    schema = load_critique_schema()
    check = conformance_check(schema)
    assert check is not None
    if check(critique):
        assert Draft202012Validator(schema).is_valid(critique)


@given(schemas, odd, odd)
def test_what_passes_the_fast_check_follows_any_schema(part: Any, one: Any, two: Any) -> None:
    """With schemas of the keywords that it knows, and some that it does not."""
    schema = {
        "properties": {"a": part, "b": part},
        "$defs": {"one": {"type": "integer"}, "two": {"items": {}}},
    }
    check = conformance_check(schema)
    if check is not None and check({"a": one, "b": two}):
        assert Draft202012Validator(schema).is_valid({"a": one, "b": two})


def test_the_fast_check_leaves_the_rest_to_jsonschema() -> None:
    """A critique passes; schemas with other keywords, recursion or further identifiers are not checked."""
    check = conformance_check(load_critique_schema())
    assert check is not None and check(CRITIQUE)
    clarity = {**CRITIQUE, "scores": {**CRITIQUE["scores"], "clarity": True}}
    assert not check(clarity)
    for schema in (
        {"pattern": "a"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}},
        {"properties": {"a": {"$id": "urn:x", "type": "string"}}},
        {"properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#"}}},
    ):
        assert conformance_check(schema) is None
