"""Conversion of columns of numbers, in which None and NaN mark missing values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Codes, as_sequence, is_missing


def numeric_column(values: Iterable[Any], what: str) -> Array:
    """Convert the values to floats of shape `(n,)`, NaN where missing.

    Raises:
        ArgumentError: If a value is infinite or not a number.
    """
    column = as_sequence(values, what)
    if isinstance(column, np.ndarray) and column.dtype.kind in "iufb":
        numbers = column.astype(float)
    else:
        numbers = np.array([_number(value, what) for value in column], dtype=float)
    if np.isinf(numbers).any():
        raise ArgumentError(f"{what} must contain finite numbers, with None for missing values")
    return numbers


def _number(value: Any, what: str) -> float:
    if is_missing(value):
        return float("nan")
    if isinstance(value, str | bytes):
        raise ArgumentError(f"{what} must contain numbers, with None for missing values; got {value!r}")
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{what} contains {value!r}, which is not a number: {error}") from None


@dataclass(frozen=True, slots=True)
class NumberPairs:
    """The complete pairs of two columns of numbers.

    Attributes:
        truth: Values of truth, shape `(n,)`.
        pred: Values of pred, shape `(n,)`.
        cluster: Cluster of each pair, 0..C-1 without gaps; None if each pair is a unit.
        n_missing: Number of incomplete pairs that were dropped.
    """

    truth: Array
    pred: Array
    cluster: Codes | None
    n_missing: int

    @property
    def n(self) -> int:
        """Number of pairs."""
        return len(self.truth)


def number_pairs(truth: Iterable[Any], pred: Iterable[Any], cluster: Codes | None) -> NumberPairs:
    """Return the complete pairs of two columns.

    Raises:
        ArgumentError: If the lengths differ, or a value is not a number.
    """
    left, right = numeric_column(truth, "truth"), numeric_column(pred, "pred")
    if len(left) != len(right):
        raise ArgumentError(f"truth has {len(left)} values but pred has {len(right)}; lengths must match")
    both = ~(np.isnan(left) | np.isnan(right))
    members = None if cluster is None else np.unique(cluster[both], return_inverse=True)[1].reshape(-1)
    return NumberPairs(left[both], right[both], members, int(both.size - np.count_nonzero(both)))
