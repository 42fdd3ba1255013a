"""Marks of items and cells (wrong, split, abstained, failed), for reports and the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from autorubric.report._items import ABSTENTION, FAILURE, SPLIT, WRONG, Cells
from autorubric.report._view import ReadRun, RunView

FLAGS: Final = {"wrong": WRONG, "split": SPLIT, "abstained": ABSTENTION, "failed": FAILURE}
"""The marks by name."""


@dataclass(frozen=True)
class Marks:
    """A run's items and cells by mark (see `FLAGS`), where a cell is one criterion of one item.

    Attributes:
        items: By mark, the dataset positions of items with a marked cell; items that have no score also
            count as failed.
        cells: By mark, the position of the item and the name of the criterion (or its part) of each cell.
    """

    items: Mapping[str, frozenset[int]]
    cells: Mapping[str, frozenset[tuple[int, str]]]


def marks_of(run: RunView) -> Marks:
    """Return the marked items and cells of a run."""
    read = ReadRun.of(run)
    cells = Cells.of(read)
    names = [one.name for one in read.table.criteria]
    found = {}
    for kind, flag in FLAGS.items():
        at = np.flatnonzero(cells.flags & flag)
        where = zip(cells.item[at].tolist(), cells.criterion[at].tolist(), strict=True)
        found[kind] = frozenset((item, names[criterion]) for item, criterion in where)
    return Marks(items=items_marked(read, cells), cells=found)


def items_marked(run: ReadRun, cells: Cells) -> dict[str, frozenset[int]]:
    """Return `Marks.items` of a run that is already read."""
    found = {kind: set(cells.item[(cells.flags & flag) > 0].tolist()) for kind, flag in FLAGS.items()}
    found["failed"] |= {
        one.item_idx for one in run.item_results if one.report is None or one.report.score is None
    }
    return {kind: frozenset(items) for kind, items in found.items()}
