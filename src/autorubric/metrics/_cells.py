"""Conversion of a votes table to one column per rater over cells; a cell is one criterion of one item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np

from autorubric.metrics._item_scores import PANEL, TRUTH, Rater
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Codes
from autorubric.metrics._votes_table import (
    ABSENT,
    ABSTAINED,
    ANSWERED,
    UNDECIDED,
    MeasuredCriterion,
    Outcome,
    VotesTable,
)

CannotAssessMode: TypeAlias = Literal["exclude", "as_unmet", "as_category"]
NaMode: TypeAlias = Literal["exclude", "as_worst", "as_category"]


@dataclass(frozen=True, slots=True)
class Modes:
    """The treatment of abstentions.

    Attributes:
        cannot_assess: Whether CANNOT_ASSESS is excluded, counts as the worst answer or is its own category.
        na: Whether NA options are excluded, count as the worst answer or are their own category.
    """

    cannot_assess: CannotAssessMode = "exclude"
    na: NaMode = "exclude"

    @property
    def has_category(self) -> bool:
        """Whether any kind of abstention is a category."""
        return "as_category" in (self.cannot_assess, self.na)


@dataclass(frozen=True, slots=True)
class Column:
    """One rater's answers over the cells, as arrays of shape `(n_cells,)`.

    Attributes:
        status: Position of the vote's status in `STATUSES`.
        code: Position of the answer among the criterion's categories, not counting NA options. Abstentions
            that count as a category have the position after the last one; -1 means no answer.
        value: Value of the answer in [0, 1]; NaN if it has no value.
        number: The answer in its own units if it is a number; otherwise NaN.
    """

    status: Codes
    code: Codes
    value: Array
    number: Array

    def take(self, cells: slice) -> Column:
        """Return the column restricted to a slice of the cells."""
        return Column(self.status[cells], self.code[cells], self.value[cells], self.number[cells])

    @property
    def answered(self) -> Array:
        """Mask of the cells with an answer that counts, shape `(n_cells,)`."""
        return (self.code >= 0) | ~np.isnan(self.value) | ~np.isnan(self.number)

    def only(self, which: Array) -> Column:
        """Return the column with all cells outside the mask `which`, of shape `(n_cells,)`, emptied."""
        return Column(
            np.where(which, self.status, ABSENT),
            np.where(which, self.code, -1),
            np.where(which, self.value, np.nan),
            np.where(which, self.number, np.nan),
        )


@dataclass(frozen=True, slots=True)
class Cells:
    """All cells, sorted by criterion and item.

    Attributes:
        criteria: Criteria in the order of their cells.
        spans: Slice of the cells of each criterion.
        item: Position of each cell's item, shape `(n_cells,)`.
        n_items: Number of items in the dataset.
        truth: Ground-truth labels.
        raters: Decisions of the panel and of each judge, by rater.
        scores: Item scores by rater; see `VotesTable`.
        outcomes: Outcomes of comparisons, by position of the criterion; see `VotesTable`.
        positions: By rater, the samples in which a judge answered in two orders of the candidates, shape
            `(n_samples, 3)`: position of the criterion, position of the item, and 1 if both answers agree.
        tied: Mask of the cells on which the judges' votes tie, whether or not the panel gives an answer;
            shape `(n_cells,)`.
    """

    criteria: tuple[MeasuredCriterion, ...]
    spans: tuple[slice, ...]
    item: Codes
    n_items: int
    truth: Column
    raters: dict[Rater, Column]
    scores: dict[Rater, Array]
    outcomes: Mapping[int, tuple[Outcome, ...]]
    positions: dict[Rater, Codes]
    tied: Array

    def size(self, place: int, modes: Modes) -> int:
        """Return the number of codes at `place`: categories (plus one if abstentions count), or outcomes."""
        if self.criteria[place].level == "ranking":
            return len(self.outcomes.get(place, ()))
        n_categories = len(self.criteria[place].categories)
        return n_categories + modes.has_category if n_categories else 0


def cells_of(table: VotesTable, modes: Modes) -> Cells:
    """Return the decisions and labels of a votes table by cell, with abstentions treated as in `modes`."""
    keys = table.criterion * table.n_items + table.item
    rows = {rater: table.rows_of(rater) for rater in table.raters if rater[0] != "human"}
    seen, places = _number([keys[mine] for mine in rows.values()], len(table.criteria) * table.n_items)
    where = dict(zip(rows, places, strict=True))
    criterion, item = (seen // table.n_items, seen % table.n_items) if len(seen) else (seen, seen)
    ends = np.searchsorted(criterion, np.arange(len(table.criteria) + 1))
    spans = tuple(slice(int(a), int(b)) for a, b in pairwise(ends))

    def column(rater: Rater) -> Column:
        none = np.zeros(0, dtype=np.int64)
        return _column(table, rows.get(rater, none), where.get(rater, none), spans, modes)

    judges: list[Rater] = [("judge", judge) for judge in table.judges]
    panel = column(PANEL)
    tied_keys = table.tied[:, 1] * table.n_items + table.tied[:, 0]
    return Cells(
        criteria=table.criteria,
        spans=spans,
        item=item,
        n_items=table.n_items,
        truth=column(TRUTH),
        raters={PANEL: panel, **{rater: column(rater) for rater in judges}},
        scores={TRUTH: np.full(table.n_items, np.nan), **table.scores},
        outcomes=table.outcomes,
        positions=_positions(table),
        tied=np.isin(seen, tied_keys) | (panel.status == UNDECIDED),
    )


def _positions(table: VotesTable) -> dict[Rater, Codes]:
    """Return `Cells.positions`; the panel has the samples of all judges."""
    found: dict[Rater, list[tuple[int, int, int]]] = {rater: [] for rater in (PANEL, *table.raters)}
    first: dict[tuple[int, int, int, int], tuple[str, int]] = {}
    ranked = [place for place, criterion in enumerate(table.criteria) if criterion.level == "ranking"]
    answered = np.isin(table.criterion, ranked) & (table.status == ANSWERED)
    for row in np.flatnonzero(answered) if ranked else ():
        if table.order[row] is None:
            continue
        place, who = int(table.criterion[row]), int(table.rater[row])
        key = (int(table.item[row]), place, who, int(table.sample[row]))
        order, code = first.setdefault(key, (table.order[row], int(table.code[row])))
        if order != table.order[row]:
            sample = (place, int(table.item[row]), int(code == table.code[row]))
            found[table.raters[who]].append(sample)
            found[PANEL].append(sample)
    return {rater: np.array(mine, dtype=np.int64).reshape(-1, 3) for rater, mine in found.items()}


_MARKED_UP_TO = 50_000_000


def _number(keys: Sequence[Codes], size: int) -> tuple[Codes, list[Codes]]:
    """Return the sorted distinct keys below `size`, and the index of each key among them.

    If the keys are dense, marking them is cheaper than sorting.
    """
    if size > _MARKED_UP_TO:
        seen = np.unique(np.concatenate(keys))
        return seen, [np.searchsorted(seen, one) for one in keys]
    marks = np.zeros(size, dtype=bool)
    for one in keys:
        marks[one] = True
    places = np.cumsum(marks) - 1
    return np.flatnonzero(marks), [places[one] for one in keys]


def _column(table: VotesTable, rows: Codes, where: Codes, spans: Sequence[slice], modes: Modes) -> Column:
    """Return a rater's answers by cell: `rows` of the table go to the cells `where`."""
    n = spans[-1].stop if spans else 0
    status, code = np.zeros(n, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    value, number = np.full(n, np.nan), np.full(n, np.nan)
    na = np.zeros(n, dtype=bool)
    status[where] = table.status[rows]
    code[where], value[where], number[where] = table.code[rows], table.value[rows], table.number[rows]
    na[where] = table.na[rows]
    both_modes: tuple[tuple[bool, CannotAssessMode | NaMode], ...] = (
        (True, modes.na),
        (False, modes.cannot_assess),
    )
    counted = [(is_na, mode) for is_na, mode in both_modes if mode != "exclude"]
    for measured, mine in zip(table.criteria, spans, strict=True):
        code[mine] = _categories(measured, code[mine])
        for is_na, mode in counted:
            abstained = (status[mine] == ABSTAINED) & (na[mine] == is_na)
            _count_abstentions(measured, mode, abstained, code[mine], value[mine])
    return Column(status, code, value, number)


def _categories(measured: MeasuredCriterion, code: Codes) -> Codes:
    """Convert positions among all declared answers to positions among the categories."""
    if measured.level == "ranking" or measured.answers == measured.categories != ():
        return code
    places, count = [], 0
    for answer in measured.answers:
        places.append(-1 if answer.na else count)
        count += not answer.na
    return np.array([*places, -1], dtype=np.int64)[code]


def _count_abstentions(
    measured: MeasuredCriterion, mode: CannotAssessMode | NaMode, which: Array, code: Codes, value: Array
) -> None:
    """Write the codes and values that abstentions count as into views of the columns."""
    categories = measured.categories
    if not categories:
        return
    if mode == "as_category":
        code[which] = len(categories)
        return
    worst = min(range(len(categories)), key=lambda i: categories[i].value or 0.0)
    code[which] = worst
    if (lowest := categories[worst].value) is not None:
        value[which] = lowest
