"""Rubrics of groups: the tree, its names, files and faults, its score."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError

from autorubric import BaseCriterion, Criterion, Gate, Rubric, RubricDataset, RubricGroup, When
from autorubric.criteria import BoundInt
from autorubric.errors import ArgumentError, RubricError
from autorubric.scoring import CannotAssessStrategy
from tests.criteria.kinds import Remarks


def nested() -> Rubric:
    """Content and, in it, sources; style beside it."""
    return Rubric.from_dict(
        {
            "criteria": [
                {
                    "name": "content",
                    "weight": 6,
                    "criteria": [
                        {"name": "right", "requirement": "It is right.", "weight": 3, "gate": "required"},
                        {
                            "name": "sources",
                            "criteria": [
                                {"requirement": "It cites a source.", "weight": 1},
                                {
                                    "name": "dated",
                                    "requirement": "The source has a date.",
                                    "when": "criterion_2",
                                },
                            ],
                        },
                    ],
                },
                {"name": "style", "requirement": "It reads well.", "weight": 2},
                {"name": "wit", "requirement": "It is witty.", "weight": 1, "bonus": True},
            ]
        }
    )


def test_the_sequence_is_that_of_the_leaves() -> None:
    """Iteration, length and names go depth first; the root is the tree."""
    rubric = nested()
    assert rubric.names == ("right", "criterion_2", "dated", "style", "wit")
    assert len(rubric) == 5
    assert rubric.by_name("dated") is rubric[2]
    root = rubric.root
    assert (root.name, [one.name for one in root.criteria]) == ("", ["content", "style", "wit"])
    assert root.leaves == tuple(rubric)
    assert [(group.name, group.weight) for group in root.groups] == [
        ("", 10.0),
        ("content", 6.0),
        ("sources", 10.0),
    ]


def test_fields_read_words_and_mappings() -> None:
    """`required` and a name are short for a gate and a condition."""
    rubric = nested()
    assert rubric[0].gate == Gate() == Gate(at_least=1.0, cap=0.0)
    assert rubric[2].when == When(criterion="criterion_2", at_least=1.0)
    long = Criterion(
        requirement="r", gate={"at_least": 0.5, "cap": 0.2}, when={"criterion": "right", "at_least": 0.25}
    )
    assert (long.gate, long.when) == (Gate(at_least=0.5, cap=0.2), When(criterion="right", at_least=0.25))
    assert Criterion.model_validate(long.model_dump(mode="json")) == long


def test_groups_take_criteria_groups_and_mappings() -> None:
    """In code a tree is made of groups; positions and keywords both do."""
    inner = RubricGroup("sources", [{"requirement": "It cites a source."}], weight=4)
    group = RubricGroup(
        name="content",
        criteria=[
            Criterion(name="right", requirement="r"),
            inner,
            {"name": "x", "criteria": [{"requirement": "y"}]},
        ],
    )
    rubric = Rubric([group, {"name": "style", "requirement": "s"}])
    assert rubric.names == ("right", "criterion_2", "criterion_3", "style")
    assert group.weight == 10.0
    with pytest.raises(ValidationError, match="frozen"):
        group.weight = 1.0  # type: ignore[misc]
    assert Rubric(rubric.root.criteria) == rubric


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"criteria": []}, "the group is empty"),
        ({"criteria": [{"requirement": "r"}], "weight": -1}, "greater than or equal to 0"),
        ({"criteria": [{"requirement": "r"}], "weight": float("inf")}, "finite"),
        ({"criteria": [{"requirement": "r"}], "wieght": 1}, "wieght"),
        ({"criteria": ["a text"]}, "'a text' is neither a criterion nor a group"),
        ({"criteria": [{"requirement": "r", "gate": "must"}]}, "gate must be 'required' .* got 'must'"),
    ],
)
def test_bad_groups_are_refused(fields: dict[str, Any], told: str) -> None:
    """Each fault is named."""
    with pytest.raises(ValidationError, match=told):
        RubricGroup("g", **fields)


def test_mappings_without_end_are_refused() -> None:
    """A group that holds itself, or thousands in one another, is a fault and no crash."""
    endless: dict[str, Any] = {"name": "g", "criteria": []}
    endless["criteria"].append(endless)
    with pytest.raises(ValidationError, match="nested too deeply"):
        RubricGroup("outer", [endless])
    with pytest.raises(RubricError, match="groups are nested deeper than 100 levels; make the tree flatter"):
        Rubric([endless])


def tower(depth: int) -> list[Any]:
    """So many groups in one another, a scale at the bottom."""
    options = [{"label": "a", "value": 0.0}, {"label": "b", "value": 1.0}]
    members: list[Any] = [{"name": "leaf", "requirement": "r", "options": options}]
    for level in range(depth):
        members = [{"name": f"g{level}", "criteria": members}]
    return members


def test_the_deepest_tree_fits_in_every_file(tmp_path: Path) -> None:
    """A hundred levels can be written and read, in a rubric's file and in a dataset's."""
    rubric = Rubric(tower(100))
    for suffix in ("yaml", "json", "toml"):
        rubric.to_file(tmp_path / f"r.{suffix}")
        assert Rubric.from_file(tmp_path / f"r.{suffix}") == rubric
    dataset = RubricDataset(items=[{"submission": "s", "rubric": rubric.to_dict()}])
    for suffix in ("yaml", "json", "jsonl"):
        dataset.to_file(tmp_path / f"d.{suffix}")
        assert RubricDataset.from_file(tmp_path / f"d.{suffix}").get_item_rubric(0) == rubric
    with pytest.raises(RubricError, match="deeper than 100"):
        Rubric(tower(101))


# Files

names = st.text("abcdef", min_size=1, max_size=3)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Rubric files with groups, and perhaps sections, gates, bonuses and conditions."""
    count = iter(range(10_000))

    def criterion() -> dict[str, Any]:
        weight = draw(st.sampled_from([0.0, 1.0, 2.5, 10.0]))
        fields: dict[str, Any] = {"name": f"c{next(count)}", "requirement": "r", "weight": weight}
        fields["gate"] = draw(st.sampled_from([None, "required", {"at_least": 0.5, "cap": 0.25}]))
        fields["when"] = draw(st.sampled_from([None, "first", {"criterion": "first", "at_least": 0.5}]))
        return fields

    def members(depth: int) -> list[dict[str, Any]]:
        made = [criterion() for _ in range(draw(st.integers(1, 2)))]
        made.append({"name": f"b{next(count)}", "requirement": "r", "bonus": draw(st.booleans())})
        if depth and draw(st.booleans()):
            made.append({"name": f"g{next(count)}", "weight": 2.0, "criteria": members(depth - 1)})
        return made

    first = {"name": "first", "requirement": "r"}
    if draw(st.booleans()):
        sections = [{"name": f"s{i}", "criteria": members(2)} for i in range(draw(st.integers(1, 2)))]
        return {"sections": [{"name": "head", "criteria": [first]}, *sections]}
    return {"criteria": [first, *members(3)]}


