"""Repeated answers of one judge to one criterion: tables of units × repeats, and statistics of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.audit.labelled_votes import distinct_names, rank_by_id
from autorubric.metrics.core.contingency import cluster_codes, read_rows
from autorubric.metrics.core.rater_tables import score_rows
from autorubric.metrics.core.scales import Array, Codes, Interval, Ordinal, Scale, is_missing
from autorubric.metrics.core.votes_table import ANSWERED, DECIDED, VotesTable
from autorubric.metrics.figures.krippendorff import AlphaLevel
from autorubric.metrics.figures.many_raters import code_ratings


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatTable:
    """The repeated answers of one judge."""

    judge: str  # empty if unknown
    criterion: str  # empty if unknown
    codes: Codes  # of the answers, shape `(n_units, n_repeats)`; -1 if missing
    order: Codes  # in which each question was asked, same shape; -1 if unknown
    values: Array | None  # of the codes, increasing; None for unordered categories
    level: AlphaLevel
    item: Codes  # of each unit, shape `(n_units,)`


def table_of_ratings(
    ratings: Any, scale: Scale | None, order: Any, cluster: Iterable[Any] | None
) -> RepeatTable:
    """Build a table from units × repeats of labels or numbers."""
    rows = read_rows(ratings, "ratings", "(n_units, n_repeats)")
    codes, values, level = _coded(rows, scale)
    members = cluster_codes(cluster, len(codes))
    return RepeatTable(
        judge="",
        criterion="",
        codes=codes,
        order=_orders(order, codes.shape),
        values=values,
        level=level,
        item=np.arange(len(codes)) if members is None else members,
    )


def _coded(rows: Any, scale: Scale | None) -> tuple[Codes, Array | None, AlphaLevel]:
    if isinstance(scale, Interval) or (scale is None and _are_numbers(rows)):
        scores = score_rows(rows)
        if isinstance(scale, Interval):
            scale.check(scores[~np.isnan(scores)])
        found, places = np.unique(scores, return_inverse=True)
        codes = np.where(np.isnan(scores), -1, places.reshape(scores.shape))
        return codes, found[~np.isnan(found)], "interval"
    coded, codes = code_ratings(rows, scale, None)
    codes = codes if codes.ndim == 2 else codes.reshape(len(codes), 0)
    if isinstance(coded.scale, Ordinal):
        return codes, np.arange(coded.size, dtype=float), "ordinal"
    return codes, None, "nominal"


def _are_numbers(rows: Any) -> bool:
    """Return whether the ratings are numbers and not all 0 or 1."""
    if isinstance(rows, np.ndarray):
        if rows.dtype.kind not in "iufO":
            return False
        flat = rows.reshape(-1).tolist()
    else:
        flat = [label for row in rows for label in row]
    kept = [label for label in flat if not is_missing(label)]
    plain = (int, float, np.integer, np.floating)
    return (
        bool(kept)
        and all(isinstance(label, plain) and not isinstance(label, bool) for label in kept)
        and any(label not in (0, 1) for label in kept)
    )


def _orders(order: Any, shape: tuple[int, ...]) -> Codes:
    if order is None:
        return np.full(shape, -1)
    given = [list(row) for row in read_rows(order, "order", "in the shape of ratings")]
    if (len(given), *{len(row) for row in given}) != tuple(shape):
        raise ArgumentError(f"order must have the same shape as ratings, {shape}")
    seen: dict[Any, int] = {}
    places = [[-1 if is_missing(one) else seen.setdefault(one, len(seen)) for one in row] for row in given]
    return np.array(places, dtype=np.int64).reshape(shape)


def tables_of_votes(table: VotesTable) -> list[RepeatTable]:
    """Build one table per judge and criterion from the single votes of a votes table."""
    names = distinct_names(table.criteria)
    single = (table.sample != DECIDED) & (table.status == ANSWERED)
    judged = np.array([kind == "judge" for kind, _ in table.raters], dtype=bool)
    rows = np.flatnonzero(single & judged[table.rater]) if len(table) else np.zeros(0, dtype=np.int64)
    found = []
    for rater, criterion in np.unique(np.column_stack([table.rater[rows], table.criterion[rows]]), axis=0):
        mine = rows[(table.rater[rows] == rater) & (table.criterion[rows] == criterion)]
        found.append(_table_of(table, mine, table.raters[rater][1], names[criterion]))
    return found


def _table_of(table: VotesTable, rows: Codes, judge: str, name: str) -> RepeatTable:
    criterion = table.criteria[table.criterion[rows[0]]]
    items, unit = np.unique(rank_by_id(table.item_ids)[table.item[rows]], return_inverse=True)
    by_unit = np.argsort(unit, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(unit))])
    place = np.empty(len(rows), dtype=np.int64)
    place[by_unit] = np.arange(len(rows)) - starts[unit[by_unit]]
    answers, values, level = _answers(table, rows, criterion.level)
    shape = (len(items), int(place.max()) + 1)
    codes, order = np.full(shape, -1), np.full(shape, -1)
    codes[unit, place] = answers
    known = {shown: at for at, shown in enumerate(dict.fromkeys(table.order[rows].tolist()))}
    order[unit, place] = [-1 if shown is None else known[shown] for shown in table.order[rows].tolist()]
    return RepeatTable(
        judge=judge, criterion=name, codes=codes, order=order, values=values, level=level, item=items
    )


def _answers(table: VotesTable, rows: Codes, level: str) -> tuple[Codes, Array | None, AlphaLevel]:
    if level == "interval":
        numbers = np.where(np.isnan(table.number[rows]), table.value[rows], table.number[rows])
        found, places = np.unique(numbers, return_inverse=True)
        return np.where(np.isnan(numbers), -1, places.reshape(-1)), found[~np.isnan(found)], "interval"
    na = table.na[rows]
    codes = np.where(na, -1, table.code[rows])
    if level == "ordinal":
        return codes, np.arange(int(codes.max(initial=0)) + 1, dtype=float), "ordinal"
    return codes, None, "nominal"
