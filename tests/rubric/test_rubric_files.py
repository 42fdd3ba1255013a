"""Rubrics from and to files: forms, round trips, faults."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from autorubric.criteria import BaseCriterion, BoundInt, Criterion, TextField, register_check, register_kind
from autorubric.criteria.base import registered_kinds
from autorubric.errors import ArgumentError, FileError, RubricError
from autorubric.rubric import Rubric


@register_kind("test_stars")
class StarsCriterion(BaseCriterion):
    """A kind of a user's own."""

    stars: BoundInt = BoundInt(min_val=1, max_val=5)
    explanation: TextField = TextField()


def has_digits(text: str) -> bool:
    """Whether a text holds a digit."""
    return any(map(str.isdigit, text))


register_check("test_has_digits", has_digits)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(str.strip)
VALUE = st.floats(0, 1)
OPTIONS = st.lists(
    st.builds(
        lambda label, value, na: {"label": label, "value": value, "na": na}, TEXT, VALUE, st.booleans()
    ),
    min_size=2,
    max_size=4,
    unique_by=lambda option: option["label"].strip().casefold(),
).filter(lambda options: sum(not option["na"] for option in options) >= 2)
COMMON = {
    "weight": st.floats(-1e6, 1e6),
    "aggregation": st.none() | TEXT,
    "check": st.sampled_from([None, "test_has_digits"]),
}
CRITERION = st.fixed_dictionaries(
    {"requirement": TEXT, **COMMON},
    optional={"options": OPTIONS, "scale_type": st.sampled_from(["ordinal", "nominal"])},
) | st.fixed_dictionaries(
    {"type": st.just("test_stars"), **COMMON},
    optional={
        "requirement": TEXT,
        "stars": st.builds(lambda top: {"min_val": 0, "max_val": top}, st.integers(1, 9)),
    },
)
CRITERIA = st.lists(st.tuples(CRITERION, TEXT), min_size=1, max_size=4, unique_by=lambda pair: pair[1]).map(
    lambda pairs: [{**fields, "name": name} for fields, name in pairs]
)


def sectioned(criteria: list[dict[str, Any]], names: list[str]) -> dict[str, Any]:
    """The criteria dealt out to sections."""
    share = -(-len(criteria) // len(names))
    parts = [criteria[start : start + share] for start in range(0, len(criteria), share)]
    return {"sections": [{"name": n, "criteria": part} for n, part in zip(names, parts, strict=False)]}


BODY = CRITERIA.map(lambda criteria: {"criteria": criteria}) | st.builds(
    sectioned, CRITERIA, st.lists(TEXT, min_size=1, max_size=3, unique=True)
)
SCHEMA = jsonschema.Draft202012Validator(Rubric.json_schema())
MAPPING = st.builds(
    lambda body, guidelines: {**body, **guidelines},
    BODY,
    st.fixed_dictionaries({}, optional={"guidelines": TEXT}),
)


@settings(deadline=None, max_examples=50)
@given(MAPPING)
def test_dict_round_trip_and_schema(given_: dict[str, Any]) -> None:
    """A rubric comes back from its mapping as it was, and both mappings are valid under the schema."""
    rubric = Rubric.from_dict(given_)
    written = rubric.to_dict()
    assert Rubric.from_dict(written) == rubric
    assert Rubric.from_dict({"rubric": written}) == rubric
    assert json.loads(json.dumps(written)) == written
    for mapping in (given_, written, {"rubric": written}):
        SCHEMA.validate(mapping)


@pytest.mark.parametrize("suffix", ["yaml", "json", "toml"])
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=40,
    deadline=None,
)
@given(mapping=MAPPING)
def test_file_round_trip(suffix: str, mapping: dict[str, Any], tmp_path: Path) -> None:
    """Whatever the format, a rubric comes back from its file as it was."""
    rubric = Rubric.from_dict(mapping)
    path = tmp_path / f"rubric.{suffix}"
    rubric.to_file(path)
    assert Rubric.from_file(path) == rubric