SCHEMA = jsonschema.Draft202012Validator(Rubric.json_schema())


@settings(deadline=None, max_examples=50)
@given(documents())
def test_nested_rubrics_come_back_as_they_were(document: dict[str, Any]) -> None:
    """From mappings, stores, pickles and copies; what is written is valid under the schema."""
    rubric = Rubric.from_dict(document)
    written = rubric.to_dict()
    assert json.loads(json.dumps(written)) == written
    assert Rubric.from_dict(written) == rubric
    assert Rubric.restore(rubric.snapshot()) == rubric
    assert copy.deepcopy(rubric) == rubric
    assert pickle.loads(pickle.dumps(rubric)) == rubric  # noqa: S301
    assert Rubric.from_json(json.dumps(document)) == rubric
    for mapping in (document, written, {"rubric": written}):
        SCHEMA.validate(mapping)


@pytest.mark.parametrize("suffix", ["yaml", "json", "toml"])
def test_files_of_every_format(tmp_path: Path, suffix: str) -> None:
    """Groups stand in all three."""
    nested().to_file(tmp_path / f"rubric.{suffix}")
    assert Rubric.from_file(tmp_path / f"rubric.{suffix}") == nested()


def test_what_a_file_says() -> None:
    """Short forms are written where they do, and nothing at its default."""
    content = nested().to_dict()["criteria"][0]
    assert content["criteria"][0] == {
        "name": "right",
        "requirement": "It is right.",
        "weight": 3.0,
        "gate": "required",
    }
    assert content["criteria"][1]["criteria"][1]["when"] == "criterion_2"


def test_sections_label_and_groups_weigh() -> None:
    """A section may hold groups; it lists their leaves, and the score does not know of it."""
    group = {"name": "g", "criteria": [{"name": "b", "requirement": "r"}, {"name": "c", "requirement": "r"}]}
    one = {"name": "a", "requirement": "r"}
    rubric = Rubric.from_dict(
        {
            "sections": [
                {"name": "s", "criteria": [one, group]},
                {"name": "t", "criteria": [{"name": "d", "requirement": "r"}]},
            ]
        }
    )
    assert {name: [c.name for c in held] for name, held in rubric.sections.items()} == {
        "s": ["a", "b", "c"],
        "t": ["d"],
    }
    labels = {"a": "MET", "b": "MET", "c": "UNMET", "d": "UNMET"}
    assert rubric.compute_score(labels) == pytest.approx(1.5 / 3)
    assert Rubric(rubric.root.criteria).compute_score(labels) == rubric.compute_score(labels)
    assert Rubric(rubric.root.criteria) != rubric


