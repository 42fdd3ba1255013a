"""Encoding of votes as codes, decoding of codes to the original labels, and distinct patterns of votes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from autorubric.metrics._columns import read_rows
from autorubric.metrics._counts import code_ratings
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Binary, CategoricalScale, Codes, Scale

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


@dataclass(frozen=True, slots=True)
class Votes:
    """A table of votes.

    Attributes:
        codes: Positions in `categories`, shape `(n_units, n_raters)`, -1 if there is no vote.
        categories: Labels in the order of the scale, each in the form in which it was first voted.
        scale: The declared or inferred scale; None for integer codes.
        declared: Whether the caller declared the categories.
    """

    codes: Codes
    categories: tuple[Any, ...]
    scale: CategoricalScale | None
    declared: bool


def read_votes(ratings: Any, scale: Scale | None, labels: int | None) -> Votes:
    """Encode the votes as positions on the scale.

    Raises:
        ArgumentError: If rows differ in length, or a label is outside the scale.
    """
    table = _as_table(ratings)
    coded, codes = code_ratings(table, scale, labels)
    return Votes(codes, _categories(table, codes, coded.scale, coded.size), coded.scale, coded.declared)


def _as_table(ratings: Any) -> Any:
    """Return arrays, DataFrames and rows of integers as an array, which is faster; otherwise the rows."""
    rows = read_rows(ratings, "ratings")
    if isinstance(rows, np.ndarray):
        return rows
    try:
        array: npt.NDArray[Any] = np.array(rows)
    except ValueError:
        return rows
    return array if array.ndim == 2 and array.dtype.kind in "iub" else rows


def _categories(table: Any, codes: Codes, scale: CategoricalScale | None, size: int) -> tuple[Any, ...]:
    """Return the label of each code as it was first voted, or the label on the scale without votes."""
    flat = codes.reshape(-1)
    first = np.full(size + 1, -1)
    # The last assignment to an index wins, so reversed order keeps the first vote. Code -1 is the last slot.
    first[flat[::-1]] = np.arange(len(flat) - 1, -1, -1)
    places = first[:size]
    width = codes.shape[1]
    voted = [None if place < 0 else _plain(table[place // width][place % width]) for place in places.tolist()]
    if scale is None:
        return tuple(range(size))
    return tuple(
        _unvoted(scale, code, voted) if place < 0 else voted[code] for code, place in enumerate(places)
    )


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _unvoted(scale: CategoricalScale, code: int, voted: Sequence[Any]) -> Any:
    """Return the label of a category without votes; a binary label has the type of the other's votes."""
    other = next((label for label in voted if label is not None), None)
    if isinstance(scale, Binary) and isinstance(other, bool | int | float):
        return type(other)(code)
    return scale.labels[code]
