"""The real judge data as datasets, labels and reference figures; nothing of it is in the repository."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from autorubric import (
    ComparativeCriterion,
    Criterion,
    CriterionGrader,
    CriterionOption,
    DataItem,
    EvalResult,
    Rubric,
    RubricDataset,
    evaluate_sync,
)
from autorubric.judges import Judge
from tests.conftest import SHARED_DATA


def load_json(path: Path) -> Any:
    """What a JSON file holds."""
    return json.loads(path.read_text(encoding="utf-8"))


def load_lines(path: Path) -> list[dict[str, Any]]:
    """What a JSON lines file holds."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def reference(folder: Path) -> dict[str, dict[str, Any]]:
    """Reference values by id."""
    return {entry["id"]: entry for entry in load_json(folder / "reference_values.json")}


@cache
def references(name: str) -> dict[str, dict[str, Any]]:
    """Reference values of a data set by id; none where the data is absent."""
    folder = SHARED_DATA / name
    return reference(folder) if folder.is_dir() else {}


def reference_ids(name: str) -> list[str]:
    """Ids of a data set's reference values; a stand-in where it is absent, for a test that is skipped."""
    return list(references(name)) or ["absent"]


@cache
def cells(name: str) -> dict[str, dict[tuple[str, str], str]]:
    """The labels of a data set: by rater, then by item and criterion."""
    found: dict[str, dict[tuple[str, str], str]] = defaultdict(dict)
    for row in read_csv(SHARED_DATA / name / "labels.csv"):
        found[row["rater"]][row["item_id"], row["criterion"]] = row["value"]
    return dict(found)


def agrees(found: float | None, wanted: dict[str, Any]) -> bool:
    """Whether a figure is the reference: in full, and to the printed decimals where it was published."""
    if wanted["value"] is None or found is None:
        return found is wanted["value"]
    printed = wanted["published"]
    in_full = abs(found - wanted["value"]) <= 1e-9
    return in_full and (printed is None or round(found, wanted["decimals"]) == printed)


def run(dataset: RubricDataset, judges: Sequence[Judge], folder: Path) -> EvalResult:
    """A run of judges as a panel."""
    grader = CriterionGrader(judges=list(judges))
    return evaluate_sync(dataset, grader, experiment_name="run", experiments_dir=folder, show_progress=False)


def ttcw(folder: Path) -> RubricDataset:
    """48 stories, 14 yes/no tests; truth is the majority of three experts."""
    criteria = load_json(folder / "rubric.json")["criteria"]
    rubric = Rubric([Criterion(name=c["name"], requirement=c["requirement"], weight=1.0) for c in criteria])
    items = [
        DataItem(id=row["item_id"], prompt=row["prompt"], submission=row["submission"])
        for row in load_lines(folder / "items.jsonl")
    ]
    dataset = RubricDataset(name="ttcw", rubric=rubric, items=items)
    return dataset.with_ratings(folder / "labels.csv", labels={"Yes": "MET", "No": "UNMET"})


def summhay(folder: Path) -> RubricDataset:
    """200 summaries with a rubric each from one of 29; three levels of coverage."""
    content = load_json(folder / "rubric.json")
    scale = content["scale"]
    options = tuple(
        CriterionOption(label=label, value=value)
        for label, value in zip(scale["options"], scale["values"], strict=True)
    )
    rubrics = {
        key: Rubric(
            [
                Criterion(name=c["name"], requirement=c["requirement"], weight=1.0, options=options)
                for c in criteria
            ]
        )
        for key, criteria in content["rubrics"].items()
    }
    items = [
        DataItem(
            id=row["item_id"],
            prompt=row["prompt"],
            submission=row["submission"],
            rubric=rubrics[row["rubric_id"] if "rubric_id" in row else row["meta"]["rubric_id"]],
        )
        for row in load_lines(folder / "items.jsonl")
    ]
    return RubricDataset(name="summhay", items=items).with_ratings(folder / "labels.csv")


def llm_rubric(folder: Path) -> RubricDataset:
    """IT-help dialogues, nine questions answered 1 to 4 or NA."""
    criteria = []
    for entry in load_json(folder / "rubric.json")["criteria"]:
        top = len(entry["options"]) - 1
        options = [
            CriterionOption(label=label, value=position / top)
            for position, label in enumerate(entry["options"])
        ]
        if entry.get("na_option"):
            options.append(CriterionOption(label=entry["na_option"], value=0.0, na=True))
        criteria.append(
            Criterion(
                name=entry["name"], requirement=entry["requirement"], weight=1.0, options=tuple(options)
            )
        )
    items = [
        DataItem(id=row["item_id"], prompt=row.get("prompt"), submission=row.get("submission"))
        for row in load_lines(folder / "items.jsonl")
    ]
    dataset = RubricDataset(name="llm_rubric", rubric=Rubric(criteria), items=items)
    return dataset.with_ratings(folder / "labels.csv")


def paperbench(folder: Path) -> RubricDataset:
    """5 replications, each with a weighted tree of its own; truth is the human's leaf grades."""
    content = load_json(folder / "rubric.json")["rubrics"]
    rubrics = {key: Rubric(_members(nodes)) for key, nodes in content.items()}
    items = [
        DataItem(id=row["item_id"], prompt=row["prompt"], submission=None, rubric=rubrics[row["rubric_id"]])
        for row in load_lines(folder / "items.jsonl")
    ]
    return RubricDataset(name="paperbench", items=items).with_ratings(folder / "labels.csv")


def pairs(folder: Path, *, margin: int = 0, one_order: bool = False) -> RubricDataset:
    """The pairs of a folder as a dataset of comparisons."""
    criteria = [
        ComparativeCriterion(
            name=c["name"], requirement=c["requirement"], weight=1.0, margin=margin, both_orders=not one_order
        )
        for c in load_json(folder / "rubric.json")["criteria"]
    ]
    items = [
        DataItem(
            id=row["item_id"],
            prompt=row["prompt"],
            submission=row["submission"],
            metadata=row.get("meta", {}),
        )
        for row in load_lines(folder / "items.jsonl")
    ]
    dataset = RubricDataset(name=folder.name, rubric=Rubric(criteria), items=items)
    return dataset.with_ratings(folder / "labels.csv")


def _members(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What stands in the root of a tree, as a rubric file has it; inner nodes become groups."""
    below: dict[str | None, list[dict[str, Any]]] = {}
    for node in nodes:
        below.setdefault(node["parent"], []).append(node)

    def member(node: dict[str, Any]) -> dict[str, Any]:
        head = {"name": node["id"], "weight": node["weight"]}
        if node["id"] in below:
            return {**head, "criteria": [member(one) for one in below[node["id"]]]}
        return {**head, "requirement": node["requirement"]}

    (root,) = below[None]
    return [member(node) for node in below[root["id"]]]