PLAIN: list[dict[str, Any]] = [
    {"name": "a", "requirement": "x"},
    {"name": "b", "requirement": "y", "weight": -3},
]
FORMS: list[Any] = [
    PLAIN,
    {"criteria": PLAIN},
    {"criteria": PLAIN, "format": 1},
    {"rubric": PLAIN},
    {"rubric": {"criteria": PLAIN}, "format": 1},
    {"rubric": {"criteria": PLAIN, "format": 1, "guidelines": None}},
]


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_mean_the_same(form: Any) -> None:
    """A list, a mapping with criteria and one with a rubric are one rubric, valid under the schema."""
    rubric = Rubric.from_json(json.dumps(form))
    assert rubric == Rubric(PLAIN)
    jsonschema.validate(form, rubric.json_schema())


@pytest.mark.parametrize("body", [{"criteria": PLAIN}, {"sections": [{"name": "s", "criteria": PLAIN}]}])
def test_guidelines_stand_in_or_around(body: dict[str, Any]) -> None:
    """Guidelines may stand in the rubric or around it."""
    for form in (
        {**body, "guidelines": "g"},
        {"rubric": body, "guidelines": "g"},
        {"rubric": {**body, "guidelines": "g"}},
    ):
        assert Rubric.from_dict(form).guidelines == "g"
        jsonschema.validate(form, Rubric.json_schema())


def test_texts_and_paths(tmp_path: Path) -> None:
    """Readers of one format take a text, a `Path`, or a line that ends in the format's suffix."""
    rubric = Rubric(PLAIN, guidelines="g")
    readers = {"yaml": Rubric.from_yaml, "json": Rubric.from_json, "toml": Rubric.from_toml}
    for suffix, read in readers.items():
        path = tmp_path / f"r.{suffix}"
        rubric.to_file(path)
        assert read(path) == read(str(path)) == read(path.read_text(encoding="utf-8")) == rubric
    with pytest.raises(RubricError, match="file not found"):
        Rubric.from_yaml("missing.yml")
    with pytest.raises(RubricError, match=r"Rubric\.from_toml: 1 error"):
        Rubric.from_toml("a = ")


def test_description_is_another_name_for_requirement() -> None:
    """A criterion may give its requirement as a description; the schema allows both, and needs one."""
    form = [{"name": "a", "description": "x"}]
    assert Rubric.from_dict(form) == Rubric([{"name": "a", "requirement": "x"}])
    jsonschema.validate(form, Rubric.json_schema())


def test_na_options_need_no_value() -> None:
    """An NA option has no value to give; the schema agrees."""
    options = [{"label": "a", "value": 0}, {"label": "b", "value": 1}, {"label": "n/a", "na": True}]
    form = [{"requirement": "x", "options": options}]
    jsonschema.validate(form, Rubric.json_schema())
    assert Rubric.from_dict(form).compute_score(["n/a"]) is None


def test_labels_stay_text_in_yaml() -> None:
    """Yes, No, on and off are labels in YAML, not booleans."""
    text = "- requirement: x\n  options:\n  - {label: Yes, value: 1}\n  - {label: No, value: 0}\n"
    criterion = Rubric.from_yaml(text)[0]
    assert isinstance(criterion, Criterion)
    assert [option.label for option in criterion.options or ()] == ["Yes", "No"]


FAULTY = """\
guidlines: be fair
criteria:
- requirement: 5
  wieght: 1
- name: a
  weight: "10"
  requirement: x
- name: a
  requirement: q
  check: test_has_digit
  options:
  - {label: a, value: 3}
  - {lable: b, value: 0}
- just a text
- {type: test_star, requirement: x}
- {requirement: x, scale_type: cardinal}
- {weight: 3}
- {requirement: x, type: null}
- name: a
  requirement: again
- {requirement: x, check: test_has_digit}
"""


