"""Statistics of repeated answers, as functions of item weights in a resample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from autorubric.metrics._audit._repeat_tables import RepeatTable
from autorubric.metrics._audit._resampled import ratio
from autorubric.metrics._estimate import Reason
from autorubric.metrics._krippendorff import alpha_parts
from autorubric.metrics._resampling import Array

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
