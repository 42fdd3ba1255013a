"""What a critique must look like."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from autorubric import load_critique_prompt_template, load_critique_schema
from autorubric.apps.drafts.provenance import CritiqueSchema, SchemaFaultError
from autorubric.errors import ArgumentError, FileError
from tests.drafts.teachers import CRITIQUE, critique


def test_the_shipped_schema_is_draft_2020_12_and_versioned() -> None:
    """The schema says which draft of JSON Schema it is, has a version, and is a schema."""
    schema = load_critique_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["version"] == "v1"
    jsonschema.Draft202012Validator.check_schema(schema)


def test_required_fields_and_enumerations_are_those_agreed_on() -> None:
    """Names and enumerations are fixed: other programs read these files."""
    schema = load_critique_schema()
    assert set(schema["required"]) == {
        *("id", "verdict", "issues", "scores", "hallucination", "verification", "schema"),
        "rewrite_instructions",
    }
    assert schema["properties"]["verdict"]["enum"] == ["pass", "revise", "reject"]
    issue = schema["$defs"]["issue"]["properties"]
    assert issue["severity"]["enum"] == ["low", "medium", "high"]
    assert set(issue["type"]["enum"]) == {
        *("hallucination", "overconfidence", "schema", "verification", "actionability", "clarity", "safety")
    }
    assert schema["properties"]["hallucination"]["properties"]["risk_level"]["enum"] == [
        "low",
        "medium",
        "high",
    ]
    scores = schema["properties"]["scores"]
    assert set(scores["required"]) == {"actionability", "clarity", "schema_compliance", "safety_risk"}


def test_a_whole_critique_is_valid() -> None:
    """The example of a critique follows the schema; one without issues does too."""
    checked = CritiqueSchema.of(None)
    checked.check(CRITIQUE)
    checked.check(critique(issues=[], rewrite_instructions=[], verdict="pass"))


def _without(name: str) -> dict[str, Any]:
    changed = copy.deepcopy(CRITIQUE)
    del changed[name]
    return changed


FAULTY: list[dict[str, Any]] = [
    *(_without(name) for name in CRITIQUE),
    critique(verdict="maybe"),
    critique(scores={**CRITIQUE["scores"], "clarity": 6}),
    critique(scores={**CRITIQUE["scores"], "clarity": 0}),
    critique(scores={"clarity": 5}),
    critique(issues=[{**CRITIQUE["issues"][0], "type": "spelling"}]),
    critique(issues=[{**CRITIQUE["issues"][0], "severity": "fatal"}]),
    critique(issues="none"),
    critique(hallucination={"risk_level": "extreme"}),
    critique(rewrite_instructions="Add it"),
    critique(remarks="an extra key"),
]


@pytest.mark.parametrize("faulty", FAULTY)
def test_a_faulty_critique_is_refused(faulty: dict[str, Any]) -> None:
    """A missing key, a word outside an enumeration or a score off the scale is no critique."""
    with pytest.raises(SchemaFaultError, match="does not follow the schema"):
        CritiqueSchema.of(None).check(faulty)


def test_faults_name_their_place() -> None:
    """The message says where the fault is, so that a model that is asked again can mend it."""
    with pytest.raises(SchemaFaultError, match=r"scores\.clarity: 9 is greater than"):
        CritiqueSchema.of(None).check(critique(scores={**CRITIQUE["scores"], "clarity": 9}))


def test_the_digest_is_that_of_the_content() -> None:
    """The same schema in another order of keys has the same digest, another schema another one."""
    schema = load_critique_schema()
    turned = dict(reversed(list(schema.items())))
    assert CritiqueSchema.of(turned).digest == CritiqueSchema.of(None).digest
    assert CritiqueSchema.of({"type": "object"}).digest != CritiqueSchema.of(None).digest


def test_a_schema_file_is_read(tmp_path: Path) -> None:
    """A schema may be named by its file."""
    path = tmp_path / "own.schema.json"
    path.write_text('{"type": "object", "required": ["verdict"], "version": "v7"}', encoding="utf-8")
    own = CritiqueSchema.of(path)
    assert (own.path, own.version) == (str(path), "v7")
    with pytest.raises(FileError):
        CritiqueSchema.of(tmp_path / "none.json")


@pytest.mark.parametrize(
    "given",
    [
        {"type": "nothing"},
        {"properties": {"a": {"minimum": "x"}}},
        {"$ref": "https://example.org/elsewhere.json"},
        {"properties": {"x": {"$ref": "#/$defs/missing"}}, "required": ["x"], "$ref": "#/$defs/gone"},
        [],
    ],
)
def test_what_is_no_schema_is_refused_before_anything_is_asked(given: Any) -> None:
    """A faulty schema, or one that points elsewhere, is an argument's fault; nothing is fetched."""
    with pytest.raises(ArgumentError, match="schema"):
        CritiqueSchema.of(given)


def test_the_shipped_template_can_be_read() -> None:
    """The template shows the material and the schema."""
    template = load_critique_prompt_template()
    assert "{material}" in template and "{schema}" in template
