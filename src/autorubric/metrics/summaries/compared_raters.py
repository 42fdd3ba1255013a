"""Raters together with the truth with which each is compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from autorubric.metrics.core.contingency import divide
from autorubric.metrics.core.item_scores import PANEL, TRUTH, Rater
from autorubric.metrics.core.read_votes import Cells, Column, Modes, cells_of
from autorubric.metrics.core.scales import Array, Codes
from autorubric.metrics.core.votes_table import ABSTAINED, ANSWERED, DECIDED, FAILED, VotesTable


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRater:
    """Decisions of a rater, and the cells with the truth with which they are compared."""

    rater: Rater
    kind: Literal["panel", "judge", "human"]
    cells: Cells
    column: Column

    @property
    def unanswered(self) -> Array:
        """Mask of the labelled cells on which the rater abstained or failed, shape `(n_cells,)`."""
        column, truth = self.column, self.cells.truth
        return np.isin(column.status, (ABSTAINED, FAILED)) & ~column.answered & truth.answered

    def answer_unanswered(self, *, right: bool) -> ComparedRater:
        """Return the rater with `unanswered` cells as right answers, or as far from the label as possible.

        If a number has no farthest value because its criterion has no range, numbers have no answers.
        """
        cells, own, unanswered = self.cells, self.column, self.unanswered
        code, value, number = cells.truth.code, cells.truth.value, cells.truth.number
        if not right:
            last = np.array([cells.size(at, Modes()) - 1 for at in range(len(cells.spans))])[cells.criterion]
            code = np.where(2 * code > last, 0, last)
            value, number = _farthest(cells)
        is_number = unanswered & (code < 0)
        column = Column(
            np.where(unanswered, ANSWERED, own.status),
            np.where(unanswered, code, own.code),
            np.where(is_number, value, own.value),
            np.where(is_number, number, own.number),
        )
        return replace(self, column=column.only(column.answered[unanswered].all() | (code >= 0)))


def _farthest(cells: Cells) -> tuple[Array, Array]:
    """Return the end of the range farthest from each label, as value and as number; NaN without a range."""
    truth = cells.truth
    value = np.where(np.isnan(truth.value), np.nan, truth.value <= 0.5)
    number = np.full(len(value), np.nan)
    for span in cells.spans:
        both = ~np.isnan(truth.value[span] + truth.number[span])
        values, numbers = truth.value[span][both], truth.number[span][both]
        if len(np.unique(values)) > 1:
            # Values are linear in numbers, so two labels show where the range ends.
            number[span] = np.polyval(np.polyfit(values, numbers, 1), value[span])
    return value, number


def compared_raters(table: VotesTable, cells: Cells) -> list[ComparedRater]:
    """Return the panel, followed by each judge."""
    judges: list[Rater] = [("judge", name) for name in table.judges]
    return [
        ComparedRater(
            rater=one, kind="panel" if one == PANEL else "judge", cells=cells, column=cells.raters[one]
        )
        for one in (PANEL, *judges)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """People who are compared with each other."""

    each: Sequence[ComparedRater] = ()  # each against the others; empty if no two labelled the same cell
    in_place: Sequence[ComparedRater] = ()  # for each person, the panel and judges on that person's cells
    made_the_truth: bool = True  # whether the labels combine these people's labels


def people_of(table: VotesTable, modes: Modes) -> People:
    """Return the people to compare with each other, and the panel and judges in their place."""
    people = [rater for rater in table.raters if rater[0] == "human"]
    rated = _ratings(table, people)
    if len(people) < 2 or not (rated.counts.sum(1) + rated.given.sum(1) > 1).any():
        return People()
    each, in_place = [], []
    for place in range(len(people)):
        person, replacements = _compare_with_others(table, rated, place, modes)
        each.append(person)
        in_place += replacements
    return People(each=each, in_place=in_place, made_the_truth=_labels_are_theirs(table, rated))


def _labels_are_theirs(table: VotesTable, rated: _Ratings) -> bool:
    """Return whether each label equals the majority, median or mean of these people's labels."""
    n_items = max(table.n_items, 1)
    rows = table.rows_of(TRUTH)
    labelled = rows[table.status[rows] == ANSWERED]
    keys = table.criterion[labelled] * n_items + table.item[labelled]
    theirs = rated.place[:, 1] * n_items + rated.place[:, 0]
    where = np.searchsorted(theirs, keys).clip(max=len(theirs) - 1)
    means = divide(rated.sums, rated.given)[where]
    code, numbers = table.code[labelled], np.column_stack([table.number[labelled], table.value[labelled]])
    labels = [_most_frequent(rated.counts), *_median_and_nearest(table, rated)]
    chosen = np.any([one[where] == code for one in labels], axis=0)
    alike = np.where(code >= 0, chosen, np.isclose(means, numbers).any(axis=1))
    return bool((alike & (theirs[where] == keys)).all())


