"""Judges' decisions and true labels on which a panel can be audited, with the items in the order of ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autorubric.metrics.core.read_votes import Cells, Column, Modes, cells_of
from autorubric.metrics.core.scales import Array, Codes
from autorubric.metrics.core.votes_table import ANSWERED, DECIDED, MeasuredCriterion, VotesTable


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledVotes:
    """Judges' decisions and labels by cell, where a cell is one criterion of one item."""

    criteria: tuple[MeasuredCriterion, ...]
    names: tuple[str, ...]  # unique name of each criterion
    by_value: Array  # whether answers to each criterion are averaged as values, shape `(n_criteria,)`
    left_out: tuple[str, ...]  # criteria whose answers are numbers without a range, or text
    item_ids: tuple[str, ...]  # in order
    item: Codes  # of each cell, shape `(n_cells,)`
    criterion: Codes  # of each cell
    judges: tuple[str, ...]
    code: Codes  # category of each judge's answer, shape `(n_cells, n_judges)`; -1 if missing
    value: Array  # each judge's answer in [0, 1]; NaN if missing
    truth_code: Codes  # category of the label, shape `(n_cells,)`; -1 if missing
    truth_value: Array  # the label in [0, 1]; NaN if missing

    @property
    def graded(self) -> Array:
        """Whether the answers in each cell are compared as values, not as categories, shape `(n_cells,)`."""
        return np.asarray(self.by_value[self.criterion])

    @property
    def answered(self) -> Array:
        """Whether each judge answered each criterion of each item, shape `(n_cells, n_judges)`."""
        return np.where(self.graded[:, None], ~np.isnan(self.value), self.code >= 0)

    @property
    def labelled(self) -> Array:
        """Whether each cell (one criterion of one item) has a label, shape `(n_cells,)`."""
        return np.where(self.graded, ~np.isnan(self.truth_value), self.truth_code >= 0)

    @property
    def errors(self) -> Array:
        """Judge minus truth for values, 1 for wrong categories; `(n_cells, n_judges)`, NaN if missing."""
        apart = np.where(
            self.graded[:, None],
            self.value - self.truth_value[:, None],
            (self.code != self.truth_code[:, None]).astype(float),
        )
        return np.where(self.answered & self.labelled[:, None], apart, np.nan)

    def sum_common(self, columns: Sequence[Array]) -> Array:
        """Sum columns of cells that all columns have, by item and criterion, `(n_items, n_columns * C)`."""
        shape = (len(self.item_ids), len(self.names))
        common = ~np.isnan(np.stack(columns)).any(axis=0)
        flat, size = self.item * shape[1] + self.criterion, shape[0] * shape[1]
        sums = [np.bincount(flat, weights=np.where(common, one, 0.0), minlength=size) for one in columns]
        return np.concatenate([one.reshape(shape) for one in sums], axis=1)


def read_labelled_votes(table: VotesTable) -> LabelledVotes:
    """Return the decisions in a votes table, without abstentions and failures."""
    cells = cells_of(table, Modes())
    criterion = criterion_of_cells(cells)
    names = distinct_names(table.criteria)
    columns = [cells.raters["judge", judge] for judge in table.judges]
    by_value = np.array([_is_graded(one) for one in cells.criteria], dtype=bool)
    usable = np.array([not _is_unusable(cells, at, columns) for at in range(len(names))], dtype=bool)
    kept = usable[criterion] if len(criterion) else np.zeros(0, dtype=bool)
    return LabelledVotes(
        criteria=cells.criteria,
        names=names,
        by_value=by_value,
        left_out=tuple(name for name, fits in zip(names, usable, strict=True) if not fits),
        item_ids=tuple(table.item_ids[at] for at in order_by_id(table.item_ids)),
        item=rank_by_id(table.item_ids)[cells.item[kept]],
        criterion=criterion[kept],
        judges=table.judges,
        code=_stack([one.code for one in columns], kept, np.int64),
        value=_stack([one.value for one in columns], kept, float),
        truth_code=cells.truth.code[kept],
        truth_value=cells.truth.value[kept],
    )


def criterion_of_cells(cells: Cells) -> Codes:
    """Return the position of each cell's criterion, shape `(n_cells,)`."""
    return np.repeat(np.arange(len(cells.criteria)), [span.stop - span.start for span in cells.spans])


def _stack(columns: Sequence[Array], kept: Array, kind: type) -> Array:
    empty: Array = np.zeros((int(np.count_nonzero(kept)), 0), dtype=kind)
    return np.column_stack([empty, *(column[kept] for column in columns)]).astype(kind, copy=False)


def _is_graded(criterion: MeasuredCriterion) -> bool:
    if criterion.level == "interval":
        return True
    return criterion.level == "ordinal" and all(one.value is not None for one in criterion.categories)


def _is_unusable(cells: Cells, at: int, columns: Sequence[Column]) -> bool:
    """Return whether no rater has a category or value on the criterion that can be compared with a label."""
    span = cells.spans[at]
    everyone = [cells.truth, *columns]
    if _is_graded(cells.criteria[at]):
        return all(bool(np.isnan(one.value[span]).all()) for one in everyone)
    return all(bool((one.code[span] < 0).all()) for one in everyone)


def single_vote_rows(table: VotesTable) -> Codes:
    """Return the rows of single votes in which a judge answered, as opposed to decisions over its samples."""
    judged = np.array([kind == "judge" for kind, _ in table.raters], dtype=bool)
    single = (table.sample != DECIDED) & (table.status == ANSWERED)
    return np.flatnonzero(single & judged[table.rater]) if len(table) else np.zeros(0, dtype=np.int64)


def distinct_names(criteria: Sequence[MeasuredCriterion]) -> tuple[str, ...]:
    """Return a unique name for each criterion by numbering criteria that share a name."""
    seen: dict[str, int] = {}
    names = []
    for one in criteria:
        seen[one.name] = seen.get(one.name, 0) + 1
        names.append(one.name if seen[one.name] == 1 else f"{one.name} ({seen[one.name]})")
    return tuple(names)


def order_by_id(item_ids: Sequence[str]) -> Codes:
    """Return the positions of the items sorted by id, so that the table's order does not matter."""
    return np.array(sorted(range(len(item_ids)), key=lambda at: item_ids[at]), dtype=np.int64)


def rank_by_id(item_ids: Sequence[str]) -> Codes:
    """Return the rank of each item's id."""
    ranks = np.empty(len(item_ids), dtype=np.int64)
    ranks[order_by_id(item_ids)] = np.arange(len(item_ids))
    return ranks
