"""The annotation page as text: what is in it and what is not, and that every form's answers are labels."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from autorubric import BaseCriterion, Rubric, RubricDataset
from autorubric.criteria import BoolField, BoundInt, ChoiceField, DictField, Submission, TextField
from autorubric.errors import ArgumentError
from autorubric.reports import annotation_page, write_annotation_page
from autorubric.reports.labelling import form_of
from tests.reports.annotate.conftest import COMPARING, HOSTILE, RUBRIC, labelled_dataset


def embedded(page: str) -> Any:
    """The page's data."""
    found = re.search(r'<script type="application/json" id="content">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_the_page_is_blind() -> None:
    """Nothing that a judge, a rater or the truth said is in it, and no metadata."""
    page = annotation_page(labelled_dataset())
    assert "secret-" not in page
    assert "ground_truth" not in page
    assert "ratings" not in page


def test_the_policy_lets_in_this_program_and_these_styles_alone() -> None:
    """Hashes of the one script and the one style; nothing inline besides, and no address of anything."""
    page = annotation_page(labelled_dataset())
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    told = policy[1].replace("&#39;", "'")
    assert told.startswith("default-src 'none'; ")
    assert "unsafe" not in told
    for tag in ("script", "style"):
        text = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        assert len(text) == 1
        digest = base64.b64encode(hashlib.sha256(text[0].encode("utf-8")).digest()).decode("ascii")
        assert f"{tag}-src 'sha256-{digest}'" in told
    assert "http://" not in page
    assert "https://" not in page
    assert not re.search(r"\son\w+=|style=", page.split("<script")[0])


def test_texts_cannot_leave_their_place() -> None:
    """A text that holds markup stands in the data escaped, and in the title too."""
    dataset = labelled_dataset()
    page = annotation_page(dataset, title=f"<i>{HOSTILE}")
    assert page.count("</script>") == 2
    assert "<img" not in page
    assert embedded(page)["items"][0]["text"].endswith(HOSTILE)
    assert embedded(page)["title"] == f"<i>{HOSTILE}"


def test_the_page_holds_what_a_rater_needs() -> None:
    """Texts, prompts, references, guidelines and every criterion of each item."""
    content = embedded(annotation_page(labelled_dataset(), seed=3))
    first, last = content["items"][0], content["items"][-1]
    assert (first["prompt"], first["reference"]) == ("Write.", "A reference.")
    assert [one["name"] for one in first["criteria"]] == list(RUBRIC.names)
    assert content["guidelines"][first["guidelines"]] == "Read twice. <b>Judge once.</b>"
    assert content["guidelines"][last["guidelines"]] is None
    assert [one["name"] for one in last["criteria"]] == list(COMPARING.names)
    assert content["seed"] == 3


def test_groups_and_conditions_are_told() -> None:
    """Where a criterion stands in the tree, and what it depends on."""
    rubric = Rubric.from_dict(
        [
            {"name": "a", "requirement": "x"},
            {
                "name": "g",
                "criteria": [{"name": "h", "criteria": [{"name": "b", "requirement": "y", "when": "a"}]}],
            },
        ]
    )
    content = embedded(annotation_page(RubricDataset(rubric=rubric, items=[{"submission": "t"}])))
    told = content["items"][0]["criteria"][1]
    assert (told["group"], told["when"]) == ("g › h", "a")


class Odd(BaseCriterion):
    """A kind of a user's own with several fields."""

    points: BoundInt = BoundInt(min_val=0, max_val=3)
    fine: BoolField = BoolField()
    shade: ChoiceField = ChoiceField(choices=("light", "dark"))
    counts: DictField = DictField(value_type=int)
    why: TextField = TextField()


def answers_of(form: dict[str, Any]) -> list[Any]:
    """What can be put into a form: every choice, both ends of numbers, one of all else."""
    match form["kind"]:
        case "choice" | "compare":
            return [one["code"] for one in form["choices"]]
        case "number":
            return [form["min"], form["max"]]
        case "texts":
            return ["words"] if form["bare"] else [dict.fromkeys(form["keys"], "words")]
        case "ranking":
            names = form["names"]
            return [names, names[::-1], [names], [names[0], names[1:]]]
        case "parts":
            by_key = {one["key"]: answers_of(one["form"]) for one in form["parts"]}
            return [{key: given[at] for key, given in by_key.items()} for at in (0, -1)]
        case "json":
            return [{"a": 1}]
        case other:
            raise AssertionError(other)


@pytest.mark.parametrize(
    ("criterion", "candidates"),
    [
        *((one, {}) for one in RUBRIC),
        *((one, {"a": "A.", "b": "B."}) for one in COMPARING),
        (COMPARING.by_name("order"), {"a": "A.", "b": "B.", "tie": "C."}),
        (COMPARING.by_name("best"), {"a": "A.", "b": "B.", "c": "C."}),
        (Odd(name="odd"), {}),
        (Rubric([{"name": "many", "type": "likert", "rating": {"min_val": 0, "max_val": 100}}])[0], {}),
        (
            Rubric(
                [
                    {
                        "name": "whole",
                        "type": "holistic_rubric",
                        "levels": [
                            {"name": "low", "index": 0, "description": "l"},
                            {"name": "high", "index": 1, "description": "h"},
                        ],
                    }
                ]
            )[0],
            {},
        ),
        (Rubric([{"name": "pf", "type": "pass_fail", "requirement": "x"}])[0], {}),
    ],
    ids=lambda given: given.name if isinstance(given, BaseCriterion) else str(len(given)),
)
def test_what_is_filled_in_is_a_label(criterion: BaseCriterion, candidates: dict[str, str]) -> None:
    """Whatever the level, every answer of the form is one that the criterion reads."""
    bound = criterion.bind(Submission.parse(candidates or "text"))
    form = form_of(bound, candidates)
    given = answers_of(form)
    assert given
    for answer in given:
        read = bound.parse_truth(answer)
        assert read is not None
        assert not read.cannot_assess
    abstained = bound.parse_truth("CANNOT_ASSESS")
    assert abstained is not None
    assert abstained.cannot_assess or bound.level == "text"


def test_forms_by_level() -> None:
    """Few answers are buttons, many a number; numbers have their bounds."""
    forms = {one.name: form_of(one, {}) for one in RUBRIC}
    assert [one["code"] for one in forms["clear"]["choices"]] == ["MET", "UNMET"]
    assert [one["code"] for one in forms["depth"]["choices"]] == [1, 2, 3, 4, 5]
    assert forms["share"] == {"kind": "number", "min": 0.0, "max": 100.0, "whole": False}
    assert [one["key"] for one in forms["craft"]["parts"]] == ["style_score", "order_score"]
    assert [one["code"] for one in forms["tone"]["choices"]] == ["rude", "kind", "none"]


def test_only_disputed_criteria_are_asked_for() -> None:
    """Where an item says what is in dispute; and what was said is not told."""
    items = [{"submission": "t", "metadata": {"disputed": {"tone": {"people": {"secret-eve": "rude"}}}}}]
    page = annotation_page(RubricDataset(rubric=RUBRIC, items=items))
    assert [one["name"] for one in embedded(page)["items"][0]["criteria"]] == ["tone"]
    assert "secret-" not in page


def test_pages_are_the_same_for_the_same_dataset(tmp_path: Path) -> None:
    """Byte by byte, so that hashes fit and files can be compared."""
    write_annotation_page(labelled_dataset(), tmp_path / "a.html")
    assert (tmp_path / "a.html").read_bytes() == annotation_page(labelled_dataset()).encode("utf-8")


@pytest.mark.parametrize(
    "dataset", [RubricDataset(rubric=RUBRIC), RubricDataset(items=[{"submission": "x"}])]
)
def test_nothing_to_label(dataset: RubricDataset) -> None:
    """Without items or a rubric there is no page."""
    with pytest.raises(ArgumentError):
        annotation_page(dataset)
