"""Items with a truth and two judgments, and a metric of both judges on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.core.contingency import (
    CodedLabels,
    check_lengths,
    drop_incomplete,
    encode,
    numeric_column,
    table_units,
)
from autorubric.metrics.core.estimate import Estimate, Reason, UndefinedEstimateError
from autorubric.metrics.core.estimation import Figure, estimate, square
from autorubric.metrics.core.resampling import (
    CodedOptions,
    Compute,
    IntervalOptions,
    Units,
    row_units,
    weighted_units,
)
from autorubric.metrics.core.scales import (
    Array,
    Codes,
    Interval,
    Nominal,
    Scale,
    Weights,
    as_sequence,
    is_missing,
    weight_matrix,
)
from autorubric.metrics.figures.classification import accuracy
from autorubric.metrics.figures.correlation import mae, pearson, pearson_of
from autorubric.metrics.figures.kappa import cohen_kappa, kappa_of, undefined_reason

Statistic: TypeAlias = Callable[[Any, Any], Any]
"""Function from (truth, pred), arrays of shape `(n,)`, to a number; None or NaN if undefined."""

ComparisonStat: TypeAlias = Literal["kappa", "accuracy", "mae", "pearson"]
AnyStat: TypeAlias = ComparisonStat | Statistic

_COLUMNS = ("truth", "a", "b")
_MOST_KINDS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Triples:
    """Items with a truth and both judgments, which are codes, numbers or labels of shape `(n,)`."""

    truth: Array
    a: Array
    b: Array
    coded: CodedLabels | None  # scale of the codes; None for numbers and labels
    cluster: Codes | None  # of each item, without gaps; None if each item is its own unit
    n_missing: int  # items excluded because the truth or a judgment was missing

    @property
    def n(self) -> int:
        return len(self.truth)


def read_triples(
    columns: tuple[Any, Any, Any], stat: AnyStat, scale: Scale | None, options: CodedOptions
) -> Triples:
    """Return the complete items in the form that the metric needs: as codes, as numbers or unchanged."""
    aligned = [as_sequence(column, name) for column, name in zip(columns, _COLUMNS, strict=True)]
    check_lengths("labels", **dict(zip(_COLUMNS, aligned, strict=True)))
    if stat == "kappa" or stat == "accuracy":
        coded = encode(aligned, scale, options.labels)
        return _complete_triples(coded.codes, [codes >= 0 for codes in coded.codes], coded, options)
    if stat == "mae" or stat == "pearson":
        numbers = _as_numbers(aligned, scale, options)
        return _complete_triples(numbers, [~np.isnan(column) for column in numbers], None, options)
    there = [np.array([not is_missing(label) for label in column], dtype=bool) for column in aligned]
    if options.labels is not None or not (scale is None or isinstance(scale, Interval)):
        there = [codes >= 0 for codes in encode(aligned, scale, options.labels).codes]
    elif isinstance(scale, Interval):
        _as_numbers(aligned, scale, options)
    return _complete_triples([_as_array(column) for column in aligned], there, None, options)


def _as_numbers(aligned: Sequence[Any], scale: Scale | None, options: CodedOptions) -> list[Array]:
    """Return the values passed, or the positions of labels on the scale."""
    if isinstance(scale, Nominal):
        raise ArgumentError(f"{scale} defines no distances; use numbers, Ordinal(labels) or Interval()")
    if options.labels is not None or not (scale is None or isinstance(scale, Interval)):
        coded = encode(aligned, scale, options.labels)
        positions = np.arange(coded.size) if coded.scale is None else coded.scale.positions
        assert positions is not None
        placed = np.append(positions.astype(float), np.nan)
        return [placed[codes] for codes in coded.codes]
    numbers = [numeric_column(column, name) for column, name in zip(aligned, _COLUMNS, strict=True)]
    return [scale.check(column) for column in numbers] if isinstance(scale, Interval) else numbers


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


def _complete_triples(
    columns: Sequence[Array], there: list[Array], coded: CodedLabels | None, options: IntervalOptions
) -> Triples:
    all_there = there[0] & there[1] & there[2]
    truth, a, b = (column[all_there] for column in columns)
    if coded is None and any(column.dtype == object for column in (truth, a, b)):
        truth, a, b = (_as_array(column.tolist()) for column in (truth, a, b))
    cluster, n_missing = drop_incomplete(all_there, options.cluster)
    return Triples(truth=truth, a=a, b=b, coded=coded, cluster=cluster, n_missing=n_missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedMetric:
    """A metric of judge a and of judge b on the same sampling units."""

    name: str
    units: Units  # items or clusters
    sides: Callable[[Array], tuple[Array, Array]]  # from sums over units to the metrics of a and b
    swapped_difference: Compute  # from how many units of each kind are swapped, `(r, u)`, to a difference
    movable: Array  # whether swapping the judges matters for each kind of unit, shape `(u,)`
    reason: Callable[[Array], Reason]  # why the difference is undefined at given sums
    smooth: bool = True  # whether the metric is differentiable in the sums
    gains: Array | None = None  # sum of a minus that of b by kind of unit, if the metric is a mean over items

    def difference(self, sums: Array) -> Array:
        a, b = self.sides(sums)
        return np.asarray(a - b)


def paired_metric(triples: Triples, stat: AnyStat, weights: Weights) -> PairedMetric:
    if stat == "kappa":
        return _paired_kappa(triples, weights)
    pair = (triples.a, triples.b)
    if stat == "accuracy":
        return _paired_mean("accuracy", triples, [(pred == triples.truth).astype(float) for pred in pair])
    if stat == "mae":
        return _paired_mean("MAE", triples, [np.abs(pred - triples.truth) for pred in pair])
    return _paired_pearson(triples) if stat == "pearson" else _paired_statistic(stat, triples)


def _paired_sums(name: str, units: Units, of: Compute, reason: Callable[[Array], Reason]) -> PairedMetric:
    """Return a metric of sums; each unit has the sums of a followed by those of b."""
    assert units.sums is not None
    width = units.sums.shape[1] // 2
    gain = units.sums[:, width:] - units.sums[:, :width]
    total = units.total()

    def swapped_difference(exchanged: Array) -> Array:
        moved = exchanged @ gain
        return np.asarray(of(total[:width] + moved) - of(total[width:] - moved))

    def why(sums: Array) -> Reason:
        return reason(sums[:width] if np.isnan(of(sums[None, :width])[0]) else sums[width:])

    return PairedMetric(
        name=name,
        units=units,
        sides=lambda sums: (of(sums[..., :width]), of(sums[..., width:])),
        swapped_difference=swapped_difference,
        movable=np.asarray(gain.any(1)),
        reason=why,
    )


def _paired_kappa(triples: Triples, weights: Weights) -> PairedMetric:
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
    return _paired_sums(
        "Cohen's kappa",
        units,
        lambda sums: kappa_of(square(sums, size), matrix),
        lambda sums: undefined_reason(sums.reshape(size, size)),
    )


def _paired_mean(name: str, triples: Triples, values: Sequence[Array]) -> PairedMetric:
    """Return the mean of the values of a and of b; the sums are the number of items and the values."""
    ones = np.ones(triples.n)
    units = _units([ones, values[0], ones, values[1]], triples)
    assert units.sums is not None
    found = _paired_sums(
        name, units, lambda sums: np.asarray(sums[..., 1] / sums[..., 0]), lambda sums: "no_pairs"
    )
    return replace(found, gains=units.sums[:, 1] - units.sums[:, 3])


def _paired_pearson(triples: Triples) -> PairedMetric:
    """Return Pearson's r, standardising both judges equally so that they can be swapped."""
    both = np.concatenate([triples.a, triples.b])
    x = _standardise(triples.truth, triples.truth)
    columns = []
    for pred in (triples.a, triples.b):
        y = _standardise(pred, both)
        columns += [np.ones(triples.n), x, y, x * x, y * y, x * y]
    reason: Reason = "too_few_units" if triples.n < 2 else "no_variance"
    return _paired_sums("Pearson's r", _units(columns, triples), pearson_of, lambda sums: reason)