def _median_and_nearest(table: VotesTable, rated: _Ratings) -> list[Codes]:
    """Return each cell's lower median and the option nearest to the mean; -1 if options are unordered."""
    median, nearest = (np.full(len(rated.counts), -1, dtype=np.int64) for _ in range(2))
    for place, criterion in enumerate(table.criteria):
        mine = np.flatnonzero(rated.place[:, 1] == place)
        values = np.array([np.nan if one.value is None else one.value for one in criterion.answers])
        if criterion.level not in ("binary", "ordinal") or not len(mine) or np.isnan(values).all():
            continue
        order = np.argsort(values, kind="stable")[: np.count_nonzero(~np.isnan(values))]
        counts = np.zeros((len(mine), len(values)))
        known = min(len(values), rated.counts.shape[1])
        counts[:, :known] = rated.counts[mine][:, :known]
        counts, scale = counts[:, order], values[order]
        n = counts.sum(1)
        there = n > 0
        median[mine[there]] = order[np.argmax(2 * np.cumsum(counts, axis=1) >= n[:, None], axis=1)[there]]
        far = np.abs(scale - (counts @ scale / np.maximum(n, 1))[:, None])
        close = far <= far.min(1, keepdims=True) + 1e-12
        nearest[mine[there]] = order[np.argmax(close, axis=1)[there]]
    return [median, nearest]


@dataclass(frozen=True, slots=True)
class _Ratings:
    people: Sequence[Rater]
    rows: Codes  # positions of the ratings in the votes table
    cell: Codes  # cell of each row
    who: Codes  # index in `people` of each row
    place: Codes  # item and criterion of each cell, (n_cells, 2)
    counts: Codes  # answers to each cell by code, (n_cells, K)
    given: Codes  # answers to each cell with a number or value but no code, (n_cells, 2)
    sums: Array  # sums of these numbers and values, (n_cells, 2)


