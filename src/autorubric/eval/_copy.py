"""Copying a dataset into a run folder, item by item."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from autorubric.criteria import check_name
from autorubric.dataset import EarlierCopy, RubricDataset
from autorubric.errors import ArgumentError
from autorubric.eval._store import RunStore
from autorubric.rubric import Rubric
from autorubric.values import Json


@dataclass(frozen=True, kw_only=True)
class Copied:
    """The result of copying a dataset.

    Attributes:
        entry: The dataset's entry in the manifest: `name`, `n_items`, `sha256` of the copy, and `source`, a
            digest of the file from which it was streamed, if any.
        checks: The checks that rubrics of the dataset refer to, by name.
    """

    entry: dict[str, Json]
    checks: dict[str, Any] = field(default_factory=dict)

    def note_checks(self, rubric: Rubric) -> None:
        """Add the checks that a rubric refers to."""
        for criterion in rubric:
            if criterion.check is not None:
                self.checks.setdefault(check_name(criterion.check), criterion.check)


def copy_dataset(dataset: RubricDataset, store: RunStore, earlier: EarlierCopy | None = None) -> Copied:
    """Write a provisional copy of the dataset to a run folder, holding one item in memory at a time.

    Args:
        dataset: The dataset.
        store: The run folder.
        earlier: The existing copy, with which each line is compared; None if there is no copy.

    Raises:
        ArgumentError: If the dataset is empty, an item has no rubric, or the kind of a criterion cannot be
            written to a file.
        DatasetError: If a streamed dataset has errors.
    """
    copied = Copied(entry={"name": dataset.name, "n_items": len(dataset)})

    def lines() -> Iterator[bytes]:
        for number, (line, rubric) in enumerate(dataset.copy_lines(earlier)):
            if rubric is not None:
                copied.note_checks(rubric)
            elif number and dataset.rubric is None:
                # Raises an error that names the item and says what to do.
                dataset.get_item_rubric(number - 1)
            yield line

    if not len(dataset):
        raise ArgumentError("the dataset has no items; add at least one item before evaluating it")
    copied.entry["sha256"] = store.write_incoming(lines())
    copied.entry["source"] = dataset.source_digest()
    return copied


def uncopied(dataset: RubricDataset, entry: dict[str, Json], checks: Iterable[str]) -> Copied:
    """Return the result for a dataset whose copy in the folder is unchanged.

    Args:
        dataset: The dataset.
        entry: The dataset's entry in the manifest.
        checks: Names of the checks in the dataset.
    """
    copied = Copied(entry=entry)
    if dataset.rubric is not None:
        copied.note_checks(dataset.rubric)
    for name in checks:
        copied.checks.setdefault(name, name)
    return copied
