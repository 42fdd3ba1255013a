"""Position bias: whether a judge prefers the candidate shown first."""

from __future__ import annotations

import numpy as np

from autorubric.metrics._audit._bias_results import TestedBias
from autorubric.metrics._audit._leniency import tested_mean
from autorubric.metrics._votes_table import ANSWERED, DECIDED, VotesTable

_METHOD = "share of decided comparisons won by the candidate shown first, minus 1/2"


def position_lean(table: VotesTable, judge: str, confidence_level: float) -> TestedBias:
    """Estimate the share of decided single votes won by the candidate shown first, minus ½."""
    mine = table.rater == table.raters.index(("judge", judge))
    known = np.array([order is not None for order in table.order.tolist()], dtype=bool)
    ranked = np.array([one.level == "ranking" for one in table.criteria], dtype=bool)
    single = mine & known & (table.sample != DECIDED) & (table.status == ANSWERED)
    rows = np.flatnonzero(single & ranked[table.criterion])
    won = np.array([_won(table.order[row], table.label[row]) for row in rows], dtype=float)
    return tested_mean(won - 0.5, table.item[rows], confidence_level, _METHOD, "no_order")


def _won(order: str, label: str | None) -> float:
    """Return 1 if the candidate shown first won, 0 if another did, NaN if there is no single winner."""
    shown = order.split(", ")
    winner = _winner(label, shown)
    return float("nan") if winner is None else float(winner == shown[0])


def _winner(label: str | None, shown: list[str]) -> str | None:
    """Return the winner in labels such as `a`, `a by 2` or `a > b > c`; None without a single winner."""
    if label is None:
        return None
    leader = label.split(" > ")[0]
    if leader in shown:
        return leader
    name, by, _ = leader.rpartition(" by ")
    return name if by and name in shown else None