def _ratings(table: VotesTable, people: Sequence[Rater]) -> _Ratings:
    positions = np.array([table.raters.index(rater) for rater in people], dtype=np.int64)
    rows = np.flatnonzero(np.isin(table.rater, positions) & (table.sample == DECIDED))
    keys = table.criterion[rows] * max(table.n_items, 1) + table.item[rows]
    seen, cell = np.unique(keys, return_inverse=True)
    cell = cell.reshape(-1)
    place = np.column_stack([seen % max(table.n_items, 1), seen // max(table.n_items, 1)])
    code, there, numbers = _answers(table, rows)
    counts = np.zeros((len(seen), int(code.max(initial=-1)) + 1), dtype=np.int64)
    np.add.at(counts, (cell[code >= 0], code[code >= 0]), 1)
    given, sums = np.zeros((len(seen), 2), dtype=np.int64), np.zeros((len(seen), 2))
    np.add.at(given, cell, there)
    np.add.at(sums, cell, numbers)
    order = {int(position): at for at, position in enumerate(positions)}
    who = np.array([order[int(one)] for one in table.rater[rows]], dtype=np.int64)
    return _Ratings(people, rows, cell, who, place, counts, given, sums)


def _answers(table: VotesTable, rows: Codes) -> tuple[Codes, Array, Array]:
    """Return the codes of rows (-1 without), where there are numbers or values instead, and these, else 0."""
    answered = table.status[rows] == ANSWERED
    code = np.where(answered, table.code[rows], -1)
    numbers = np.column_stack([table.number[rows], table.value[rows]])
    there = (answered & (code < 0))[:, None] & ~np.isnan(numbers)
    return code, there, np.where(there, numbers, 0.0)


def _compare_with_others(
    table: VotesTable, rated: _Ratings, person: int, modes: Modes
) -> tuple[ComparedRater, list[ComparedRater]]:
    """Return a person compared with the other people, and the panel and judges in that person's place."""
    mine = rated.rows[rated.who == person]
    cell = rated.cell[rated.who == person]
    counts, given, sums = rated.counts.copy(), rated.given.copy(), rated.sums.copy()
    code, own, numbers = _answers(table, mine)
    counts[cell[code >= 0], code[code >= 0]] -= 1
    given[cell] -= own
    sums[cell] -= numbers
    majority, means = _most_frequent(counts), divide(sums, given)
    there = np.flatnonzero((majority >= 0) | (given > 0).any(axis=1))
    place, truths = rated.place[there], (majority[there], means[there])
    # The null character prevents a clash with a judge's name.
    rater: Rater = ("judge", "\0 the person")
    judges: list[Rater] = [PANEL, *(("judge", name) for name in table.judges)]
    small = _join_rows(table, mine, (rater, *judges), place, truths)
    cells = cells_of(small, modes)
    own_column = cells.raters[rater]
    answered = own_column.answered
    in_place = [
        ComparedRater(rater=one, kind="judge", cells=cells, column=cells.raters[one].only(answered))
        for one in judges
    ]
    return ComparedRater(rater=rated.people[person], kind="human", cells=cells, column=own_column), in_place


def _most_frequent(counts: Codes) -> Codes:
    """Return the most frequent code in each row; -1 if there are no answers or two codes are tied."""
    if not counts.shape[1]:
        return np.full(len(counts), -1, dtype=np.int64)
    most = counts.max(axis=1, keepdims=True)
    alone = (most[:, 0] > 0) & (np.count_nonzero(counts == most, axis=1) == 1)
    return np.where(alone, counts.argmax(axis=1), -1)


def _join_rows(
    table: VotesTable, mine: Codes, raters: Sequence[Rater], place: Codes, truths: tuple[Codes, Array]
) -> VotesTable:
    """Build a votes table of a person's (the first rater's) rows, the judges', and the others' labels."""
    majority, means = truths
    n = len(place)
    cells = table.cell_keys(mine)
    theirs = [rows[np.isin(table.cell_keys(rows), cells)] for rows in map(table.rows_of, raters[1:])]
    rows = np.concatenate([mine, *theirs])
    who = np.repeat(np.arange(1, len(raters) + 1), [len(mine), *map(len, theirs)])
    answers = [() if one.level == "ranking" else one.answers for one in table.criteria]
    from_code = np.array(
        [
            answers[at][code].value if answers[at] and code >= 0 else None
            for at, code in zip(place[:, 1].tolist(), majority.tolist(), strict=True)
        ],
        dtype=float,
    )
    is_mean = majority < 0

    def column(name: str, rest: Array) -> Array:
        return np.concatenate([getattr(table, name)[rows], rest])

    return replace(
        table,
        raters=(TRUTH, *raters),
        item=column("item", place[:, 0]),
        criterion=column("criterion", place[:, 1]),
        rater=np.concatenate([who, np.zeros(n, dtype=np.int64)]),
        sample=column("sample", np.full(n, DECIDED)),
        order=column("order", np.full(n, None, dtype=object)),
        code=column("code", majority),
        label=column("label", np.full(n, None, dtype=object)),
        value=column("value", np.where(is_mean, means[:, 1], from_code)),
        number=column("number", np.where(is_mean, means[:, 0], np.nan)),
        na=column("na", np.zeros(n, dtype=bool)),
        status=column("status", np.full(n, ANSWERED)),
        scores={},
    )
