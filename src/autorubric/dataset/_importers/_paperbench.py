"""Rubric trees of PaperBench: requirements in requirements, with weights among their siblings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autorubric._files import Faults, FilePath, read_structured, shortened
from autorubric.dataset._dataset import RubricDataset
from autorubric.dataset._importers._reading import Submissions, list_at, number_at, text_at
from autorubric.errors import DatasetError
from autorubric.rubric import Rubric
from autorubric.values import Json

_MAX_DEPTH = 100


def from_paperbench(path: str | Path, *, submissions: Submissions | None = None) -> RubricDataset:
    """Return the dataset of a PaperBench rubric (JSON), an item a submission.

    A node is `{"id", "requirements", "weight", "sub_tasks": [...], "task_category"}`. Leaves become criteria
    that are met or not, nodes above them groups, both named by their ids; a group's score is the mean of
    what is in it by weight, and so is the tree's, as in the benchmark. The dataset's metadata holds, by name,
    `requirements` of the groups, and `task_category` and `finegrained_task_category` of the criteria.

    Args:
        path: The file.
        submissions: What is graded, by an id of your choice; without any the dataset has no items yet.

    Raises:
        DatasetError: If the file cannot be read, or has errors; all are reported, with lines.
    """
    document = read_structured(path, suffixes={".json": "json"}, error=DatasetError)
    faults = document.faults()
    reader = _Reader(faults)
    root = reader.node(document.data, ())
    faults.raise_as(DatasetError)
    rubric = Rubric._read_inside(root.get("criteria") or [root], faults, ())
    faults.raise_as(DatasetError)
    items = [{"id": key, "submission": given} for key, given in (submissions or {}).items()]
    return RubricDataset(rubric=rubric, items=items, name=Path(path).stem, metadata=reader.metadata)


class _Reader:
    def __init__(self, faults: Faults) -> None:
        self.metadata: dict[str, Json] = {}
        self._faults = faults
        self._taken: set[str] = set()

    def node(self, given: Json, at: FilePath, depth: int = 0) -> dict[str, Json]:
        """Return a node as rubric files hold it."""
        if not isinstance(given, Mapping) or depth > _MAX_DEPTH:
            said = f"nested deeper than {_MAX_DEPTH}" if depth > _MAX_DEPTH else f"got {shortened(given)}"
            self._faults.add(at, f"a node is {{'id', 'requirements', 'weight', 'sub_tasks'}}; {said}")
            return {}
        name = text_at(given, "id", at, self._faults)
        if name and name in self._taken:
            self._faults.add((*at, "id"), f"the id {name!r} appears twice; ids must be unique")
        self._taken.add(name)
        text = text_at(given, "requirements", at, self._faults)
        weight = number_at(given, "weight", 1.0, at, self._faults)
        if weight < 0:
            self._faults.add((*at, "weight"), f"a weight is a number from 0 up; got {weight:g}")
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
