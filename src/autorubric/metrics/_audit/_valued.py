"""Decisions as values on [0, 1], for statistics that are differences of values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autorubric.metrics._audit._decided import distinct_names
from autorubric.metrics._cells import Modes, cells_of
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Codes
from autorubric.metrics._votes_table import VotesTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Valued:
    """Values of the judges' decisions and of the truth, without abstentions and failures.

    Values of penalties are reversed to 1 - value, so that higher values always favour the text.

    Attributes:
        item_ids: Ids of the items.
        item: Position of the item of each cell (one criterion of one item), shape `(n_cells,)`.
        criterion: Position of each cell's criterion, same shape.
        judges: Ids of the judges.
        value: Each judge's value, shape `(n_cells, n_judges)`; NaN if missing.
        truth: The label's value, shape `(n_cells,)`; NaN if missing.
        n_items: Number of items in the table.
        left_out: Names of criteria on which no judge has a value.
        has_penalties: Whether any values were reversed.
    """

    item_ids: tuple[str, ...]
    item: Codes
    criterion: Codes
    judges: tuple[str, ...]
    value: Array
    truth: Array
    n_items: int
    left_out: tuple[str, ...]
    has_penalties: bool

    @property
    def reason(self) -> str:
        """Reason why values cannot be compared with the truth."""
        return "no_pairs" if bool((~np.isnan(self.truth)).any()) else "no_truth"


def valued_of(table: VotesTable, weights: Array) -> Valued:
    """Return the values in a votes table, reversed where `weights`, `(n_items, n_criteria)`, are negative."""
    cells = cells_of(table, Modes())
    criterion = np.repeat(np.arange(len(cells.criteria)), [span.stop - span.start for span in cells.spans])
    penalty = weights[cells.item, criterion] < 0
    columns = [cells.raters["judge", judge].value for judge in table.judges]
    value = np.column_stack(columns) if columns else np.zeros((len(cells.item), 0))
    names = distinct_names(table.criteria)
    empty = [bool(np.isnan(value[span]).all()) for span in cells.spans]
    return Valued(
        item_ids=table.item_ids,
        item=cells.item,
        criterion=criterion,
        judges=table.judges,
        value=np.where(penalty[:, None], 1 - value, value),
        truth=np.where(penalty, 1 - cells.truth.value, cells.truth.value),
        n_items=table.n_items,
        left_out=tuple(name for name, none in zip(names, empty, strict=True) if none and columns),
        has_penalties=bool(penalty.any()),
    )
