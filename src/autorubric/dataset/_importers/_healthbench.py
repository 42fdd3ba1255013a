"""Importer for HealthBench rows, each of which is a conversation with criteria that a physician wrote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from autorubric._files import Faults, FilePath, read_structured, shortened
from autorubric.dataset._dataset import RubricDataset
from autorubric.dataset._importers._reading import (
    Submissions,
    check_submissions,
    conversation_text,
    list_at,
    number_at,
    text_at,
)
from autorubric.dataset._item import DataItem
from autorubric.errors import DatasetError
from autorubric.rubric import Rubric
from autorubric.values import Json

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
