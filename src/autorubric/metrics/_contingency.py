"""Conversion of two columns of labels to a contingency table and its resampling units."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics._options import CodedOptions
from autorubric.metrics._resampling import Array, Units
from autorubric.metrics._scales import (
    MISSING,
    CategoricalScale,
    Codes,
    Interval,
    Scale,
    as_sequence,
    infer_scale,
    is_missing,
)


@dataclass(frozen=True, slots=True)
class Coded:
    """Labels encoded as positions on one scale.

    Attributes:
        codes: One array per rater, each of shape `(n,)`.
        scale: The declared or inferred scale; None for integer codes.
        size: Number of categories; 0 if there are no labels.
        declared: Whether the caller declared the categories.
    """

    codes: tuple[Codes, ...]
    scale: CategoricalScale | None
    size: int
    declared: bool


def encode(columns: Iterable[Iterable[Any]], scale: Scale | None, labels: int | None) -> Coded:
    """Encode columns of labels on one scale, declared or inferred from all columns.

    Raises:
        ArgumentError: If both scale and labels are passed, the scale has no categories, or a label is not on
            the scale.
    """
    sequences = [as_sequence(column, "labels") for column in columns]
    if labels is not None:
        if scale is not None:
            raise ArgumentError("pass either scale or labels, not both")
        return Coded(tuple(_bare_codes(column, labels) for column in sequences), None, labels, True)
    if isinstance(scale, Interval):
        raise ArgumentError(f"{scale} has no categories; pass Binary(), Nominal(labels) or Ordinal(labels)")
    levels = [_levels(column) for column in sequences]
    used = scale or infer_scale(label for seen, _ in levels for label in seen)
    if used is None:
        return Coded(tuple(np.full(len(c), MISSING, dtype=np.int64) for c in sequences), None, 0, False)
    codes = tuple(_place(used.encode(seen), where) for seen, where in levels)
    return Coded(codes, used, used.size, scale is not None)


def _levels(column: Any) -> tuple[list[Any], Codes | None]:
    """Return the distinct labels and the index of each label; sequences are returned whole, without index."""
    if isinstance(column, np.ndarray) and column.dtype != object:
        seen, where = _distinct(column)
        return seen.tolist(), where
    return list(column), None


def _distinct(column: Any) -> tuple[Any, Codes]:
    """Return the sorted distinct values and the index of each value, without sorting dense integers."""
    if column.size and column.dtype.kind in "iu" and np.can_cast(column.dtype, np.int64):
        low = int(column.min())
        span = int(column.max()) - low + 1
        if span <= column.size:
            marks = np.zeros(span, dtype=bool)
            offsets = column.astype(np.int64, copy=False) - low
            marks[offsets] = True
            return np.flatnonzero(marks) + low, (np.cumsum(marks) - 1)[offsets]
    seen, where = np.unique(column, return_inverse=True)
    return seen, where.reshape(-1)


def _place(codes: Codes, where: Codes | None) -> Codes:
    return codes if where is None else codes[where]


def _bare_codes(column: Any, size: int) -> Codes:
    codes = np.asarray(column)
    if codes.dtype.kind not in "iu":
        filled = [MISSING if is_missing(code) else code for code in codes.tolist()]
        wrong = [code for code in filled if not isinstance(code, Real) or not float(code).is_integer()]
        if wrong:
            raise ArgumentError(
                f"with labels={size}, labels must be integer codes 0..{size - 1}, or -1 or None if missing; "
                f"got {wrong[0]!r}. Use scale= for other kinds of labels"
            )
        codes = np.array(filled, dtype=np.int64)
    if codes.size and (codes.min() < MISSING or codes.max() >= size):
        wrong = codes[(codes < MISSING) | (codes >= size)][0]
        raise ArgumentError(f"code {int(wrong)} is outside 0..{size - 1} (-1 means missing)")
    return codes.astype(np.int64, copy=False)


def cluster_codes(cluster: Iterable[Any] | None, n: int) -> Codes | None:
    """Return the clusters numbered from 0, shape `(n,)`.

    Raises:
        ArgumentError: If the number of ids differs from the number of units, or an id is missing.
    """
    if cluster is None:
        return None
    ids = as_sequence(cluster, "cluster")
    if len(ids) != n:
        raise ArgumentError(f"cluster has {len(ids)} ids for {n} units; pass one id per unit")
    if isinstance(ids, np.ndarray) and ids.dtype.kind in "iu":
        return np.unique(ids, return_inverse=True)[1].reshape(-1)
    numbers: dict[Any, int] = {}
    try:
        codes = np.array([numbers.setdefault(one, len(numbers)) for one in ids], dtype=np.int64)
    except TypeError as error:
        raise ArgumentError(f"cluster ids must be hashable: {error}") from None
    for one, number in numbers.items():
        if is_missing(one):
            raise ArgumentError(
                f"cluster has no id at position {int(np.argmax(codes == number))} ({one!r}); pass an id for "
                "every unit, and a unique id for a unit that belongs to no cluster"
            )
    return codes


@dataclass(frozen=True, slots=True)
class TableInput:
    """A K × K table with truth in the rows, and its resampling units.

    Attributes:
        units: Sampling units, whose sums are the cells of the table, row by row.
        size: Number of categories K; 0 if there are no labels.
        scale: The declared or inferred scale; None for integer codes and tables without a scale.
        declared: Whether the caller declared the categories.
        n_missing: Number of pairs dropped because a label was missing.
    """

    units: Units
    size: int
    scale: CategoricalScale | None
    declared: bool
    n_missing: int = 0

    @property
    def table(self) -> Array:
        """Counts of the label pairs, shape `(K, K)`."""
        return self.units.total().reshape(self.size, self.size)


def read_pair(
    truth: Iterable[Any] | None,
    pred: Iterable[Any] | None,
    table: Any,
    scale: Scale | None,
    options: CodedOptions,
) -> TableInput:
    """Return the contingency table of two raters from their labels or from counts.

    Raises:
        ArgumentError: If neither or both forms are passed, the lengths differ, or the counts are invalid.
    """
    if table is not None:
        if truth is not None or pred is not None or options.cluster is not None:
            raise ArgumentError("pass either table or both truth and pred; table cannot be used with cluster")
        return _read_table(table, scale, options.labels)
    if truth is None or pred is None:
        raise ArgumentError("pass truth and pred, or table")
    coded = encode((truth, pred), scale, options.labels)
    left, right = coded.codes
    if len(left) != len(right):
        raise ArgumentError(f"truth has {len(left)} labels but pred has {len(right)}; lengths must match")
    units, n_missing = table_units(left, right, coded.size, cluster_codes(options.cluster, len(left)))
    return TableInput(units, coded.size, coded.scale, coded.declared, n_missing)


def table_units(left: Codes, right: Codes, size: int, cluster: Codes | None) -> tuple[Units, int]:
    """Return the units of the table of two code columns, and the number of dropped pairs."""
    both = (left >= 0) & (right >= 0)
    n_missing = int(both.size - np.count_nonzero(both))
    if n_missing:
        left, right = left[both], right[both]
    cells = left * size + right
    if cluster is None:
        return Units(counts=np.bincount(cells, minlength=size * size), n=len(cells)), n_missing
    members = np.unique(cluster[both] if n_missing else cluster, return_inverse=True)[1].reshape(-1)
    n_clusters = int(members.max()) + 1 if members.size else 0
    flat = np.bincount(members * size * size + cells, minlength=n_clusters * size * size)
    sums = flat.reshape(n_clusters, size * size).astype(float)
    return Units(
        counts=np.ones(n_clusters, dtype=np.int64), n=len(cells), sums=sums, clustered=True
    ), n_missing


def _read_table(table: Any, scale: Scale | None, labels: int | None) -> TableInput:
    counts = np.asarray(table, dtype=float)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or not counts.size:
        raise ArgumentError(f"table must have shape (K, K), with truth in the rows; got {counts.shape}")
    if not np.all(np.isfinite(counts)) or np.any(counts < 0) or np.any(counts != np.round(counts)):
        raise ArgumentError("table must contain only non-negative integers")
    if isinstance(scale, Interval):
        raise ArgumentError(f"{scale} has no categories; pass Binary(), Nominal(labels) or Ordinal(labels)")
    size = len(counts)
    declared = labels if scale is None else scale.size
    if declared is not None and declared != size:
        raise ArgumentError(f"table is {size} × {size}, but the scale has {declared} categories")
    cells = counts.reshape(-1).astype(np.int64)
    return TableInput(Units(counts=cells, n=int(cells.sum())), size, scale, True)
