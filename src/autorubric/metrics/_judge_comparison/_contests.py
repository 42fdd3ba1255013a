"""Items with a truth and two judgements, and the difference in a metric between the two judges."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics._chance import kappa_of, undefined_reason
from autorubric.metrics._columns import numeric_column
from autorubric.metrics._contingency import Coded, cluster_codes, encode, table_units
from autorubric.metrics._estimate import Reason, UndefinedEstimateError
from autorubric.metrics._estimation import square
from autorubric.metrics._moments import pearson_of
from autorubric.metrics._options import CodedOptions, IntervalOptions
from autorubric.metrics._rater_tables import dense, row_units, weighted_units
from autorubric.metrics._resampling import Array, Compute, Units
from autorubric.metrics._scales import Codes, Interval, Nominal, Scale, as_sequence, is_missing
from autorubric.metrics._weights import Weights, weight_matrix


@dataclass(frozen=True, slots=True, kw_only=True)
class Triples:
    """Items with a truth and both judgements.

    Attributes:
        truth: True labels: codes, numbers or the labels themselves, shape `(n,)`.
        a: Labels of judge a.
        b: Labels of judge b.
        coded: Scale of the codes; None for numbers and labels.
        cluster: Cluster of each item, 0..C-1 without gaps; None if each item is its own unit.
        n_missing: Number of items excluded because the truth or a judgement was missing.
    """

    truth: Array
    a: Array
    b: Array
    coded: Coded | None
    cluster: Codes | None
    n_missing: int

    @property
    def n(self) -> int:
        """Number of complete items."""
        return len(self.truth)

    def exchanged(self) -> Triples:
        """Return the same items with the judges swapped."""
        return replace(self, a=self.b, b=self.a)


def code_triples(columns: tuple[Any, Any, Any], scale: Scale | None, options: CodedOptions) -> Triples:
    """Return the complete items as codes on one scale."""
    coded = encode(_aligned(columns), scale, options.labels)
    return _complete(coded.codes, [codes >= 0 for codes in coded.codes], coded, options)


def number_triples(columns: tuple[Any, Any, Any], scale: Scale | None, options: CodedOptions) -> Triples:
    """Return the complete items as numbers: the values passed, or the positions of labels on the scale.

    Raises:
        ArgumentError: If the scale has no positions, or a value is not a number or is outside the scale.
    """
    aligned = _aligned(columns)
    if isinstance(scale, Nominal):
        raise ArgumentError(f"{scale} defines no distances; use numbers, Ordinal(labels) or Interval()")
    if options.labels is not None or not (scale is None or isinstance(scale, Interval)):
        coded = encode(aligned, scale, options.labels)
        positions = np.arange(coded.size) if coded.scale is None else coded.scale.positions
        assert positions is not None
        placed = np.append(positions.astype(float), np.nan)
        numbers = [placed[codes] for codes in coded.codes]
    else:
        numbers = [
            numeric_column(column, name) for column, name in zip(aligned, ("truth", "a", "b"), strict=True)
        ]
        if isinstance(scale, Interval):
            numbers = [scale.check(column) for column in numbers]
    return _complete(numbers, [~np.isnan(column) for column in numbers], None, options)


def label_triples(columns: tuple[Any, Any, Any], scale: Scale | None, options: CodedOptions) -> Triples:
    """Return the complete items unchanged, after checking them against the scale, if any."""
    aligned = _aligned(columns)
    there = [np.array([not is_missing(label) for label in column], dtype=bool) for column in aligned]
    if options.labels is not None or not (scale is None or isinstance(scale, Interval)):
        there = [codes >= 0 for codes in encode(aligned, scale, options.labels).codes]
    elif isinstance(scale, Interval):
        number_triples(columns, scale, options)
    return _complete([_as_array(column) for column in aligned], there, None, options)


def _aligned(columns: tuple[Any, Any, Any]) -> list[Any]:
    named = list(zip(columns, ("truth", "a", "b"), strict=True))
    aligned = [as_sequence(column, name) for column, name in named]
    sizes = [len(column) for column in aligned]
    if len(set(sizes)) > 1:
        raise ArgumentError(
            f"truth has {sizes[0]} labels, a has {sizes[1]} and b has {sizes[2]}; lengths must match"
        )
    return aligned


def _as_array(column: Any) -> Array:
    """Return labels as an array of their type, or of objects if types are mixed, to avoid conversions."""
    if isinstance(column, np.ndarray):
        return column
    kinds = {type(label) for label in column}
    if len(kinds) == 1 and kinds <= {bool, int, float, str}:
        return np.array(column)
    array = np.empty(len(column), dtype=object)
    array[:] = column
    return array


def _complete(
    columns: Iterable[Array], there: list[Array], coded: Coded | None, options: IntervalOptions
) -> Triples:
    all_there = there[0] & there[1] & there[2]
    truth, a, b = (column[all_there] for column in columns)
    if coded is None and any(column.dtype == object for column in (truth, a, b)):
        truth, a, b = (_as_array(column.tolist()) for column in (truth, a, b))
    members = cluster_codes(options.cluster, len(all_there))
    n_missing = int(all_there.size - np.count_nonzero(all_there))
    return Triples(truth=truth, a=a, b=b, coded=coded, cluster=dense(members, all_there), n_missing=n_missing)


_KINDS = 4096

Statistic: TypeAlias = Callable[[Any, Any], Any]
"""Function from (truth, pred), arrays of shape `(n,)`, to a number; None or NaN if undefined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """A metric of judge a and of judge b on the same sampling units.

    Attributes:
        name: Name of the metric.
        units: Items or clusters.
        sides: Function from sums over units to the metrics of a and b.
        swapped: Function from the number of units of each kind in which the judges are swapped, shape `(r,
            u)`, to the difference, shape `(r,)`.
        movable: Whether swapping the judges matters for each kind of unit, shape `(u,)`.
        reason: Function that returns the reason why the difference is undefined at given sums.
        smooth: Whether the metric is differentiable in the sums.
    """

    name: str
    units: Units
    sides: Callable[[Array], tuple[Array, Array]]
    swapped: Compute
    movable: Array
    reason: Callable[[Array], Reason]
    smooth: bool = True

    def difference(self, sums: Array) -> Array:
        """Return the metric of a minus that of b."""
        a, b = self.sides(sums)
        return np.asarray(a - b)


