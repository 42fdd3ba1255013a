"""The page on file formats: its tables of keys are those of the classes, and its examples are read."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from autorubric import Rubric, RubricDataset, load_run, merge_labels
from autorubric.apps.drafts.drafts import Draft, read_drafts
from autorubric.criteria import BaseCriterion, TranscriptCheck
from autorubric.datasets import DataItem
from autorubric.datasets.ratings import LongRow, read_long_table
from autorubric.runs import GradedItem
from autorubric.runs.lines import StoredItem
from autorubric.runs.run_file import JudgeEntry, run_file_schema
from autorubric.scoring import JudgeVote, ProbabilityCalibration

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "formats.md"
_TABLE = re.compile(r"(<!-- keys: (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)
_EXAMPLE = re.compile(r"`([\w.]+)`[^`]*:\n\n```\w+\n(.*?)```", re.DOTALL)
_ATTRIBUTE = re.compile(r"^    (\w+): (.+(?:\n {6,}.+)*)", re.MULTILINE)


def _meanings(*kinds: type) -> dict[str, str]:
    """What the docstrings of classes say of their attributes."""
    found: dict[str, str] = {}
    for kind in kinds:
        _, _, listed = (inspect.getdoc(kind) or "").partition("Attributes:\n")
        found |= {name: " ".join(text.split()) for name, text in _ATTRIBUTE.findall(listed)}
    return found


def _explained(*kinds: type, only: tuple[str, ...] = (), without: tuple[str, ...] = ()) -> str:
    meanings = _meanings(*kinds)
    rows = [
        f"| `{name}` | {text.replace('|', chr(92) + '|')} |"
        for name, text in meanings.items()
        if name not in without and (not only or name in only)
    ]
    return "\n".join(["| Key | Meaning |", "|---|---|", *rows])


def _declared(schema: Mapping[str, Any]) -> str:
    """The keys of a JSON schema with their types and defaults."""
    definitions = schema.get("$defs", {})
    rows = []
    for name, given in schema["properties"].items():
        wanted = " or ".join(dict.fromkeys(_types(given, definitions))) or "mapping"
        default = "required" if name in schema.get("required", ()) else given.get("default")
        shown = "–" if default in (None, [], {}) else default if default == "required" else f"`{default}`"
        rows.append(f"| `{name}` | {given.get('description', '')} | {wanted} | {shown} |")
    return "\n".join(["| Key | Meaning | Type | Default |", "|---|---|---|---|", *rows])


def _types(given: Mapping[str, Any], definitions: Mapping[str, Any]) -> list[str]:
    if "$ref" in given:
        return _types(definitions[given["$ref"].rpartition("/")[2]], definitions)
    for key in ("anyOf", "oneOf", "allOf"):
        if key in given:
            return [one for each in given[key] for one in _types(each, definitions)]
    if "const" in given or "enum" in given:
        return [f"`{value}`" for value in given.get("enum", [given.get("const")])]
    names = {"object": "mapping", "array": "list", "string": "text", "null": ""}
    kind = given.get("type", "")
    return [names.get(kind, kind)] if names.get(kind, kind) else []


TABLES: Mapping[str, str] = {
    "criterion": _explained(BaseCriterion),
    "check": _explained(TranscriptCheck),
    "item": _explained(DataItem),
    "label row": _explained(LongRow, without=("line",)),
    "run file": _declared(run_file_schema()),
    "judge": _declared(JudgeEntry.model_json_schema()),
    "vote": _explained(JudgeVote),
    "calibration": _explained(ProbabilityCalibration),
    "stored item": _explained(GradedItem, StoredItem),
    "draft": _explained(Draft, only=("id", "prompt", "output", "contract")),
}


def test_the_tables_are_those_of_the_classes() -> None:
    """Each key with its meaning; AUTORUBRIC_UPDATE_GOLDEN=1 writes them."""
    text = PAGE.read_text(encoding="utf-8")
    assert {found[2] for found in _TABLE.finditer(text)} == set(TABLES)
    made = _TABLE.sub(lambda found: f"{found[1]}{TABLES[found[2]]}\n{found[3]}", text)
    if os.environ.get("AUTORUBRIC_UPDATE_GOLDEN") == "1":
        PAGE.write_text(made, encoding="utf-8")
    assert made == text


@pytest.mark.parametrize("kind", [GradedItem, StoredItem, JudgeVote])
def test_every_key_of_a_line_is_explained(kind: Any) -> None:
    """A field without a line in the docstring would be missing from the page."""
    meant = _meanings(GradedItem, StoredItem, JudgeVote)
    assert {field.name for field in fields(kind)} <= set(meant)


def test_the_examples_are_read(tmp_path: Path) -> None:
    """Every named example is a file that the library reads, together with the others."""
    examples = dict(_EXAMPLE.findall(PAGE.read_text(encoding="utf-8")))
    for name, content in examples.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    rubric = Rubric.from_file(tmp_path / "rubric.yaml")
    assert list(rubric.names) == ["apology", "tone", "blame"]
    lines = RubricDataset.from_file(tmp_path / "dataset.jsonl", rubric=rubric)
    assert [lines.item_truth(at) is not None for at in range(2)] == [True, True]
    table = RubricDataset.from_file(tmp_path / "dataset.csv", rubric=rubric)
    assert table[1].metadata == {"channel": "chat"}
    assert merge_labels(lines, [tmp_path / "labels.jsonl"]).dataset[0].ratings["ada"] == {"apology": "MET"}
    assert [row.rater for row in read_long_table(tmp_path / "labels.csv")] == ["ada", "model-a"]
    assert len(read_long_table(tmp_path / "wide.csv")) == 3
    assert len(load_run(tmp_path / "autorubric.yaml").dataset) == 2
    assert [getattr(one, "id", one) for one in read_drafts(tmp_path / "drafts.jsonl")] == ["d1", "2"]