def test_all_faults_of_a_file_at_once(tmp_path: Path) -> None:
    """Every fault of a file is reported, each with its path, its line and what to do."""
    path = tmp_path / "rubric.yaml"
    path.write_text(FAULTY, encoding="utf-8")
    tags = ", ".join(registered_kinds())
    with pytest.raises(RubricError) as caught:
        Rubric.from_file(path)
    assert str(caught.value).split("\n") == [
        f"{path}: 15 errors",
        "  - guidlines (line 1): unknown key 'guidlines'; did you mean 'guidelines'?",
        "  - criteria[0].requirement (line 3): expected a string; got 5",
        "  - criteria[0].wieght (line 4): unknown key 'wieght'; did you mean 'weight'?",
        "  - criteria[1].weight (line 6): the value must be a number; got '10', a string",
        "  - criteria[2].options[0].value (line 12): the value must be less than or equal to 1; got 3",
        "  - criteria[2].options[1] (line 13): the key 'label' is missing",
        "  - criteria[2].options[1].lable (line 13): unknown key 'lable'; did you mean 'label'?",
        "  - criteria[2].name (line 8): the name 'a' is already used by an earlier criterion",
        "  - criteria[3] (line 14): a criterion must be a mapping with 'requirement' and optionally "
        "'weight' (default 10); got 'just a text'",
        "  - criteria[4].type (line 15): unknown kind of criterion 'test_star'; did you mean 'test_stars'? "
        "Register your own kinds with @register_kind",
        "  - criteria[5].scale_type (line 16): expected 'ordinal' or 'nominal'; got 'cardinal'",
        "  - criteria[6] (line 17): the key 'requirement' is missing",
        f"  - criteria[7].type (line 18): unknown kind of criterion 'None'; available: {tags}. "
        "Register your own kinds with @register_kind",
        "  - criteria[8].name (line 19): the name 'a' is already used by an earlier criterion",
        "  - criteria[9].check (line 21): unknown check 'test_has_digit'; did you mean "
        "'test_has_digits'? Register checks with register_check(name, check)",
    ]


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({}, "exactly one of criteria, sections, rubric is required; got []"),
        ({"guidelines": "x"}, "exactly one of criteria, sections, rubric is required; got ['guidelines']"),
        (
            {"criteria": PLAIN, "sections": []},
            "exactly one of criteria, sections, rubric is required; got ['criteria', ",
        ),
        ({"rubric": {"rubric": PLAIN}}, "rubric.rubric: unknown key 'rubric'"),
        ({"rubric": {"criteria": PLAIN, "guidelines": "a"}, "guidelines": "b"}, "define them only once"),
        ({"criteria": {"a": 1}}, "criteria: criteria must be a list; got {'a': 1}"),
        ({"criteria": []}, "criteria: criteria must not be empty"),
        ("criteria", "criteria must be a list; got 'criteria'"),
        ({"sections": []}, "sections: sections must not be empty"),
        ({"sections": ["x"]}, "sections[0]: a section must be a mapping with 'name' and 'criteria'; got 'x'"),
        ({"sections": [{"criteria": PLAIN}]}, "sections[0].name: a section must have a name; got None"),
        ({"sections": [{"name": "a"}]}, "sections[0].criteria: criteria must be a list; got None"),
        ({"sections": [{"name": "a", "criteria": []}]}, "sections[0].criteria: criteria must not be empty"),
        (
            {"sections": [{"name": "a", "criteria": PLAIN, "weight": 1}]},
            "sections[0].weight: unknown key 'weight'",
        ),
        (
            {"sections": [{"name": "a", "criteria": [PLAIN[0]]}, {"name": "a", "criteria": [PLAIN[1]]}]},
            "sections[1].name: section 'a' is repeated",
        ),
        ({"criteria": PLAIN, "guidelines": ["x"]}, "guidelines: guidelines must be a string; got ['x']"),
        (
            {"criteria": PLAIN, "format": 2},
            "format: format 2 is newer than this version supports (1); upgrade",
        ),
        ({"criteria": PLAIN, "format": "1"}, "format: 'format' must be a positive integer"),
        ({"rubric": {"criteria": PLAIN, "format": 2}}, "rubric.format: format 2 is newer"),
        ([{"requirement": "a", "description": "b"}], "are aliases, but their texts differ"),
        ([{"requirement": "a", "options": [{"label": "x", "value": 1}]}], "two options that are not NA"),
        ([{"requirement": True}], "expected a string; got True"),
        (
            [{"requirement": "x", "weight": True}],
            "[0].weight: the value must be a number; got True, a boolean",
        ),
        ([{"requirement": "x", "name": ""}], "[0].name: String should have at least 1 character; got ''"),
        (
            [{"type": "test_stars", "stars": {"min_val": 1, "max_vall": 2}}],
            "stars.max_vall: unknown key 'max_vall'; did you mean 'max_val'",
        ),
        ([{"type": 7}], "[0].type: unknown kind of criterion 7"),
    ],
)
def test_faulty_forms(form: Any, message: str) -> None:
    """What is no rubric says what is wrong, where, and is refused by the schema as well."""
    with pytest.raises(RubricError) as caught:
        Rubric.from_dict(form)
    assert message in str(caught.value)