def _of_sums(name: str, units: Units, of: Compute, reason: Callable[[Array], Reason]) -> Contest:
    """Build a `Contest` for a metric of sums; each unit has the sums of a followed by those of b."""
    assert units.sums is not None
    width = units.sums.shape[1] // 2
    gain = units.sums[:, width:] - units.sums[:, :width]
    total = units.total()

    def swapped(exchanged: Array) -> Array:
        moved = exchanged @ gain
        return np.asarray(of(total[:width] + moved) - of(total[width:] - moved))

    def why(sums: Array) -> Reason:
        side = sums[:width] if np.isnan(of(sums[None, :width])[0]) else sums[width:]
        return reason(side)

    return Contest(
        name=name,
        units=units,
        sides=lambda sums: (of(sums[..., :width]), of(sums[..., width:])),
        swapped=swapped,
        movable=np.asarray(gain.any(1)),
        reason=why,
    )


def kappa_contest(triples: Triples, weights: Weights) -> Contest:
    """Build a `Contest` for Cohen's kappa."""
    assert triples.coded is not None
    size = triples.coded.size
    matrix = weight_matrix(weights, triples.coded.scale, size)
    if triples.cluster is None:
        cells = (triples.truth * size + triples.a) * size + triples.b
        seen, counts = np.unique(cells, return_counts=True)
        truth, a, b = seen // size**2, seen // size % size, seen % size
        sums = np.zeros((len(seen), 2, size * size))
        sums[np.arange(len(seen)), 0, truth * size + a] = 1.0
        sums[np.arange(len(seen)), 1, truth * size + b] = 1.0
        units = Units(
            counts=counts.astype(np.int64), n=triples.n, sums=sums.reshape(len(seen), 2 * size * size)
        )
    else:
        tables = [
            table_units(triples.truth, pred, size, triples.cluster)[0].sums for pred in (triples.a, triples.b)
        ]
        halves = np.concatenate([table for table in tables if table is not None], axis=1)
        ones = np.ones(len(halves), dtype=np.int64)
        units = Units(counts=ones, n=triples.n, sums=halves, clustered=True)
    return _of_sums(
        "Cohen's kappa",
        units,
        lambda sums: kappa_of(square(sums, size), matrix),
        lambda sums: undefined_reason(sums.reshape(size, size)),
    )


