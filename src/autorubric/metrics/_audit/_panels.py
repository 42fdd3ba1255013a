"""Panels of subsets of the judges, recomputed from the judges' decisions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from autorubric.metrics._audit._decided import Decided
from autorubric.metrics._resampling import Array

EXHAUSTIVE_UP_TO = 10
"""Maximum number of judges for which all panels are tried; with more, panels grow one judge at a time."""


def panel_credit(decided: Decided, members: Sequence[int]) -> Array:
    """Return a panel's correctness on each criterion of each item, in [0, 1], shape `(n_cells,)`.

    For categories, it is 1 if the true one has the most votes, 1/t if it is among t tied for the lead (the
    expected result of breaking the tie at random), and 0 otherwise. For values, it is 1 - |mean - truth|. It
    is NaN if there is no label or one of the judges did not answer.
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
    """Yield all panels of one judge, then of two, and so on up to all judges."""
    for size in range(1, n_judges + 1):
        yield list(combinations(range(n_judges), size))
