"""Repeated answers of one judge to one criterion: tables of units × repeats, and statistics of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.audit.labelled_votes import distinct_names, rank_by_id
from autorubric.metrics.audit.resampled import ratio
from autorubric.metrics.core.contingency import cluster_codes, read_rows
from autorubric.metrics.core.estimate import Reason
from autorubric.metrics.core.rater_tables import score_rows
from autorubric.metrics.core.scales import Array, Codes, Interval, Ordinal, Scale, is_missing
from autorubric.metrics.core.votes_table import ANSWERED, DECIDED, VotesTable
from autorubric.metrics.figures.krippendorff import AlphaLevel, alpha_parts
from autorubric.metrics.figures.many_raters import code_ratings

FIGURES = {
    "flip_rate": "flip rate",
    "pairwise_agreement": "pairwise agreement",
    "alpha": "alpha over repeats",
    "majority_share": "majority share",
    "within_sd": "SD within units",
    "position_consistency": "position consistency",
    "order_effect": "order effect",
}
"""Names of the statistics, in the order in which they are computed, with their descriptions."""

SHARES = ("flip rate", "pairwise agreement", "majority share", "position consistency")
"""Descriptions of the statistics that are shares of units."""


def consistency_figures(table: RepeatTable, n_items: int) -> Callable[[Array], Array]:
    """Return a function from item weights `(r, n_items)` to the statistics of a table, shape `(r, 7)`."""
    sums = np.zeros((n_items, 9))
    np.add.at(sums, table.item, _unit_sums(table))
    repeated = (table.codes >= 0).sum(1) >= 2
    drawn = np.unique(table.item[repeated])
    parts = alpha_parts(table.codes, table.values, table.level, table.item) if len(drawn) else None

    def compute(weights: Array) -> Array:
        total = weights @ sums
        stability = np.full(len(weights), np.nan)
        if parts is not None:
            units, alpha = parts
            mine = weights if len(drawn) == n_items else weights[:, drawn]
            stability = alpha(units.aggregate(mine))
        n = total[:, 0]
        across = ratio(total[:, 6], total[:, 5])
        spread = np.sqrt(ratio(total[:, 4], n)) if table.level == "interval" else np.full(len(n), np.nan)
        return np.column_stack(
            [
                ratio(total[:, 1], n),
                ratio(total[:, 2], n),
                stability,
                ratio(total[:, 3], n),
                spread,
                across,
                ratio(total[:, 8], total[:, 7]) - across,
            ]
        )

    return compute


def _unit_sums(table: RepeatTable) -> Array:
    """Return the summands of each unit: 1, flipped, agreement, majority share, variance, and four for pairs.

    The last four describe pairs asked in two orders and pairs asked in one order: for each kind, whether
    there are any and the share that agrees. All are zero for units with fewer than two answers.
    """
    codes, order = table.codes, table.order
    there = codes >= 0
    m = there.sum(1)
    alike_with = np.zeros(codes.shape)
    pairs = np.zeros((len(codes), 4))
    for a, b in combinations(range(codes.shape[1]), 2):
        both = there[:, a] & there[:, b]
        alike = both & (codes[:, a] == codes[:, b])
        alike_with[:, a] += alike
        alike_with[:, b] += alike
        known = both & (order[:, a] >= 0) & (order[:, b] >= 0)
        swapped = order[:, a] != order[:, b]
        for at, kind in ((0, known & swapped), (2, known & ~swapped)):
            pairs[:, at] += kind
            pairs[:, at + 1] += kind & alike
    safe = np.maximum(m, 2)
    agreement = alike_with.sum(1) / (safe * (safe - 1))
    majority = (np.where(there, alike_with + 1, 0).max(1, initial=0)) / np.maximum(m, 1)
    shares = np.column_stack(
        [
            pairs[:, 0] > 0,
            np.nan_to_num(ratio(pairs[:, 1], pairs[:, 0])),
            pairs[:, 2] > 0,
            np.nan_to_num(ratio(pairs[:, 3], pairs[:, 2])),
        ]
    )
    parts = np.column_stack(
        [np.ones(len(m)), majority < 1, agreement, majority, _variances(table, m), shares]
    )
    return np.where((m >= 2)[:, None], parts, 0.0)


def _variances(table: RepeatTable, m: Array) -> Array:
    if table.level != "interval" or table.values is None or not len(table.values):
        return np.zeros(len(m))
    there = table.codes >= 0
    x = np.where(there, table.values[table.codes], 0.0)
    centred = np.where(there, x - (x.sum(1) / np.maximum(m, 1))[:, None], 0.0)
    return np.asarray((centred**2).sum(1) / np.maximum(m - 1, 1))


def reasons_of(tables: Sequence[RepeatTable]) -> list[Reason]:
    """Return the reason for each statistic in case it is undefined over these tables."""
    if not any(((table.codes >= 0).sum(1) >= 2).any() for table in tables):
        return ["no_repeats"] * len(FIGURES)
    return [
        "no_repeats",
        "no_repeats",
        "single_class",
        "no_repeats",
        "not_comparable",
        "no_order",
        "no_order",
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatTable:
    """The repeated answers of one judge.

    Attributes:
        judge: Name of the judge; empty if unknown.
        criterion: Name of the criterion; empty if unknown.
        codes: Code of each answer, shape `(n_units, n_repeats)`, -1 if missing.
        order: Code of the order in which each question was asked, same shape; -1 if unknown.
        values: Value of each code, increasing; None for unordered categories.
        level: Measurement level that alpha uses.
        item: The item of each unit, shape `(n_units,)`.
    """

    judge: str
    criterion: str
    codes: Codes
    order: Codes
    values: Array | None
    level: AlphaLevel
    item: Codes


def table_of_ratings(
    ratings: Any, scale: Scale | None, order: Any, cluster: Iterable[Any] | None
) -> RepeatTable:
    """Build a table from units × repeats of labels or numbers.

    Raises:
        ArgumentError: If rows differ in length, a label is outside the scale, or `order` has another shape.
    """
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