def _paired_statistic(statistic: Statistic, triples: Triples) -> PairedMetric:
    """Return any function of (truth, pred), called once per judge for each resample."""
    units = weighted_units(triples.n, triples.cluster)
    gather = np.arange(triples.n) if units.gather is None else units.gather

    def call(truth: Array, pred: Array) -> float:
        try:
            found = statistic(truth, pred)
            return float("nan") if found is None else float(found)
        except UndefinedEstimateError:
            return float("nan")

    def sides(weights: Array) -> tuple[Array, Array]:
        drawn = [np.repeat(np.arange(triples.n), row.astype(np.int64)) for row in np.atleast_2d(weights)]
        a, b = (
            np.array([call(triples.truth[rows], pred[rows]) for rows in drawn])
            for pred in (triples.a, triples.b)
        )
        return a, b

    def swapped_difference(exchanged: Array) -> Array:
        values = []
        for flags in exchanged[:, gather] > 0:
            a, b = np.where(flags, triples.b, triples.a), np.where(flags, triples.a, triples.b)
            values.append(call(triples.truth, a) - call(triples.truth, b))
        return np.array(values)

    return PairedMetric(
        name=getattr(statistic, "__name__", type(statistic).__name__),
        units=units,
        sides=sides,
        swapped_difference=swapped_difference,
        movable=np.bincount(gather, weights=triples.a != triples.b, minlength=len(units.counts)) > 0,
        reason=lambda sums: "not_comparable",
        smooth=False,
    )


