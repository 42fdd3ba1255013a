"""Columns with missing values, contingency tables, and proportions of correct answers in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from autorubric.errors import ArgumentError
from autorubric.metrics.core.resampling import CodedOptions, Units
from autorubric.metrics.core.scales import (
    MISSING,
    Array,
    CategoricalScale,
    Codes,
    Interval,
    Scale,
    as_sequence,
    infer_scale,
    is_missing,
)
from autorubric.support.frames import as_pandas, is_frame

Rows: TypeAlias = "npt.NDArray[Any] | list[Sequence[Any]]"
"""A 2-D array, or rows of equal length."""

_PLAIN = "biufUS"
"""Dtype kinds that are kept. Arrays of all other kinds are converted to object arrays."""


def read_rows(table: Any, what: str, shape: str = "(n_units, n_raters)") -> Rows:
    """Read the rows of a table; the column names and index of a DataFrame are dropped."""
    if is_frame(table):
        frame = as_pandas(table)
        array = np.asarray(frame.to_numpy())
        # Types without a numpy dtype, such as categories, become objects.
        return array if array.dtype.kind in _PLAIN else np.asarray(frame.to_numpy(dtype=object))
    if isinstance(table, np.ndarray):
        if table.ndim != 2:
            raise ArgumentError(f"{what} must have shape {shape}; got {table.shape}")
        if isinstance(table, np.ma.MaskedArray):
            masked: Any = table
            return np.asarray(np.where(np.ma.getmaskarray(masked), None, masked.data.astype(object)))
        return table
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


def _row(row: Any, what: str, shape: str) -> Any:
    if isinstance(row, str | bytes | Mapping) or not isinstance(row, Iterable):
        raise ArgumentError(f"{what} must be a table of shape {shape} with lists as rows; got row {row!r}")
    if isinstance(row, np.ndarray) and row.ndim != 1:
        raise ArgumentError(f"{what} must be a table of shape {shape}; got a row of shape {row.shape}")
    return row if isinstance(row, list | tuple | np.ndarray) else list(row)


def numeric_column(values: Iterable[Any], what: str) -> Array:
    """Convert the values to floats of shape `(n,)`, NaN where missing."""
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


def number_rows(ratings: Any) -> Array:
    """Read a table of numbers as floats, with NaN for missing values."""
    rows = read_rows(ratings, "ratings")
    if isinstance(rows, np.ndarray):
        return numeric_column(rows.reshape(-1), "ratings").reshape(rows.shape)
    numbers = [numeric_column(row, "a row of ratings") for row in rows]
    return np.array(numbers) if numbers else np.zeros((0, 0))


@dataclass(frozen=True, slots=True)
class NumberPairs:
    """The complete pairs of two columns of numbers."""

    truth: Array  # values of truth, shape `(n,)`
    pred: Array  # values of pred, shape `(n,)`
    cluster: Codes | None  # cluster of each pair, 0..C-1 without gaps; None if each pair is a unit
    n_missing: int  # number of incomplete pairs that were dropped

    @property
    def n(self) -> int:
        return len(self.truth)


def check_lengths(what: str, **columns: Sized) -> None:
    """Raise an error if the columns differ in length; `what` names their entries."""
    if len({len(column) for column in columns.values()}) > 1:
        first, *others, last = (f"{name} has {len(column)}" for name, column in columns.items())
        listed = f"{', '.join([f'{first} {what}', *others])} {'and' if others else 'but'} {last}"
        raise ArgumentError(f"{listed}; lengths must match")


def number_pairs(truth: Iterable[Any], pred: Iterable[Any], cluster: Iterable[Any] | None) -> NumberPairs:
    column = as_sequence(truth, "truth")
    members = cluster_codes(cluster, len(column))
    left, right = numeric_column(column, "truth"), numeric_column(pred, "pred")
    check_lengths("values", truth=left, pred=right)
    both = ~(np.isnan(left) | np.isnan(right))
    n_missing = int(both.size - np.count_nonzero(both))
    return NumberPairs(left[both], right[both], renumber_kept(members, both), n_missing)


@dataclass(frozen=True, slots=True)
class CodedLabels:
    """Labels encoded as positions on one scale."""

    codes: tuple[Codes, ...]  # one array per rater, each of shape `(n,)`
    scale: CategoricalScale | None  # the declared or inferred scale; None for integer codes
    size: int  # number of categories; 0 if there are no labels
    declared: bool


def encode(columns: Iterable[Iterable[Any]], scale: Scale | None, labels: int | None) -> CodedLabels:
    """Encode columns of labels on one scale, declared or inferred from all columns."""
    sequences = [as_sequence(column, "labels") for column in columns]
    if labels is not None:
        if scale is not None:
            raise ArgumentError("pass either scale or labels, not both")
        return CodedLabels(tuple(_bare_codes(column, labels) for column in sequences), None, labels, True)
    if isinstance(scale, Interval):
        raise ArgumentError(f"{scale} has no categories; pass Binary(), Nominal(labels) or Ordinal(labels)")
    levels = [_levels(column) for column in sequences]
    used = scale or infer_scale(*(seen for seen, _ in levels))
    if used is None:
        return CodedLabels(tuple(np.full(len(c), MISSING, dtype=np.int64) for c in sequences), None, 0, False)
    codes = tuple(used.encode(seen) if where is None else used.encode(seen)[where] for seen, where in levels)
    return CodedLabels(codes, used, used.size, scale is not None)


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


def renumber(values: Array) -> Codes:
    """Number the distinct values from 0 in ascending order, shape `(n,)`."""
    return _distinct(values)[1]


def number_codes(numbers: Array) -> tuple[Codes, Array]:
    """Return numbers as positions among their distinct values, -1 for NaN, and these values in order."""
    distinct, places = np.unique(numbers, return_inverse=True)
    return np.where(np.isnan(numbers), MISSING, places.reshape(numbers.shape)), distinct[~np.isnan(distinct)]


def cluster_codes(cluster: Iterable[Any] | None, n: int, what: str = "cluster") -> Codes | None:
    """Return the clusters numbered from 0, shape `(n,)`."""
    if cluster is None:
        return None
    ids = as_sequence(cluster, what)
    if len(ids) != n:
        raise ArgumentError(f"{what} has {len(ids)} ids for {n} units; pass one id per unit")
    if isinstance(ids, np.ndarray) and ids.dtype.kind in "iu":
        return renumber(ids)
    numbers: dict[Any, int] = {}
    try:
        codes = np.array([numbers.setdefault(one, len(numbers)) for one in ids], dtype=np.int64)
    except TypeError as error:
        raise ArgumentError(f"{what} ids must be hashable: {error}") from None
    for one, number in numbers.items():
        if is_missing(one):
            raise ArgumentError(
                f"{what} has no id at position {int(np.argmax(codes == number))} ({one!r}); pass an id for "
                f"every unit, and a unique id for a unit that belongs to no {what.removesuffix('s')}"
            )
    return codes


def renumber_kept(members: Codes | None, kept: Array) -> Codes | None:
    """Return the clusters of the kept units, numbered without gaps."""
    return None if members is None else renumber(members[kept])


def drop_incomplete(complete: Array, cluster: Iterable[Any] | None) -> tuple[Codes | None, int]:
    """Return the clusters of the complete units, numbered without gaps, and the number of other units."""
    n_missing = int(complete.size - np.count_nonzero(complete))
    return renumber_kept(cluster_codes(cluster, len(complete)), complete), n_missing


def cell_units(cells: Codes, n_cells: int, cluster: Codes | None) -> Units:
    """Return the units of a table from the cell of each pair; clusters are numbered without gaps."""
    if cluster is None:
        return Units(counts=np.bincount(cells, minlength=n_cells), n=len(cells))
    n_clusters = int(cluster.max(initial=-1)) + 1
    flat = np.bincount(cluster * n_cells + cells, minlength=n_clusters * n_cells)
    sums = flat.reshape(n_clusters, n_cells).astype(float)
    return Units(counts=np.ones(n_clusters, dtype=np.int64), n=len(cells), sums=sums, clustered=True)


@dataclass(frozen=True, slots=True)
class TableInput:
    """A K × K table with truth in the rows, and its resampling units."""

    units: Units  # sampling units, whose sums are the cells of the table, row by row
    size: int  # number of categories K; 0 if there are no labels
    # the declared or inferred scale; None for integer codes and tables without a scale
    scale: CategoricalScale | None
    declared: bool
    n_missing: int = 0  # number of pairs dropped because a label was missing

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
    """Return the contingency table of two raters from their labels or from counts."""
    if table is not None:
        if truth is not None or pred is not None or options.cluster is not None:
            raise ArgumentError("pass either table or both truth and pred; table cannot be used with cluster")
        return _read_table(table, scale, options.labels)
    if truth is None or pred is None:
        raise ArgumentError("pass truth and pred, or table")
    coded = encode((truth, pred), scale, options.labels)
    left, right = coded.codes
    check_lengths("labels", truth=left, pred=right)
    units, n_missing = table_units(left, right, coded.size, cluster_codes(options.cluster, len(left)))
    return TableInput(units, coded.size, coded.scale, coded.declared, n_missing)


def table_units(left: Codes, right: Codes, size: int, cluster: Codes | None) -> tuple[Units, int]:
    """Return the units of the table of two code columns, and the number of dropped pairs."""
    both = (left >= 0) & (right >= 0)
    n_missing = int(both.size - np.count_nonzero(both))
    if n_missing:
        left, right = left[both], right[both]
    return cell_units(left * size + right, size * size, renumber_kept(cluster, both)), n_missing


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


def divide(numerator: Array, denominator: Array) -> Array:
    """Divide the numerator by the denominator; NaN where the denominator is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(denominator == 0, np.nan, numerator / denominator)