REFUSED_BY_SCHEMA: list[Any] = [
    {},
    {"criteria": []},
    {"criteria": PLAIN, "guidlines": "x"},
    {"criteria": PLAIN, "sections": [{"name": "a", "criteria": PLAIN}]},
    {"rubric": {"rubric": PLAIN}},
    {"sections": [{"name": "a", "criteria": PLAIN, "weight": 1}]},
    {"criteria": PLAIN, "format": 2},
    [{"requirement": "x", "wieght": 1}],
    [{"requirement": "x", "weight": "10"}],
    [{"requirement": "x", "type": None}],
    [{"weight": 1}],
    [{"requirement": "x", "options": [{"label": "a"}, {"label": "b", "value": 1}]}],
    [{"requirement": "x", "options": [{"label": "a", "value": 2}, {"label": "b", "value": 1}]}],
    [{"type": "test_stars", "options": []}],
    [{"type": "unheard_of", "requirement": "x"}],
]


@pytest.mark.parametrize("form", REFUSED_BY_SCHEMA)
def test_the_schema_refuses_what_does_not_load(form: Any) -> None:
    """An editor with the schema marks the faults that loading would report."""
    with pytest.raises(RubricError):
        Rubric.from_dict(form)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(form, Rubric.json_schema())


def test_the_schema_is_one() -> None:
    """The schema is valid JSON Schema and knows the kinds by their tags."""
    schema = Rubric.json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$defs"]["StarsCriterion"]["properties"]["type"] == {"const": "test_stars"}
    assert json.loads(json.dumps(schema)) == schema


def test_json_faults_have_lines(tmp_path: Path) -> None:
    """The lines of JSON files are given too."""
    path = tmp_path / "r.json"
    path.write_text('[\n {"requirement": "x"},\n {"requirement": "y",\n  "wight": 2}]', encoding="utf-8")
    with pytest.raises(RubricError, match=r"\[1\]\.wight \(line 4\): unknown key"):
        Rubric.from_file(path)


def test_other_suffixes_are_refused(tmp_path: Path) -> None:
    """A rubric is in YAML, JSON or TOML."""
    for name in ("r.jsonl", "r.txt"):
        with pytest.raises(RubricError, match=r"is not supported; .* \.yaml, \.yml, \.json, \.toml"):
            Rubric.from_file(tmp_path / name)
        with pytest.raises(FileError, match="is not supported"):
            Rubric(PLAIN).to_file(tmp_path / name)


def is_short(text: str) -> bool:
    """Whether a text is short."""
    return len(text) < 9


def test_unregistered_checks_cannot_be_written() -> None:
    """A check without a registered name is refused on writing, with the way out."""
    rubric = Rubric([{"name": "short", "requirement": "x", "check": is_short}])
    with pytest.raises(
        ArgumentError, match=r"check of 'short', .*is_short.*register_check\(name, function\)"
    ):
        rubric.to_dict()


def test_registered_functions_are_written_by_name() -> None:
    """A registered check is written by its name, and works again when read."""
    rubric = Rubric([{"requirement": "x", "check": has_digits}])
    assert rubric.to_dict()["criteria"][0]["check"] == "test_has_digits"


def test_stored_rubrics_open_without_their_checks() -> None:
    """A run that was stored can be opened where its checks are not registered."""
    rubric = Rubric([{"name": "short", "requirement": "x", "check": is_short}], guidelines="g")
    stored = json.loads(json.dumps(rubric.snapshot()))
    again = Rubric.restore(stored)
    assert again.names == ("short",)
    assert again.snapshot() == stored
    with pytest.raises(RubricError, match=r"criteria\[0\]\.check: unknown check"):
        Rubric.from_dict(stored)


def test_names_given_by_position_are_kept_in_files() -> None:
    """A name that a rubric gave is written, so that labels still match after criteria are moved."""
    rubric = Rubric([{"requirement": "x"}, {"requirement": "y"}])
    assert [criterion["name"] for criterion in rubric.to_dict()["criteria"]] == ["criterion_1", "criterion_2"]


def test_a_weight_that_is_not_finite_hides_no_other_fault() -> None:
    """NaN is one fault among the others."""
    text = "criteria:\n  - {requirement: a, weight: .nan}\n  - {requirment: b}\n"
    with pytest.raises(RubricError) as refused:
        Rubric.from_yaml(text)
    assert {fault.path.partition(".")[0] for fault in refused.value.faults} == {"criteria[0]", "criteria[1]"}