def accuracy_contest(triples: Triples) -> Contest:
    """Build a `Contest` for accuracy; the sums are the number of items and the number right."""
    right = [(pred == triples.truth).astype(float) for pred in (triples.a, triples.b)]
    ones = np.ones(triples.n)
    return _of_sums("accuracy", _units([ones, right[0], ones, right[1]], triples), _mean, _no_pairs)


def mae_contest(triples: Triples) -> Contest:
    """Build a `Contest` for the mean absolute error."""
    far = [np.abs(pred - triples.truth) for pred in (triples.a, triples.b)]
    ones = np.ones(triples.n)
    return _of_sums("MAE", _units([ones, far[0], ones, far[1]], triples), _mean, _no_pairs)


def pearson_contest(triples: Triples) -> Contest:
    """Build a `Contest` for Pearson's r, standardising both judges equally so that they can be swapped."""
    both = np.concatenate([triples.a, triples.b])
    x = _standard(triples.truth, triples.truth)
    columns = []
    for pred in (triples.a, triples.b):
        y = _standard(pred, both)
        columns += [np.ones(triples.n), x, y, x * x, y * y, x * y]

    def reason(sums: Array) -> Reason:
        return "too_few_units" if triples.n < 2 else "no_variance"

    return _of_sums("Pearson's r", _units(columns, triples), pearson_of, reason)


def callable_contest(statistic: Statistic, triples: Triples) -> Contest:
    """Build a `Contest` for any function of (truth, pred), called once per judge for each resample."""
    units = weighted_units(triples.n, triples.cluster)
    gather = np.arange(triples.n) if units.gather is None else units.gather

    def sides(weights: Array) -> tuple[Array, Array]:
        drawn = [np.repeat(np.arange(triples.n), row.astype(np.int64)) for row in np.atleast_2d(weights)]
        both = [
            [_called(statistic, triples.truth[rows], pred[rows]) for rows in drawn]
            for pred in (triples.a, triples.b)
        ]
        return np.array(both[0]), np.array(both[1])

    def swapped(exchanged: Array) -> Array:
        values = []
        for flags in exchanged[:, gather] > 0:
            a, b = np.where(flags, triples.b, triples.a), np.where(flags, triples.a, triples.b)
            values.append(_called(statistic, triples.truth, a) - _called(statistic, triples.truth, b))
        return np.array(values)

    differ = np.bincount(gather, weights=triples.a != triples.b, minlength=len(units.counts)) > 0
    name = getattr(statistic, "__name__", type(statistic).__name__)
    return Contest(
        name=name,
        units=units,
        sides=sides,
        swapped=swapped,
        movable=differ,
        reason=lambda sums: "not_comparable",
        smooth=False,
    )


def _called(statistic: Statistic, truth: Array, pred: Array) -> float:
    try:
        found = statistic(truth, pred)
        return float("nan") if found is None else float(found)
    except UndefinedEstimateError:
        return float("nan")


def _standard(values: Array, reference: Array) -> Array:
    if not len(values):
        return values
    centre = float(reference[0] if np.ptp(reference) == 0 else reference.mean())
    return (values - centre) / (float(np.abs(reference - centre).max()) or 1.0)


def _mean(sums: Array) -> Array:
    return np.asarray(sums[..., 1] / sums[..., 0])


def _no_pairs(sums: Array) -> Reason:
    return "no_pairs"


def _units(columns: list[Array], triples: Triples) -> Units:
    """Return the clusters or, without clusters, the items, merging identical ones if there are few kinds."""
    rows = np.column_stack(columns)
    kinds = _kinds(triples) if triples.cluster is None and triples.n else None
    if kinds is None:
        return row_units(rows, triples.cluster)
    counts = np.bincount(kinds)
    example = np.zeros(len(counts), dtype=np.int64)
    example[kinds] = np.arange(len(kinds))
    there = np.flatnonzero(counts)
    return Units(counts=counts[there].astype(np.int64), n=len(rows), sums=rows[example[there]])


def _kinds(triples: Triples) -> Codes | None:
    """Number the items so that equal items share a number; None if there may be too many kinds."""
    keys, span = np.zeros(triples.n, dtype=np.int64), 1
    for column in (triples.truth, triples.a, triples.b):
        seen, places = np.unique(column, return_inverse=True)
        span *= len(seen)
        if span > _KINDS:
            return None
        keys = keys * len(seen) + places.reshape(-1)
    return keys
