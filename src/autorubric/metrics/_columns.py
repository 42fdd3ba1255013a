"""Columns of numbers, in which None and NaN mark missing values, and tables with one row per unit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from autorubric._frames import as_pandas, is_frame
from autorubric.errors import ArgumentError
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Codes, as_sequence, is_missing

Rows: TypeAlias = "npt.NDArray[Any] | list[Sequence[Any]]"
"""A 2-D array, or rows of equal length."""

_PLAIN = "biufUS"
"""Dtype kinds that are kept. Arrays of all other kinds are converted to object arrays."""


def read_rows(table: Any, what: str, shape: str = "(n_units, n_raters)") -> Rows:
    """Read the rows of a table; the column names and index of a DataFrame are dropped.

    Args:
        table: DataFrame, 2-D array, or iterable of rows.
        what: Name of the argument, for error messages.
        shape: Description of the expected shape, for error messages.

    Raises:
        ArgumentError: If `table` is not a table, or its rows differ in length.
    """
    if is_frame(table):
        return _of_frame(as_pandas(table))
    if isinstance(table, np.ndarray):
        if table.ndim != 2:
            raise ArgumentError(f"{what} must have shape {shape}; got {table.shape}")
        return _unmasked(table) if isinstance(table, np.ma.MaskedArray) else table
    if isinstance(table, str | bytes | Mapping) or not isinstance(table, Iterable):
        raise ArgumentError(
            f"{what} must be a table of shape {shape} (DataFrame, array or rows); got {type(table).__name__}"
        )
    rows: list[Sequence[Any]] = [_row(row, what, shape) for row in table]
    widths = sorted({len(row) for row in rows})
    if len(widths) > 1:
        raise ArgumentError(
            f"all rows of {what} must have the same length, with None for gaps; got lengths {widths}"
        )
    return rows


def _unmasked(table: Any) -> npt.NDArray[Any]:
    return np.asarray(np.where(np.ma.getmaskarray(table), None, table.data.astype(object)))


def _row(row: Any, what: str, shape: str) -> Any:
    if isinstance(row, str | bytes | Mapping) or not isinstance(row, Iterable):
        raise ArgumentError(f"{what} must be a table of shape {shape} with lists as rows; got row {row!r}")
    if isinstance(row, np.ndarray) and row.ndim != 1:
        raise ArgumentError(f"{what} must be a table of shape {shape}; got a row of shape {row.shape}")
    return row if isinstance(row, list | tuple | np.ndarray) else list(row)


def _of_frame(frame: Any) -> npt.NDArray[Any]:
    """Return the values of a DataFrame. Types without a numpy dtype, such as categories, become objects."""
    array = np.asarray(frame.to_numpy())
    return array if array.dtype.kind in _PLAIN else np.asarray(frame.to_numpy(dtype=object))


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
