"""The copy of a dataset in a run folder: written item by item, with facts about the whole."""

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
        entry: Its entry in the manifest: `name`, `n_items`, `sha256` of the copy, and `source`, a digest
            of the file that it was streamed from, if any.
        checks: The checks that rubrics in it name, by name.
    """

    entry: dict[str, Json]
    checks: dict[str, Any] = field(default_factory=dict)

    def note_checks(self, rubric: Rubric) -> None:
        """Add the checks that a rubric names."""
        for criterion in rubric:
            if criterion.check is not None:
                self.checks.setdefault(check_name(criterion.check), criterion.check)


def copy_dataset(dataset: RubricDataset, store: RunStore, earlier: EarlierCopy | None = None) -> Copied:
    """Write what may become the copy of the dataset in a run folder, in the memory of one item.

    Args:
        dataset: The dataset.
        store: The run folder.
        earlier: The copy that is there, which is asked about each line.

    Raises:
        ArgumentError: There is no item, an item has no rubric, or a criterion is of a kind that no file can
            name.
        DatasetError: If a streamed dataset has errors.
    """
    copied = Copied(entry={"name": dataset.name, "n_items": len(dataset)})

    def lines() -> Iterator[bytes]:
        for number, (line, rubric) in enumerate(dataset.copy_lines(earlier)):
            if rubric is not None:
                copied.note_checks(rubric)
            elif number and dataset.rubric is None:
                # Says which item it is, and what to do.
                dataset.get_item_rubric(number - 1)
            yield line

    if not len(dataset):
        raise ArgumentError("the dataset has no items; add some before evaluating")
    copied.entry["sha256"] = store.write_incoming(lines())
    copied.entry["source"] = dataset.source_digest()
    return copied


def uncopied(dataset: RubricDataset, entry: dict[str, Json], checks: Iterable[str]) -> Copied:
    """Return the result for a dataset with an unchanged copy in the folder.

    Args:
        dataset: The dataset.
        entry: Its entry in the manifest.
        checks: Names of the checks in it.
    """
    copied = Copied(entry=entry)
    if dataset.rubric is not None:
        copied.note_checks(dataset.rubric)
    for name in checks:
        copied.checks.setdefault(name, name)
    return copied
