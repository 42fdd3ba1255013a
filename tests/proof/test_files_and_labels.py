"""Real data through the importers, field maps, annotation pages, disputes and exports."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from autorubric import RecordedJudge, RubricDataset, disputed_items, from_paperbench
from autorubric.metrics import human_agreement
from autorubric.reports import annotation_page
from tests.proof.real_data import (
    llm_rubric,
    load_json,
    load_lines,
    pairs,
    paperbench,
    reference,
    run,
    summhay,
    ttcw,
)

pytestmark = pytest.mark.shared_data

SETS: dict[str, Callable[[Path], RubricDataset]] = {
    "ttcw": ttcw,
    "summhay": summhay,
    "llm_rubric": llm_rubric,
    "llmbar": pairs,
    "ragchecker": lambda folder: pairs(folder, margin=2),
    "paperbench": paperbench,
}


def nested(nodes: list[dict[str, Any]]) -> dict[str, Any]:
    """A tree given as a list, in the shape that the benchmark publishes."""
    made = {
        node["id"]: {
            "id": node["id"],
            "requirements": node["requirement"],
            "weight": node["weight"],
            "sub_tasks": [],
            "task_category": node.get("category"),
        }
        for node in nodes
    }
    root: dict[str, Any] = {}
    for node in nodes:
        if node["parent"] is None:
            root = made[node["id"]]
        else:
            made[node["parent"]]["sub_tasks"].append(made[node["id"]])
    return root


def test_the_published_trees_are_imported(shared_data: Path, tmp_path: Path) -> None:
    """From the benchmark's own shape come the same trees, and the published root scores."""
    folder = shared_data / "paperbench"
    trees, dataset, wanted = (
        load_json(folder / "rubric.json")["rubrics"],
        paperbench(folder),
        reference(folder),
    )
    for name, nodes in trees.items():
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(nested(nodes)), encoding="utf-8")
        rubric = from_paperbench(path).rubric
        assert rubric is not None
        place = list(dataset.item_ids()).index(name)
        assert sorted(rubric.names) == sorted(dataset.get_item_rubric(place).names)
        labels = dataset.item_truth(place) or {}
        found = rubric.compute_score({one: labels[one] for one in rubric.names})
        assert found == pytest.approx(wanted[f"{name}/root"]["published"], abs=1e-9)


@pytest.mark.parametrize("name", SETS)
def test_pages_of_real_data(shared_data: Path, name: str) -> None:
    """Every item and criterion is on the page, and nothing that anybody said of them."""
    dataset = SETS[name](shared_data / name)
    page = annotation_page(dataset)
    found = re.search(r'id="content">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    items = json.loads(found[1])["items"]
    assert [one["id"] for one in items] == list(dataset.item_ids())
    for place, one in enumerate(items):
        assert [each["name"] for each in one["criteria"]] == list(dataset.get_item_rubric(place).names)
    assert '"ratings"' not in found[1]


def test_people_of_a_real_set(shared_data: Path) -> None:
    """Three experts a story: where their labels differ, and nowhere else, the story is handed out."""
    dataset = ttcw(shared_data / "ttcw")
    found = human_agreement(dataset, n_resamples=20)
    assert len(found.raters) == 11
    assert len(found.reliability) == 14
    handed_out = disputed_items(dataset)
    cells = {(item.id, name) for item in handed_out for name in item.metadata["disputed"]}
    apart = {
        (dataset.item_id(i), name)
        for i in range(len(dataset))
        for name in dataset.get_item_rubric(i).names
        if len({labels[name] for labels in dataset.item_ratings(i).values() if name in labels}) > 1
    }
    assert cells == apart


@pytest.mark.slow
def test_a_real_run_is_exported(shared_data: Path, tmp_path: Path) -> None:
    """Every format holds every item; JSON lines come back through a field map."""
    folder = shared_data / "ttcw"
    judges = RecordedJudge.panel_from_csv(folder / "labels.csv")
    result = run(ttcw(folder), judges, tmp_path)
    scores = pd.read_parquet(io.BytesIO(result.export("parquet")))
    assert len(scores) == result.total_items
    assert scores["score"].mean() == pytest.approx(result.item_results.tally.mean_score)
    assert result.export("junit").count(b"<testcase") == result.total_items
    path = tmp_path / "scores.jsonl"
    path.write_bytes(result.export("jsonl"))
    back = RubricDataset.from_file(path, submission="answer.test01", id="item_id", metadata=[])
    assert list(back.item_ids()) == list(result.dataset.item_ids())


def test_rows_of_a_real_set_are_read_by_their_names(shared_data: Path) -> None:
    """The neutral files name things otherwise; a field map reads them as they stand."""
    path = shared_data / "llm_rubric" / "items.jsonl"
    dataset = RubricDataset.from_file(path, id="item_id", submission="submission", metadata=[])
    assert list(dataset.item_ids()) == [row["item_id"] for row in load_lines(path)]
