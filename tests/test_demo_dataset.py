"""The dataset shipped for the offline demonstration: its shape, its labels and its base rates."""

import json
import re
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

Record = dict[str, Any]

PATH = Path(__file__).parents[1] / "src" / "autorubric" / "demo" / "dataset.json"
DATA = json.loads(PATH.read_text(encoding="utf-8"))
ITEMS: list[Record] = DATA["items"]
CRITERIA: list[Record] = DATA["rubric"]["criteria"]
NAMES = [criterion["name"] for criterion in CRITERIA]
BINARY = [criterion for criterion in CRITERIA if "options" not in criterion]
CHOICES = [criterion for criterion in CRITERIA if "options" in criterion]


def allowed(criterion: Record) -> list[str]:
    """The labels that a criterion admits."""
    if "options" not in criterion:
        return ["MET", "UNMET"]
    return [option["label"] for option in criterion["options"]]


def counts(name: str, items: list[Record] = ITEMS) -> Counter[str]:
    """How often each label of a criterion was given."""
    return Counter(item["ground_truth"][name] for item in items)


def by_prompt() -> dict[str, list[Record]]:
    """The items grouped by their prompt."""
    groups: dict[str, list[Record]] = {}
    for item in ITEMS:
        groups.setdefault(item["prompt"], []).append(item)
    return groups


def five_grams(text: str) -> set[tuple[str, ...]]:
    """The runs of five words in a text."""
    words = re.findall(r"[a-z0-9']+", text.lower())
    return {tuple(words[start : start + 5]) for start in range(len(words) - 4)}


def test_file_is_plain_utf8_with_lf_and_indent_one() -> None:
    """The file is stored as it would be printed again: UTF-8, LF, indent 1."""
    raw = PATH.read_bytes()
    assert b"\r" not in raw
    assert raw.decode("utf-8") == json.dumps(DATA, ensure_ascii=False, indent=1) + "\n"


def test_header_names_format_and_synthetic_origin() -> None:
    """The header says the format, the name, and that the data are made up."""
    assert set(DATA) == {"format", "name", "metadata", "rubric", "items"}
    assert DATA["format"] == 1
    assert DATA["name"] == "support-replies"
    note = DATA["metadata"]["synthetic"]
    assert "by hand" in note
    assert "No real person" in note
    assert DATA["rubric"]["guidelines"].strip()


def test_sixty_or_more_submissions_with_unique_ids_and_texts() -> None:
    """There are enough submissions, and neither an id nor a text occurs twice."""
    assert len(ITEMS) >= 60
    assert len({item["id"] for item in ITEMS}) == len(ITEMS)
    assert len({" ".join(item["submission"].split()).lower() for item in ITEMS}) == len(ITEMS)


def test_items_carry_exactly_the_expected_fields() -> None:
    """Each item has its five fields, and every text in it is filled."""
    for item in ITEMS:
        assert set(item) == {"id", "prompt", "submission", "description", "ground_truth"}
        for key in ("id", "prompt", "submission", "description"):
            assert item[key] and item[key] == item[key].strip(), (item["id"], key)


def test_exactly_three_prompts_of_equal_share() -> None:
    """Three prompts share the submissions evenly, and ids tell the prompt."""
    groups = by_prompt()
    assert len(groups) == 3
    assert len({len(items) for items in groups.values()}) == 1
    for items in groups.values():
        assert len({item["id"].rsplit("-", 1)[0] for item in items}) == 1


def test_submissions_vary_in_length() -> None:
    """One reply is very short, none is overlong, and the rest spread widely."""
    lengths = sorted(len(item["submission"].split()) for item in ITEMS)
    assert lengths[0] < 15
    assert lengths[1] >= 35
    assert lengths[-1] <= 110
    assert lengths[-10] - lengths[10] >= 25


def test_no_two_submissions_are_near_duplicates() -> None:
    """No pair of replies shares more than a twentieth of the shorter one's five-word runs."""
    grams = {item["id"]: five_grams(item["submission"]) for item in ITEMS}
    for one, other in combinations(grams, 2):
        shorter = min(len(grams[one]), len(grams[other]))
        assert len(grams[one] & grams[other]) <= 0.05 * shorter, (one, other)


def test_criteria_have_both_signs_and_unique_names() -> None:
    """There are eight or more criteria, four rewards and two penalties among the binary ones."""
    assert len(CRITERIA) >= 8
    assert len(set(NAMES)) == len(NAMES)
    assert all(re.fullmatch(r"[a-z][a-z_]*", name) for name in NAMES)
    assert all(criterion["requirement"].strip() for criterion in CRITERIA)
    assert sum(criterion["weight"] > 0 for criterion in BINARY) >= 4
    assert sum(criterion["weight"] < 0 for criterion in BINARY) >= 2


def test_every_kind_of_criterion_is_present() -> None:
    """Binary, ordinal and nominal criteria occur, and an ordinal one has a not-applicable option."""
    kinds = {criterion["scale_type"] for criterion in CHOICES}
    assert BINARY
    assert kinds == {"ordinal", "nominal"}
    assert any(
        option.get("na") is True
        for criterion in CHOICES
        if criterion["scale_type"] == "ordinal"
        for option in criterion["options"]
    )


@pytest.mark.parametrize("criterion", CHOICES, ids=lambda criterion: criterion["name"])
def test_options_are_well_formed(criterion: Record) -> None:
    """Options have unique labels and values in [0, 1], rising where the scale is ordinal."""
    options = criterion["options"]
    labels = [option["label"] for option in options]
    assert len(set(labels)) == len(labels) >= 3
    assert all(0.0 <= option["value"] <= 1.0 for option in options)
    assert all(set(option) <= {"label", "value", "na"} for option in options)
    if criterion["scale_type"] == "ordinal":
        values = [option["value"] for option in options if not option.get("na")]
        assert values == sorted(set(values))


@pytest.mark.parametrize("criterion", CRITERIA, ids=lambda criterion: criterion["name"])
def test_each_item_has_an_allowed_label(criterion: Record) -> None:
    """Every item is labelled on every criterion, with a label that the criterion admits."""
    for item in ITEMS:
        assert list(item["ground_truth"]) == NAMES
        assert item["ground_truth"][criterion["name"]] in allowed(criterion), item["id"]


@pytest.mark.parametrize("criterion", BINARY, ids=lambda criterion: criterion["name"])
def test_binary_base_rates_are_mixed(criterion: Record) -> None:
    """Each binary criterion has enough of both answers, overall and within each prompt."""
    total = counts(criterion["name"])
    assert total["MET"] >= 12
    assert total["UNMET"] >= 12
    for items in by_prompt().values():
        assert min(counts(criterion["name"], items)[label] for label in ("MET", "UNMET")) >= 3


@pytest.mark.parametrize("criterion", CHOICES, ids=lambda criterion: criterion["name"])
def test_every_option_is_used(criterion: Record) -> None:
    """Each option occurs six times or more, twice or more within each prompt, and none dominates."""
    total = counts(criterion["name"])
    for label in allowed(criterion):
        assert 6 <= total[label] <= len(ITEMS) - 12, label
        assert all(counts(criterion["name"], items)[label] >= 2 for items in by_prompt().values()), label
