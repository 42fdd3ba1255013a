"""Tables with one row per unit: DataFrames, 2-D arrays or lists of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from autorubric._frames import as_pandas, is_frame
from autorubric.errors import ArgumentError

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
            f"{what} must be a table {shape} (a DataFrame, 2-D array or rows); got a {type(table).__name__}"
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
        raise ArgumentError(f"{what} must be a table {shape} in which each row is a list; got row {row!r}")
    if isinstance(row, np.ndarray) and row.ndim != 1:
        raise ArgumentError(f"{what} must be a table {shape}; got a row of shape {row.shape}")
    return row if isinstance(row, list | tuple | np.ndarray) else list(row)


def _of_frame(frame: Any) -> npt.NDArray[Any]:
    """Return the values of a DataFrame. Types without a numpy dtype, such as categories, become objects."""
    array = np.asarray(frame.to_numpy())
    return array if array.dtype.kind in _PLAIN else np.asarray(frame.to_numpy(dtype=object))