def _standardise(values: Array, reference: Array) -> Array:
    if not len(values):
        return values
    centre = float(reference[0] if np.ptp(reference) == 0 else reference.mean())
    return (values - centre) / (float(np.abs(reference - centre).max()) or 1.0)


def _units(columns: list[Array], triples: Triples) -> Units:
    """Return the clusters or, without clusters, the items, merging identical ones if there are few kinds."""
    rows = np.column_stack(columns)
    kinds = _number_kinds(triples) if triples.cluster is None and triples.n else None
    if kinds is None:
        return row_units(rows, triples.cluster)
    counts = np.bincount(kinds)
    example = np.zeros(len(counts), dtype=np.int64)
    example[kinds] = np.arange(len(kinds))
    there = np.flatnonzero(counts)
    return Units(counts=counts[there].astype(np.int64), n=len(rows), sums=rows[example[there]])


def _number_kinds(triples: Triples) -> Codes | None:
    """Number the items so that equal items share a number; None if there may be too many kinds."""
    keys, span = np.zeros(triples.n, dtype=np.int64), 1
    for column in (triples.truth, triples.a, triples.b):
        seen, places = np.unique(column, return_inverse=True)
        span *= len(seen)
        if span > _MOST_KINDS:
            return None
        keys = keys * len(seen) + places.reshape(-1)
    return keys


def side_estimates(
    triples: Triples, metric: PairedMetric, stat: AnyStat, weights: Weights, options: IntervalOptions
) -> tuple[Estimate, Estimate]:
    """Return the metric of a and of b, each as computed by its own function."""
    if callable(stat):

        def figure(side: int) -> Figure:
            return Figure(
                name=metric.name,
                compute=lambda sums: metric.sides(sums)[side],
                reason=metric.reason,
                auto="percentile",
                auto_clustered="percentile",
                on_table=False,
            )

        return estimate(figure(0), metric.units, options), estimate(figure(1), metric.units, options)
    return (
        _estimate_alone(triples, triples.a, stat, weights, options),
        _estimate_alone(triples, triples.b, stat, weights, options),
    )


def _estimate_alone(
    triples: Triples, pred: Any, stat: ComparisonStat, weights: Weights, options: IntervalOptions
) -> Estimate:
    # A correlation over clusters has no closed-form interval, although the difference has one.
    unavailable = stat == "pearson" and options.ci == "analytic" and triples.cluster is not None
    interval = options.arguments(options.cluster)
    if unavailable:
        interval["ci"] = "auto"
    if stat == "mae":
        return mae(triples.truth, pred, **interval)
    if stat == "pearson":
        return pearson(triples.truth, pred, **interval)
    assert triples.coded is not None
    # Without labels there are no categories, so one is assumed.
    size = max(triples.coded.size, 1)
    if stat == "accuracy":
        return accuracy(triples.truth, pred, labels=size, **interval)
    matrix = None if weights is None else weight_matrix(weights, triples.coded.scale, size)
    return cohen_kappa(triples.truth, pred, labels=size, weights=matrix, **interval)