def mean_of_defined(values: Array, axis: int = -1) -> Array:
    """Return the mean of the defined values; NaN if all are undefined."""
    there = ~np.isnan(values)
    return divide(add_up(np.where(there, values, 0.0), axis), there.sum(axis))


def add_up(values: Array, axis: int = -1) -> Array:
    """Return the sums over an axis; the order of the additions does not depend on the layout in memory."""
    return np.asarray(np.ascontiguousarray(values).sum(axis))


def hits(table: Array) -> Array:
    """Compute the number of correct answers, the sum of the diagonal."""
    return np.asarray(np.trace(table, axis1=-2, axis2=-1))


class OneVsRest(NamedTuple):
    """Counts of one category against all others, as arrays of shape `(...)`."""

    tp: Array
    fp: Array
    fn: Array
    tn: Array


def one_vs_rest(table: Array, positive: int) -> OneVsRest:
    """Count true positives, false positives, false negatives and true negatives of category `positive`."""
    tp = table[..., positive, positive]
    fp = table[..., :, positive].sum(-1) - tp
    fn = table[..., positive, :].sum(-1) - tp
    return OneVsRest(tp, fp, fn, table.sum((-1, -2)) - tp - fp - fn)


@dataclass(frozen=True, slots=True)
class OneVsRestRate:
    """A rate of one category against all others; called with tables and the position of the category."""

    numerator: Callable[[OneVsRest], Array]
    denominator: Callable[[OneVsRest], Array]

    def __call__(self, table: Array, positive: int) -> Array:
        cells = one_vs_rest(table, positive)
        return divide(self.numerator(cells), self.denominator(cells))


