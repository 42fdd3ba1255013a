"""Distinct patterns of votes with their item counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Codes

_COUNTED_KEYS = 1 << 20


@dataclass(frozen=True, slots=True)
class Patterns:
    """Distinct patterns of votes.

    Attributes:
        votes: Number of times each rater gave each category, shape `(n_patterns, R * K)`, sparse.
        counts: Number of items with each pattern, shape `(n_patterns,)`.
        of_item: Pattern of each item, shape `(n_items,)`.
        n_raters: Number of raters R.
        n_columns: Number of columns with at least one vote.
        size: Number of categories K.
    """

    votes: Any
    counts: Array
    of_item: Codes
    n_raters: int
    n_columns: int
    size: int


def collapse(codes: Codes, rater: Codes, n_raters: int, size: int) -> Patterns:
    """Collapse codes, `(n_items, n_columns)`, into patterns; `rater` is the rater of each column."""
    of_item, example, counts = distinct_rows(codes, size)
    votes = codes[example]
    row, column = np.nonzero(votes >= 0)
    cell = rater[column] * size + votes[row, column]
    shape: Any = (len(votes), n_raters * size)
    entries: Any = (np.ones(len(row)), (row, cell))
    table = sparse.csr_array(entries, shape=shape)
    table.sum_duplicates()
    n_columns = int(np.count_nonzero((votes >= 0).any(0)))
    return Patterns(table, counts.astype(float), of_item, n_raters, n_columns, size)


def distinct_rows(codes: Codes, size: int) -> tuple[Codes, Codes, Codes]:
    """Return the distinct-row index of each row, and an example and count of each distinct row."""
    keys, span = np.zeros(len(codes), dtype=np.int64), 1
    for column in codes.T:
        if span * (size + 1) > _COUNTED_KEYS:
            keys, span = _renumbered(keys)
        span *= size + 1
        keys = keys * (size + 1) + column + 1
    counts = np.bincount(keys, minlength=span)
    seen = np.flatnonzero(counts)
    place = np.zeros(span, dtype=np.int64)
    place[seen] = np.arange(len(seen))
    of_row = place[keys]
    example = np.zeros(len(seen), dtype=np.int64)
    example[of_row] = np.arange(len(keys))
    return of_row, example, counts[seen]


def _renumbered(keys: Codes) -> tuple[Codes, int]:
    """Renumber keys without gaps to avoid overflow, and return the number of distinct keys."""
    seen, places = np.unique(keys, return_inverse=True)
    return places.reshape(-1), len(seen)
