"""Tables with one row per unit: data frames, 2-D arrays, lists of rows."""

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
"""Kinds of dtypes that are kept; all others are converted to object arrays."""


def read_rows(table: Any, what: str, shape: str = "(n_units, n_raters)") -> Rows:
    """Read the rows of a table, without the column names and index of a data frame.

    Args:
        table: A data frame, a 2-D array, or an iterable of rows.
        what: Name of the argument, for messages.
        shape: Expected shape in words, for messages.

    Raises:
        ArgumentError: If it is not a table, or its rows differ in length.
    """
    if is_frame(table):
        return _of_frame(as_pandas(table))
    if isinstance(table, np.ndarray):
        if table.ndim != 2:
            raise ArgumentError(f"{what} has shape {table.shape}; give {shape}")
        return _unmasked(table) if isinstance(table, np.ma.MaskedArray) else table
    if isinstance(table, str | bytes | Mapping) or not isinstance(table, Iterable):
        raise ArgumentError(
            f"{what} is a {type(table).__name__}; give a table {shape}: rows, a 2-D array or a frame"
        )
    rows: list[Sequence[Any]] = [_row(row, what, shape) for row in table]
    widths = sorted({len(row) for row in rows})
    if len(widths) > 1:
        raise ArgumentError(
            f"{what} has rows of different lengths, {widths}; give rows of one length, None for gaps"
        )
    return rows


def _unmasked(table: Any) -> npt.NDArray[Any]:
    return np.asarray(np.where(np.ma.getmaskarray(table), None, table.data.astype(object)))


def _row(row: Any, what: str, shape: str) -> Any:
    if isinstance(row, str | bytes | Mapping) or not isinstance(row, Iterable):
        raise ArgumentError(f"{what} has the row {row!r}; give a table {shape}, each row a list")
    if isinstance(row, np.ndarray) and row.ndim != 1:
        raise ArgumentError(f"{what} has a row of shape {row.shape}; give a table {shape}")
    return row if isinstance(row, list | tuple | np.ndarray) else list(row)


def _of_frame(frame: Any) -> npt.NDArray[Any]:
    """Return the values of a data frame; types unknown to numpy (nullable numbers, categories) as objects."""
    array = np.asarray(frame.to_numpy())
    return array if array.dtype.kind in _PLAIN else np.asarray(frame.to_numpy(dtype=object))