FAULTY: list[Any] = [
    {"name": "a", "requirement": "r", "when": "b"},
    {"name": "b", "requirement": "r", "when": {"criterion": "c"}},
    {"name": "c", "requirement": "r", "when": "a"},
    {"name": "own", "requirement": "r", "when": "own"},
    {"name": "lost", "requirement": "r", "when": "ownn"},
    {"name": "onto", "requirement": "r", "when": "g"},
    {
        "name": "g",
        "weight": -2,
        "gate": "required",
        "criteria": [
            {"name": "a", "requirement": "r"},
            {"name": "a2", "requirement": "r", "when": "remarks"},
            {"name": "b", "criteria": [{"requirement": "r"}]},
            {"name": "g", "requirement": "r"},
        ],
    },
    {"name": "empty", "criteria": []},
    {"weight": "heavy", "criteria": [{"name": "n1", "requirement": "r"}]},
    {"name": "extras", "criteria": [{"name": "n2", "requirement": "r", "bonus": True}]},
    {"type": "test_remarks", "name": "remarks", "gate": "required"},
]


def test_all_faults_of_a_tree_at_once() -> None:
    """Each fault is told once, with its place and what to do."""
    with pytest.raises(RubricError) as caught:
        Rubric(FAULTY)
    assert str(caught.value).split("\n")[1:] == [
        "  - criteria[6].gate: unknown key 'gate'; allowed: 'name', 'weight', 'criteria'",
        "  - criteria[6].weight: the weight of a group must be a non-negative number; got -2. Only criteria "
        "can be penalties",
        "  - criteria[6].criteria[0].name: the name 'a' is already used by an earlier criterion",
        "  - criteria[6].criteria[2].name: the name 'b' is already used by an earlier criterion",
        "  - criteria[6].criteria[3].name: the name 'g' is already used by an earlier group",
        "  - criteria[7].criteria: criteria must not be empty; add at least one",
        "  - criteria[8].name: a group must have a name; got None",
        "  - criteria[8].weight: the weight of a group must be a non-negative number; got 'heavy'. "
        "Only criteria can be penalties",
        "  - criteria[9]: a group must not contain only bonuses; add another criterion",
        "  - criteria[4].when: unknown criterion 'ownn'; did you mean 'own'?",
        "  - criteria[5].when: 'g' is a group; a condition must name a criterion",
        "  - criteria[6].criteria[1].when: 'remarks' has no value in [0, 1], so no condition can use it",
        "  - criteria[10].gate: the criterion has no value in [0, 1], so it cannot be a gate",
        "  - criteria[0].when: conditions form a cycle: a → b → c → a",
        "  - criteria[3].when: conditions form a cycle: own → own",
    ]


@pytest.mark.parametrize(
    ("criteria", "told"),
    [
        ([{"requirement": "r", "bonus": True}], "must not contain only bonuses"),
        ([{"name": "a", "requirement": "r", "when": ""}], "at least 1 character"),
        ([{"name": "a", "requirement": "r", "weight": -1, "gate": "required"}], "penalty cannot have a gate"),
        ([{"name": "a", "requirement": "r", "weight": -1, "bonus": True}], "a penalty cannot be a bonus"),
        ([{"name": "a", "requirement": "r", "gate": {"at_least": 1.5}}], "less than or equal to 1"),
        ([{"name": "a", "requirement": "r", "gate": {"atleast": 1.0}}], "unknown key 'atleast'"),
        (
            [{"requirement": "r"}, {"requirement": "r", "bonus": "yes"}],
            "the value must be a boolean; got 'yes', a string",
        ),
        ([{"name": "", "criteria": [{"requirement": "r"}]}], "a group must have a name"),
        ([{"name": "g", "weight": True, "criteria": [{"requirement": "r"}]}], "got True"),
        ([{"name": "g", "weight": 10**400, "criteria": [{"requirement": "r"}]}], "a non-negative number"),
        ([{"name": "g", "criteria": 5}], "criteria must be a list; got 5"),
    ],
)
def test_single_faults(criteria: Any, told: str) -> None:
    """What a gate, a bonus, a condition or a group may not be."""
    with pytest.raises(RubricError, match=told) as caught:
        Rubric(criteria)
    assert len(caught.value.faults) == 1


