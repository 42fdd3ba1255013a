"""Importers for rubric benchmarks (HealthBench, PaperBench), and helpers that importers share."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from autorubric.criteria.values import Submission
from autorubric.datasets.dataset import RubricDataset
from autorubric.datasets.item import DataItem
from autorubric.errors import ArgumentError, DatasetError
from autorubric.rubric.rubric import Rubric
from autorubric.support.objects import Json
from autorubric.support.read import read_structured
from autorubric.support.reading_errors import Faults, FilePath, nearest_key, shortened

Submissions: TypeAlias = Mapping[str, Json]
"""Submissions by item id."""


def text_at(given: Mapping[str, Any], key: str, at: FilePath, faults: Faults) -> str:
    """Return the string under a key; if it is empty or not a string, add an error and return `""`."""
    text = given.get(key)
    if isinstance(text, str) and text.strip():
        return text
    wrong = f"{key} must be a non-empty string; got {shortened(text)}"
    faults.add((*at, key), wrong if key in given else f"the key {key!r} is missing")
    return ""


def number_at(given: Mapping[str, Any], key: str, default: float, at: FilePath, faults: Faults) -> float:
    """Return the finite number under a key, or the default; add an error if it is not a number."""
    number = given.get(key, default)
    if isinstance(number, (int, float)) and not isinstance(number, bool) and math.isfinite(number):
        return float(number)
    faults.add((*at, key), f"{key} must be a number; got {shortened(number)}")
    return default


def list_at(given: Mapping[str, Any], key: str, at: FilePath, faults: Faults) -> Sequence[Json]:
    """Return the list under a key, or an empty list if it is missing; add an error if it is not a list."""
    found = given.get(key)
    if found is None or isinstance(found, list):
        return found or []
    faults.add((*at, key), f"{key} must be a list; got {shortened(found)}")
    return []


def check_submissions(submissions: Submissions, known: Collection[str], source: str) -> None:
    """Check that the file has an item for every submission."""
    if not isinstance(submissions, Mapping):
        raise ArgumentError(f"submissions must map item ids to submissions; got {shortened(submissions)}")
    for key in submissions:
        if key not in known:
            raise ArgumentError(f"submissions: no item {key!r} in {source}; {nearest_key(str(key), known)}")


def conversation_text(turns: Json, at: FilePath, faults: Faults) -> str:
    """Convert a conversation to text; the content of a single user message is returned unchanged."""
    if isinstance(turns, str) and turns.strip():
        return turns
    try:
        if not isinstance(turns, list):
            raise ArgumentError(f"expected a list of {{'role', 'content'}}; got {shortened(turns)}")
        kept = [
            {key: turn[key] for key in ("role", "content") if key in turn}
            if isinstance(turn, Mapping)
            else turn
            for turn in turns
        ]
        if len(kept) == 1 and kept[0].get("role") == "user" and isinstance(kept[0].get("content"), str):
            return str(kept[0]["content"])
        return Submission.parse(kept).text or ""
    except (ArgumentError, AttributeError) as error:
        faults.add(at, str(error).replace("to_grade", "prompt"))
        return ""


_OWN = ("prompt", "prompt_id", "rubrics", "ideal_completions_data")


def from_healthbench(path: str | Path, *, submissions: Submissions | None = None) -> RubricDataset:
    """Create a dataset from HealthBench rows (JSON lines or a JSON list), with one item per row.

    A row is `{"prompt": [{"role", "content"}], "prompt_id", "rubrics": [{"criterion", "points", "tags"}]}`.
    Each item has its own rubric, whose weights are the points; criteria with negative points are penalties.
    An item's score is points met ÷ positive points, clipped to [0, 1], and its `raw_score` is the points met,
    not clipped. Use `healthbench_score` to compute the benchmark's own mean over a run. The item's metadata
    contains the tags by criterion and all other keys of the row. An ideal completion becomes the reference.

    Args:
        path: Path of the file.
        submissions: Responses by `prompt_id`, as strings. Items without a response have no submission and
            can be graded only by recorded judges.

    Raises:
        DatasetError: If the file cannot be read or has errors. All errors are reported with line numbers.
        ArgumentError: If `submissions` contains items that are not in the file.
    """
    document = read_structured(path, suffixes={".jsonl": "jsonl", ".json": "json"}, error=DatasetError)
    faults = document.faults()
    rows = document.data if isinstance(document.data, list) else [document.data]
    items = list(_items(rows, submissions or {}, faults))
    faults.raise_as(DatasetError)
    check_submissions(submissions or {}, [item.id or "" for item in items], str(path))
    return RubricDataset(items=items, name=Path(path).stem)


def _items(rows: Iterable[Json], submissions: Submissions, faults: Faults) -> Iterable[DataItem]:
    first: dict[str, int] = {}
    for position, row in enumerate(rows):
        at: FilePath = (position,)
        if not isinstance(row, Mapping):
            faults.add(at, f"a row must be a mapping with 'prompt' and 'rubrics'; got {shortened(row)}")
            continue
        before = len(faults)
        item_id = text_at(row, "prompt_id", at, faults)
        if item_id in first:
            faults.add((*at, "prompt_id"), f"{item_id!r} is already used by row {first[item_id] + 1}")
        first.setdefault(item_id, position)
        prompt = conversation_text(row.get("prompt"), (*at, "prompt"), faults)
        criteria, tags = _criteria(row, at, faults)
        rubric = Rubric._read_inside(criteria, faults, (*at, "rubrics")) if criteria else None
        if len(faults) == before and rubric is not None:
            more = {key: value for key, value in row.items() if key not in _OWN}
            yield DataItem(
                id=item_id,
                submission=submissions.get(item_id),
                prompt=prompt,
                rubric=rubric,
                reference_submission=_ideal(row.get("ideal_completions_data")),
                metadata={**more, "tags": tags},
            )


def _criteria(
    row: Mapping[str, Any], at: FilePath, faults: Faults
) -> tuple[list[dict[str, Json]], dict[str, list[Json]]]:
    """Return criteria in the format of rubric files, and their tags by name."""
    criteria: list[dict[str, Json]] = []
    tags: dict[str, list[Json]] = {}
    given = list_at(row, "rubrics", at, faults)
    if not given:
        faults.add((*at, "rubrics"), "a row must have 'rubrics', a list of {'criterion', 'points', 'tags'}")
    for position, one in enumerate(given):
        place: FilePath = (*at, "rubrics", position)
        if not isinstance(one, Mapping):
            faults.add(place, f"a criterion must be {{'criterion', 'points', 'tags'}}; got {shortened(one)}")
            continue
        if "points" not in one:
            faults.add(place, "the key 'points' is missing")
        name = f"criterion_{position + 1}"
        text = text_at(one, "criterion", place, faults)
        points = number_at(one, "points", 0.0, place, faults)
        criteria.append({"name": name, "requirement": text or "?", "weight": points})
        if found := list_at(one, "tags", place, faults):
            tags[name] = list(found)
    return criteria, tags


def _ideal(given: Json) -> str | None:
    ideal = given.get("ideal_completion") if isinstance(given, Mapping) else None
    return ideal if isinstance(ideal, str) else None


_MAX_DEPTH = 100


def from_paperbench(path: str | Path, *, submissions: Submissions | None = None) -> RubricDataset:
    """Create a dataset from a PaperBench rubric (JSON), with one item per submission.

    A node is `{"id", "requirements", "weight", "sub_tasks": [...], "task_category"}`. Leaves become binary
    criteria and inner nodes become groups, both named by their ids. As in the benchmark, the scores of the
    groups and of the tree are weighted means of their members. The dataset's metadata contains, by name, the
    `requirements` of groups, and the `task_category` and `finegrained_task_category` of criteria.

    Args:
        path: Path of the file.
        submissions: Submissions to grade, by ids of your choice; by default, the dataset has no items.

    Raises:
        DatasetError: If the file cannot be read or has errors. All errors are reported with line numbers.
    """
    document = read_structured(path, suffixes={".json": "json"}, error=DatasetError)
    faults = document.faults()
    reader = _PaperbenchReader(faults)
    root = reader.node(document.data, ())
    faults.raise_as(DatasetError)
    rubric = Rubric._read_inside(root.get("criteria") or [root], faults, ())
    faults.raise_as(DatasetError)
    items = [{"id": key, "submission": given} for key, given in (submissions or {}).items()]
    return RubricDataset(rubric=rubric, items=items, name=Path(path).stem, metadata=reader.metadata)


class _PaperbenchReader:
    def __init__(self, faults: Faults) -> None:
        self.metadata: dict[str, Json] = {}
        self._faults = faults
        self._taken: set[str] = set()

    def node(self, given: Json, at: FilePath, depth: int = 0) -> dict[str, Json]:
        """Convert a node to the format of rubric files."""
        if not isinstance(given, Mapping) or depth > _MAX_DEPTH:
            problem = f"nested deeper than {_MAX_DEPTH}" if depth > _MAX_DEPTH else f"got {shortened(given)}"
            self._faults.add(at, f"a node must be {{'id', 'requirements', 'weight', 'sub_tasks'}}; {problem}")
            return {}
        name = text_at(given, "id", at, self._faults)
        if name and name in self._taken:
            self._faults.add((*at, "id"), f"the id {name!r} appears twice; ids must be unique")
        self._taken.add(name)
        text = text_at(given, "requirements", at, self._faults)
        weight = number_at(given, "weight", 1.0, at, self._faults)
        if weight < 0:
            self._faults.add((*at, "weight"), f"weight must be non-negative; got {weight:g}")
        tasks = list_at(given, "sub_tasks", at, self._faults)
        if not tasks:
            self._keep(given, name, "task_category")
            self._keep(given, name, "finegrained_task_category")
            return {"name": name, "requirement": text, "weight": weight}
        self._keep({"requirements": text}, name, "requirements")
        inner = [self.node(one, (*at, "sub_tasks", place), depth + 1) for place, one in enumerate(tasks)]
        return {"name": name, "weight": weight, "criteria": inner}

    def _keep(self, given: Mapping[str, Any], name: str, key: str) -> None:
        if given.get(key) is not None:
            self.metadata.setdefault(key, {})[name] = given[key]
