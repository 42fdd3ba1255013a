"""Majority vote: the label that most raters gave."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics._columns import numeric_column
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import MISSING, Codes, Nominal, Scale
from autorubric.metrics._votes_to_truth._votes import distinct_rows, read_votes

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
    if ties is not None and ties not in get_args(TiePolicy):
        raise ArgumentError(f"ties must be None or one of {list(get_args(TiePolicy))}; got {ties!r}")
    votes = read_votes(ratings, scale, labels)
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
        winner[still_open] = _broken(ties, tied[which], patterns[which][:, weight > 0], rng)
    spoken = np.empty(len(votes.categories) + 1, dtype=object)
    spoken[:-1] = votes.categories
    return list(spoken[winner].tolist())


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


def _broken(ties: TiePolicy, tied: Array, codes: Codes, rng: int | np.random.Generator) -> Codes:
    """Return the winner of each tied row; `codes` are the votes with nonzero weight."""
    if ties == "lowest":
        return _first(tied)
    if ties == "highest":
        return np.asarray(tied.shape[1] - 1 - _first(tied[:, ::-1]))
    if ties == "random":
        lots = np.random.default_rng(rng).random(tied.shape)
        return np.asarray(np.where(tied, lots, -1.0).argmax(1))
    among = np.take_along_axis(tied, np.maximum(codes, 0), axis=1) & (codes >= 0)
    return np.asarray(np.take_along_axis(codes, among.argmax(1)[:, None], axis=1)[:, 0])
