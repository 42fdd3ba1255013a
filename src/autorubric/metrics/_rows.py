"""Tables with a row a unit, as people have them: frames, 2-D arrays, lists of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from autorubric.errors import ArgumentError

Rows: TypeAlias = "npt.NDArray[Any] | list[Sequence[Any]]"
"""A 2-D array, or rows of equal length."""

_PLAIN = "biufUS"
"""Kinds of columns that numpy holds as they are; any other becomes an array of objects."""


def is_frame(table: Any) -> bool:
    """Whether it is a frame: something with columns that turns into an array."""
    return hasattr(table, "columns") and callable(getattr(table, "to_numpy", None))


def read_rows(table: Any, what: str, shape: str = "(n_units, n_raters)") -> Rows:
    """The rows of a table; a frame's names and index are no part of it.

    Args:
        table: A frame, a 2-D array, or an iterable of rows.
        what: The argument's name.
        shape: What is wanted, in words.

    Raises:
        ArgumentError: It is no table, or its rows differ in length.
    """
    if is_frame(table):
        return _of_frame(table)
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
    """A frame's values; those that numpy has no type for (nullable numbers, categories) as objects."""
    array = np.asarray(frame.to_numpy())
    return array if array.dtype.kind in _PLAIN else np.asarray(frame.to_numpy(dtype=object))
