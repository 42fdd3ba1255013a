"""Items with a truth and two judgements, and the difference in a metric between the judges."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.core.contingency import (
    Coded,
    cluster_codes,
    dense,
    encode,
    numeric_column,
    table_units,
)
from autorubric.metrics.core.estimate import Estimate, Reason, UndefinedEstimateError
from autorubric.metrics.core.estimation import Figure, estimate, square
from autorubric.metrics.core.rater_tables import no_analytic, row_units, weighted_units
from autorubric.metrics.core.resampling import (
    CodedOptions,
    Compute,
    IntervalArguments,
    IntervalOptions,
    Units,
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
class JudgeContest:
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


def _of_sums(name: str, units: Units, of: Compute, reason: Callable[[Array], Reason]) -> JudgeContest:
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

    return JudgeContest(
        name=name,
        units=units,
        sides=lambda sums: (of(sums[..., :width]), of(sums[..., width:])),
        swapped=swapped,
        movable=np.asarray(gain.any(1)),
        reason=why,
    )


def kappa_contest(triples: Triples, weights: Weights) -> JudgeContest:
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


def accuracy_contest(triples: Triples) -> JudgeContest:
    """Build a `Contest` for accuracy; the sums are the number of items and the number right."""
    right = [(pred == triples.truth).astype(float) for pred in (triples.a, triples.b)]
    ones = np.ones(triples.n)
    return _of_sums("accuracy", _units([ones, right[0], ones, right[1]], triples), _mean, _no_pairs)


def mae_contest(triples: Triples) -> JudgeContest:
    """Build a `Contest` for the mean absolute error."""
    far = [np.abs(pred - triples.truth) for pred in (triples.a, triples.b)]
    ones = np.ones(triples.n)
    return _of_sums("MAE", _units([ones, far[0], ones, far[1]], triples), _mean, _no_pairs)


def pearson_contest(triples: Triples) -> JudgeContest:
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


def callable_contest(statistic: Statistic, triples: Triples) -> JudgeContest:
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
    return JudgeContest(
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


Adjustment: TypeAlias = Literal["holm", "bh", "by", "bonferroni"]


def adjust_pvalues(p: Iterable[float | None], method: Adjustment = "holm") -> list[float | None]:
    """Adjust p-values for multiple testing, keeping their order; None stays None and is not counted.

    The m p-values are sorted in increasing order, p_(1) ≤ … ≤ p_(m), and adjusted as follows:

    - `"holm"`: max over j ≤ i of (m - j + 1) p_(j) [1]; reporting adjusted values below α keeps the
      probability of any false positive at or below α;
    - `"bh"`: min over j ≥ i of m p_(j) / j [2]; reporting adjusted values below q keeps the expected fraction
      of false positives among them at or below q, if tests are independent or positively dependent;
    - `"by"`: the `"bh"` value times 1 + 1/2 + … + 1/m [3], with the same guarantee under any dependence;
    - `"bonferroni"`: m p [4], with the same guarantee as `"holm"`, which never gives larger values.

    Adjusted values are capped at 1 and are never below the original p-values.

    Args:
        p: P-values in [0, 1]; None and NaN mark tests that could not be run.
        method: Adjustment method.

    Raises:
        ArgumentError: If a p-value is outside [0, 1], or the method is unknown.

    References:
        [1] S. Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of
            Statistics 6(2), 65-70.
        [2] Y. Benjamini, Y. Hochberg (1995), Controlling the false discovery rate, Journal of the Royal
            Statistical Society B 57(1), 289-300.
        [3] Y. Benjamini, D. Yekutieli (2001), The control of the false discovery rate in multiple testing
            under dependency, Annals of Statistics 29(4), 1165-1188.
        [4] O. J. Dunn (1961), Multiple comparisons among means, JASA 56(293), 52-64.
    """
    if method not in get_args(Adjustment):
        raise ArgumentError(f"method must be one of {list(get_args(Adjustment))}; got {method!r}")
    given = numeric_column(p, "p")
    there = ~np.isnan(given)
    values = given[there]
    if np.any((values < 0) | (values > 1)):
        raise ArgumentError(f"p must be in [0, 1]; got {float(values[(values < 0) | (values > 1)][0])!r}")
    adjusted = np.full(len(given), np.nan)
    order = np.argsort(values, kind="stable")
    adjusted[np.flatnonzero(there)[order]] = _adjusted(values[order], method)
    return [None if np.isnan(one) else float(one) for one in adjusted]


def _adjusted(ascending: Array, method: Adjustment) -> Array:
    m = len(ascending)
    if method == "bonferroni":
        return np.asarray(np.minimum(m * ascending, 1.0))
    rank = np.arange(1, m + 1)
    if method == "holm":
        return np.minimum(np.maximum.accumulate((m - rank + 1) * ascending), 1.0)
    factor = float((1.0 / rank).sum()) if method == "by" else 1.0
    # In this order of operations, rounding never makes the last value less than p.
    scaled = ascending * (factor * (m / rank))
    return np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)


ComparisonStat: TypeAlias = Literal["kappa", "accuracy", "mae", "pearson"]
AnyStat: TypeAlias = ComparisonStat | Statistic


def read_triples(
    columns: tuple[Any, Any, Any], stat: AnyStat, scale: Scale | None, options: CodedOptions
) -> Triples:
    """Return the complete items in the form that the metric needs."""
    if stat == "kappa" or stat == "accuracy":
        return code_triples(columns, scale, options)
    if stat == "mae" or stat == "pearson":
        return number_triples(columns, scale, options)
    return label_triples(columns, scale, options)


def contest_of(triples: Triples, stat: AnyStat, weights: Weights) -> JudgeContest:
    """Build the `Contest` that compares the judges by the metric."""
    if stat == "kappa":
        return kappa_contest(triples, weights)
    if stat == "accuracy":
        return accuracy_contest(triples)
    if stat == "mae":
        return mae_contest(triples)
    if stat == "pearson":
        return pearson_contest(triples)
    return callable_contest(stat, triples)


def side_estimates(
    triples: Triples, contest: JudgeContest, stat: AnyStat, weights: Weights, options: IntervalOptions
) -> tuple[Estimate, Estimate]:
    """Return the metric of a and of b, each as computed by its own function."""
    if callable(stat):
        a, b = (estimate(_called_figure(contest, side), contest.units, options) for side in (0, 1))
        return a, b
    a, b = (_alone(triples, pred, stat, weights, options) for pred in (triples.a, triples.b))
    return a, b


def _alone(
    triples: Triples, pred: Any, stat: ComparisonStat, weights: Weights, options: IntervalOptions
) -> Estimate:
    # A correlation over clusters has no closed-form interval, although the difference has one.
    unavailable = stat == "pearson" and options.ci == "analytic" and triples.cluster is not None
    interval: IntervalArguments = {
        "cluster": options.cluster,
        "ci": "auto" if unavailable else options.ci,
        "confidence_level": options.confidence_level,
        "n_resamples": options.n_resamples,
        "rng": options.rng,
    }
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


def _called_figure(contest: JudgeContest, side: int) -> Figure:
    return Figure(
        name=contest.name,
        compute=lambda sums: contest.sides(sums)[side],
        reason=contest.reason,
        auto="percentile",
        analytic=no_analytic,
        on_table=False,
    )