def test_an_unreadable_criterion_makes_no_name_unknown() -> None:
    """Where a criterion could not be read, nobody knows which name it would have had."""
    with pytest.raises(RubricError) as caught:
        Rubric([{"name": "a"}, {"name": "b", "requirement": "r", "when": "a"}])
    assert [fault.message for fault in caught.value.faults] == ["the key 'requirement' is missing"]


def test_automatic_names_keep_clear_of_groups() -> None:
    """A nameless criterion does not take a group's name."""
    rubric = Rubric([{"name": "criterion_1", "criteria": [{"requirement": "r"}]}])
    assert rubric.names == ("criterion_1_2",)


# Scores


@pytest.mark.parametrize(
    ("labels", "score"),
    [
        (["MET", "MET", "MET", "MET", "UNMET"], 1.0),
        # sources 1/11, content (3 + 10/11) / 13
        (["MET", "MET", "UNMET", "MET", "UNMET"], (6 * (3 + 10 / 11) / 13 + 2) / 8),
        # without a source its date does not apply
        (["MET", "UNMET", "MET", "MET", "UNMET"], (6 * 3 / 13 + 2) / 8),
        (["UNMET", "MET", "MET", "MET", "UNMET"], 2 / 8),
        (["UNMET", "MET", "MET", "MET", "MET"], 3 / 8),
        # nobody knows whether the gate holds, so nobody knows the score
        (["CANNOT_ASSESS", "MET", "MET", "MET", "UNMET"], None),
        ([None, "MET", "MET", "UNMET", "UNMET"], None),
    ],
)
def test_score_of_labels(labels: list[Any], score: float | None) -> None:
    """Labels of the leaves give the tree's score, by the core that the grader uses."""
    assert nested().compute_score(labels) == pytest.approx(score)
    assert nested().compute_score(dict(zip(nested().names, labels, strict=True))) == pytest.approx(score)


def test_open_gates_in_labels() -> None:
    """A gate in the root without a label, or left open, leaves no score; a policy may give it a value."""
    rubric = Rubric(
        [{"name": "safe", "requirement": "r", "gate": "required"}, {"name": "b", "requirement": "r"}]
    )
    assert rubric.compute_score({"b": "MET"}) is None
    assert rubric.compute_score(["CANNOT_ASSESS", "MET"]) is None
    assert (
        rubric.compute_score(["CANNOT_ASSESS", "MET"], cannot_assess_strategy=CannotAssessStrategy.ZERO)
        == 0.0
    )


def test_the_total_weight_is_what_divides() -> None:
    """Of the root's criteria and groups, without bonuses."""
    assert nested().total_positive_weight == 8.0
    dataset = RubricDataset(rubric=nested())
    assert dataset.total_positive_weight == 8.0
    assert dataset.compute_weighted_score(["MET"] * 5) == 1.0
    assert nested().compute_score(["MET"] * 5, normalize=False) == 9.0


def test_votes_do_not_depend_on_what_is_done_with_them() -> None:
    """Gates, bonuses and conditions are no part of what a judge is asked."""
    bare = Criterion(name="a", requirement="r")
    full = Criterion(name="a", requirement="r", gate="required", bonus=True, when="b")
    assert bare.vote_fields() == full.vote_fields()


def test_no_reply_has_a_field_of_the_criterion() -> None:
    """A kind whose reply had a `bonus` would be one itself, unawares."""
    with pytest.raises(ArgumentError, match=r"Extra\.bonus: every criterion already has a field 'bonus'"):

        class Extra(BaseCriterion):
            bonus: BoundInt = BoundInt(min_val=0, max_val=2)  # type: ignore[assignment]


def test_labels_fit_the_leaves() -> None:
    """Labels are for criteria; a group takes none."""
    with pytest.raises(ArgumentError, match="unknown criterion 'content'"):
        nested().compute_score({"content": "MET"})


def test_text_criteria_stand_in_groups() -> None:
    """What measures nothing may stand anywhere and weighs nothing."""
    rubric = Rubric([RubricGroup("g", [Remarks(name="r"), Criterion(name="a", requirement="r")])])
    assert rubric.compute_score({"a": "MET", "r": {"remark": "fine"}}) == 1.0


def test_parts_of_criteria_keep_their_names() -> None:
    """A checklist's item is a row `name/key` in metrics, so no criterion is called so."""
    checklist = {"type": "checklist", "name": "a", "requirement": "r", "items": {"x": "has x"}}
    with pytest.raises(RubricError, match="the name 'a/x' is already used for a metrics row of 'a'"):
        Rubric([{"name": "a/x", "requirement": "r"}, checklist])
