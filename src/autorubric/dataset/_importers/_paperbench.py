"""Importer for PaperBench rubrics, which are trees of weighted requirements."""

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
        """Convert a node to the format of rubric files."""
        if not isinstance(given, Mapping) or depth > _MAX_DEPTH:
            said = f"nested deeper than {_MAX_DEPTH}" if depth > _MAX_DEPTH else f"got {shortened(given)}"
            self._faults.add(at, f"a node must be {{'id', 'requirements', 'weight', 'sub_tasks'}}; {said}")
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
