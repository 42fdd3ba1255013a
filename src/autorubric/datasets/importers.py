"""Importers for the rubric benchmarks HealthBench and PaperBench."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from autorubric.criteria.values import Submission
from autorubric.datasets.dataset import RubricDataset
from autorubric.datasets.item import DataItem
from autorubric.errors import ArgumentError, DatasetError
from autorubric.rubric.rubric import Rubric
from autorubric.support.field_types import FiniteFloat, NonBlankText
from autorubric.support.objects import Json
from autorubric.support.read import read_structured
from autorubric.support.reading_errors import Faults, FilePath, nearest_key, short_repr

Submissions: TypeAlias = Mapping[str, Json]
"""Submissions by item id."""

Number: TypeAlias = Annotated[FiniteFloat, Field(strict=True)]


def check_submissions(submissions: Submissions, known: Collection[str], source: str) -> None:
    """Check that the file has an item for every submission."""
    if not isinstance(submissions, Mapping):
        raise ArgumentError(f"submissions must map item ids to submissions; got {short_repr(submissions)}")
    for key in submissions:
        if key not in known:
            raise ArgumentError(f"submissions: no item {key!r} in {source}; {nearest_key(str(key), known)}")


def _conversation_text(turns: Json, at: FilePath, faults: Faults) -> str:
    """Convert a conversation to text; the content of a single user message is returned unchanged."""
    if isinstance(turns, str) and turns.strip():
        return turns
    turns = turns.get("messages", turns) if isinstance(turns, Mapping) else turns
    try:
        if not isinstance(turns, list):
            raise ArgumentError(f"expected a list of {{'role', 'content'}}; got {short_repr(turns)}")
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


class _Points(BaseModel):
    """A criterion of HealthBench."""

    criterion: NonBlankText = Field(validation_alias=AliasChoices("criterion", "criterion_text"))
    points: Number
    tags: list[Any] | None = None


class _HealthbenchRow(BaseModel):
    model_config = ConfigDict(extra="allow")

    prompt: Any = Field(default=None, validation_alias=AliasChoices("prompt", "conversation"))
    prompt_id: NonBlankText = Field(validation_alias=AliasChoices("prompt_id", "id"))
    rubrics: list[_Points] = Field(min_length=1, validation_alias=AliasChoices("rubrics", "rubric_items"))
    ideal_completions_data: Any = None

    def rubric(self) -> tuple[list[dict[str, Json]], dict[str, list[Json]]]:
        """Return the criteria in the format of rubric files, and their tags by name."""
        named = {f"criterion_{place}": one for place, one in enumerate(self.rubrics, start=1)}
        criteria: list[dict[str, Json]] = [
            {"name": name, "requirement": one.criterion, "weight": one.points} for name, one in named.items()
        ]
        return criteria, {name: one.tags for name, one in named.items() if one.tags}

    def reference(self) -> str | None:
        """Return the ideal completion."""
        data = self.ideal_completions_data
        ideal = data.get("ideal_completion") if isinstance(data, Mapping) else None
        return ideal if isinstance(ideal, str) else None


def from_healthbench(path: str | Path, *, submissions: Submissions | None = None) -> RubricDataset:
    """Create a dataset from HealthBench rows (JSON lines or a JSON list), with one item per row.

    A row is `{"prompt": [{"role", "content"}], "prompt_id", "rubrics": [{"criterion", "points", "tags"}]}`,
    or has the keys `conversation`, `id` and `rubric_items` of HealthBench Professional instead.
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
    for position, given in enumerate(rows):
        before = len(faults)
        row = faults.validate(_HealthbenchRow, given, (position,))
        if isinstance(given, Mapping):
            key = "prompt" if "prompt" in given else "conversation" if "conversation" in given else "prompt"
            prompt = _conversation_text(given.get(key), (position, key), faults)
        if row is None:
            continue
        if row.prompt_id in first:
            message = f"{row.prompt_id!r} is already used by row {first[row.prompt_id] + 1}"
            faults.add((position, "prompt_id"), message)
        first.setdefault(row.prompt_id, position)
        criteria, tags = row.rubric()
        rubric = Rubric._read_inside(criteria, faults, (position, "rubrics"))
        if len(faults) == before and rubric is not None:
            yield DataItem(
                id=row.prompt_id,
                submission=submissions.get(row.prompt_id),
                prompt=prompt,
                rubric=rubric,
                reference_submission=row.reference(),
                metadata={**(row.model_extra or {}), "tags": tags},
            )


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


class _Node(BaseModel):
    """A node of a PaperBench rubric."""

    id: NonBlankText
    requirements: NonBlankText
    weight: Annotated[Number, Field(ge=0.0)] = 1.0
    sub_tasks: list[Any] | None = None
    task_category: Any = None
    finegrained_task_category: Any = None


class _PaperbenchReader:
    def __init__(self, faults: Faults) -> None:
        self.metadata: dict[str, Json] = {}
        self._faults = faults
        self._taken: set[str] = set()

    def node(self, given: Json, at: FilePath, depth: int = 0) -> dict[str, Json]:
        """Convert a node to the format of rubric files."""
        if depth > _MAX_DEPTH:
            self._faults.add(at, f"the tree is nested deeper than {_MAX_DEPTH} levels")
            return {}
        node = self._faults.validate(_Node, given, at)
        fields = given if isinstance(given, Mapping) else {}
        name = repr(fields.get("id"))
        if name in self._taken:
            self._faults.add((*at, "id"), f"the id {name} appears twice; ids must be unique")
        self._taken |= {name} if "id" in fields else set()
        if node is None:
            # The errors of the nodes below are reported too.
            tasks = fields.get("sub_tasks")
            self._nodes(tasks if isinstance(tasks, list) else [], at, depth)
            return {}
        head: dict[str, Json] = {"name": node.id, "weight": node.weight}
        if not node.sub_tasks:
            self._keep(node, "task_category", "finegrained_task_category")
            return {**head, "requirement": node.requirements}
        self._keep(node, "requirements")
        return {**head, "criteria": self._nodes(node.sub_tasks, at, depth)}

    def _nodes(self, given: Sequence[Json], at: FilePath, depth: int) -> list[dict[str, Json]]:
        return [self.node(one, (*at, "sub_tasks", place), depth + 1) for place, one in enumerate(given)]

    def _keep(self, node: _Node, *keys: str) -> None:
        for key in keys:
            if getattr(node, key) is not None:
                self.metadata.setdefault(key, {})[node.id] = getattr(node, key)