precision_of = OneVsRestRate(lambda cells: cells.tp, lambda cells: cells.tp + cells.fp)
recall_of = OneVsRestRate(lambda cells: cells.tp, lambda cells: cells.tp + cells.fn)
specificity_of = OneVsRestRate(lambda cells: cells.tn, lambda cells: cells.tn + cells.fp)
f1_of = OneVsRestRate(lambda cells: 2 * cells.tp, lambda cells: 2 * cells.tp + cells.fp + cells.fn)
negative_agreement_of = OneVsRestRate(
    lambda cells: 2 * cells.tn, lambda cells: 2 * cells.tn + cells.fp + cells.fn
)


def balanced_accuracy_of(table: Array) -> Array:
    """Compute the mean recall over the classes that occur in the truth; NaN if there are fewer than two."""
    support = table.sum(-1)
    recalls = mean_rate(np.diagonal(table, axis1=-2, axis2=-1), support)
    return np.where((support != 0).sum(-1) < 2, np.nan, recalls)


def mean_rate(numerator: Array, denominator: Array) -> Array:
    """Compute the mean of the rates of the classes, `(..., K)`, whose denominator is not 0."""
    there = denominator != 0
    rates = np.where(there, divide(numerator, denominator), 0)
    return divide(rates.sum(-1), there.sum(-1))


def mcc_of(table: Array) -> Array:
    """Compute Gorodkin's R_K; NaN if the truth or the predictions are constant."""
    rows, columns = table.sum(-1), table.sum(-2)
    n = rows.sum(-1)
    covariance = n * hits(table) - (rows * columns).sum(-1)
    spread = (n * n - (rows**2).sum(-1)) * (n * n - (columns**2).sum(-1))
    return divide(covariance, np.sqrt(spread))


def adjacent_hits(table: Array, k: int) -> Array:
    """Count the pairs at most k places off the diagonal."""
    places = np.arange(table.shape[-1])
    return np.asarray((table * (np.abs(places[:, None] - places[None, :]) <= k)).sum((-1, -2)))
