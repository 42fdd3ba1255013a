"""The panel that some of the judges would have been, recomputed from their decisions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from autorubric.metrics._audit._decided import Decided
from autorubric.metrics._resampling import Array

EXHAUSTIVE_UP_TO = 10
"""With more judges than these, panels are grown one judge at a time."""


def panel_credit(decided: Decided, members: Sequence[int]) -> Array:
    """How right the panel of some judges is on each cell, in [0, 1], shape `(n_cells,)`.

    Categories: 1 if more of them gave the true one than any other, 1/t if t categories lead and it is among
    them (what breaking the tie at random would give), else 0. Values: 1 - |mean - truth|. NaN where there is
    no label, or one of the judges gave no answer.
    """
    chosen = list(members)
    credit = np.full(len(decided.item), np.nan)
    complete = decided.labelled & decided.answered[:, chosen].all(axis=1)
    if not chosen:
        return credit
    graded = decided.graded
    which = complete & graded
    credit[which] = 1 - np.abs(decided.value[which][:, chosen].mean(1) - decided.truth_value[which])
    which = complete & ~graded
    credit[which] = _plurality(decided.code[which][:, chosen], decided.truth_code[which])
    return credit


def _plurality(codes: Array, truth: Array) -> Array:
    if not len(codes):
        return np.zeros(0)
    size = int(max(codes.max(), truth.max())) + 1
    counts = np.stack([(codes == category).sum(1) for category in range(size)], axis=1)
    leading = counts == counts.max(1, keepdims=True)
    return np.where(leading[np.arange(len(truth)), truth], 1.0 / leading.sum(1), 0.0)


def panels_by_size(n_judges: int) -> Iterator[list[tuple[int, ...]]]:
    """All panels of one judge, of two, and so on, up to all judges."""
    for size in range(1, n_judges + 1):
        yield list(combinations(range(n_judges), size))
