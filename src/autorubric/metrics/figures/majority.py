"""Majority vote, and the encoding of votes as codes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from autorubric.errors import ArgumentError
from autorubric.metrics.core.contingency import numeric_column, read_rows
from autorubric.metrics.core.resampling import check_choice
from autorubric.metrics.core.scales import MISSING, Array, Binary, CategoricalScale, Codes, Nominal, Scale
from autorubric.metrics.figures.many_raters import code_ratings

_COUNTED_KEYS = 1 << 20


@dataclass(frozen=True, slots=True)
class Patterns:
    votes: Any  # number of times each rater gave each category, shape `(n_patterns, R * K)`, sparse
    counts: Array  # number of items with each pattern, shape `(n_patterns,)`
    of_item: Codes  # pattern of each item, shape `(n_items,)`
    n_raters: int
    n_columns: int  # number of columns with at least one vote
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
            # Numbers without gaps avoid an overflow.
            seen, keys = np.unique(keys, return_inverse=True)
            span = len(seen)
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


@dataclass(frozen=True, slots=True)
class CodedVotes:
    codes: Codes  # positions in `categories`, shape `(n_units, n_raters)`, -1 if there is no vote
    # labels in the order of the scale, each in the form in which it was first voted
    categories: tuple[Any, ...]
    scale: CategoricalScale | None  # the declared or inferred scale; None for integer codes


def vote_matrix(ratings: Any, scale: Scale | None, labels: int | None) -> CodedVotes:
    """Encode the votes as positions on the scale."""
    table = _as_table(ratings)
    coded, codes = code_ratings(table, scale, labels)
    return CodedVotes(codes, _categories(table, codes, coded.scale, coded.size), coded.scale)


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
    found = [None if place < 0 else table[place // width][place % width] for place in places.tolist()]
    voted = [label.item() if isinstance(label, np.generic) else label for label in found]
    if scale is None:
        return tuple(range(size))
    return tuple(
        _label_without_votes(scale, code, voted) if place < 0 else voted[code]
        for code, place in enumerate(places)
    )


def _label_without_votes(scale: CategoricalScale, code: int, voted: Sequence[Any]) -> Any:
    """Return the label of a category without votes; a binary label has the type of the other's votes."""
    other = next((label for label in voted if label is not None), None)
    if isinstance(scale, Binary) and isinstance(other, bool | int | float):
        return type(other)(code)
    return scale.labels[code]


TiePolicy: TypeAlias = Literal["first", "lowest", "highest", "random"]
"""Rule that selects one of the tied labels."""

_RELATIVE_TIE = 1e-9


def majority_vote(
    ratings: Any,
    *,
    ties: TiePolicy | None = None,
    weights: Iterable[float] | None = None,
    scale: Scale | None = None,
    labels: int | None = None,
    rng: int | np.random.Generator = 0,
) -> list[Any]:
    """Return, for each unit, the label with the most votes or the largest total weight.

    A plurality is enough. The result is None for units that have no votes and for ties, unless `ties` is:

    - `"first"`: the tied label that comes first in the row, so list the raters in order of precedence;
    - `"lowest"`, `"highest"`: the lowest or highest tied label on the scale, if one kind of error is
      preferable; requires an order: binary labels, numbers or a declared `Ordinal`;
    - `"random"`: one of the tied labels, with equal probability.

    Labels are returned in the form in which they were given. If equivalent labels occur, such as `True` and
    `"MET"`, the first form that occurs is returned.

    Args:
        ratings: Labels of shape `(n_units, n_raters)`; None and NaN are missing votes.
        ties: Policy for ties; None returns None for tied units.
        weights: One non-negative weight per rater; votes with weight 0 are ignored.
        scale: Declared categories; None uses the categories that occur.
        labels: Number of categories K, if the labels are integer codes 0..K-1, -1 for missing.
        rng: Seed or generator for `ties="random"`.

    Raises:
        ArgumentError: If rows differ in length, a label is not on the scale, the number of weights differs
            from the number of raters, or the policy is unknown or needs an order that the labels do not have.
    """
    check_choice("ties", ties, TiePolicy, or_none=True)
    votes = vote_matrix(ratings, scale, labels)
    if ties in ("lowest", "highest") and isinstance(votes.scale, Nominal):
        raise ArgumentError(f"ties={ties!r} needs an order, but {votes.scale} has none; pass Ordinal(labels)")
    weight = _weights(weights, votes.codes.shape[1])
    of_unit, example, _ = distinct_rows(votes.codes, len(votes.categories))
    # Units with identical votes are counted once; only random ties are resolved unit by unit.
    patterns = votes.codes[example]
    tied = _tied(patterns, weight, len(votes.categories))
    winner = np.where(tied.sum(1) == 1, _first(tied), MISSING)[of_unit]
    if ties is not None:
        still_open = np.flatnonzero((tied.sum(1) > 1)[of_unit])
        which = of_unit[still_open]
        winner[still_open] = _break_ties(ties, tied[which], patterns[which][:, weight > 0], rng)
    labels_or_none = np.empty(len(votes.categories) + 1, dtype=object)
    labels_or_none[:-1] = votes.categories
    return list(labels_or_none[winner].tolist())


def _weights(weights: Iterable[float] | None, n_raters: int) -> Array:
    if weights is None:
        return np.ones(n_raters)
    given = numeric_column(weights, "weights")
    # An empty table has no columns to count.
    if n_raters and len(given) != n_raters:
        raise ArgumentError(f"weights has {len(given)} values for {n_raters} raters; pass one per rater")
    if not np.all(given >= 0):
        raise ArgumentError(f"weights must be non-negative numbers; got {given.tolist()!r}")
    return given[:n_raters]


def _tied(codes: Codes, weight: Array, size: int) -> Array:
    """Return whether each category has the largest weight in its row, `(n, K)`; False without votes."""
    row, rater = np.nonzero(codes >= 0)
    cells = row * size + codes[row, rater]
    total = np.bincount(cells, weights=weight[rater], minlength=len(codes) * size)
    total = total.reshape(len(codes), size)
    top = total.max(axis=1, keepdims=True, initial=0.0)
    return np.asarray((total >= top * (1 - _RELATIVE_TIE)) & (top > 0))


def _first(which: Array) -> Codes:
    """Return the first true column of each row, or 0 if no column is true."""
    return np.asarray(which.argmax(1) if which.shape[1] else np.zeros(len(which), dtype=np.int64))


def _break_ties(ties: TiePolicy, tied: Array, codes: Codes, rng: int | np.random.Generator) -> Codes:
    """Return the winner of each tied row; `codes` are the votes with nonzero weight."""
    if ties == "lowest":
        return _first(tied)
    if ties == "highest":
        return np.asarray(tied.shape[1] - 1 - _first(tied[:, ::-1]))
    if ties == "random":
        lots = np.random.default_rng(rng).random(tied.shape)
        return _first(tied & (lots == np.where(tied, lots, -1.0).max(1, keepdims=True, initial=-1.0)))
    among = np.take_along_axis(tied, np.maximum(codes, 0), axis=1) & (codes >= 0)
    if not among.size:
        return _first(among)
    return np.asarray(np.take_along_axis(codes, among.argmax(1)[:, None], axis=1)[:, 0])
