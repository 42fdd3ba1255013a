"""Krippendorff's alpha for any number of raters and difference metric, with missing ratings allowed.

Alpha is 1 - Do / De over the pairable ratings. The observed disagreement is summed per unit, and the expected
disagreement follows from the margins, so the coincidence matrix is never built. The cost is linear in the
number of ratings, except on a ratio scale, where all pairs of distinct values are compared. Equation numbers
are those of [1].

References:
    [1] K. Krippendorff (2011), Computing Krippendorff's alpha-reliability, University of Pennsylvania.
    [2] K. Krippendorff (2004), Content analysis, 2nd ed., ch. 11.
    [3] A. F. Hayes, K. Krippendorff (2007), Answering the call for a standard reliability measure for coding
        data, Communication Methods and Measures 1(1), 77-89.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, Unpack

import numpy as np
from scipy.sparse import csr_array

from autorubric.errors import ArgumentError
from autorubric.metrics.core.contingency import cluster_codes, number_codes, number_rows, renumber_kept
from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.estimation import Figure, estimate
from autorubric.metrics.core.metric import ALL_LEVELS, SIGNED, metric
from autorubric.metrics.core.resampling import (
    CodedArguments,
    CodedOptions,
    Compute,
    IntervalOptions,
    Units,
    check_choice,
    row_units,
    weighted_units,
    with_prior,
)
from autorubric.metrics.core.scales import Array, Codes, Interval, Nominal, Scale
from autorubric.metrics.figures.many_raters import (
    CountedRows,
    SmoothingPrior,
    code_ratings,
    is_smoothed,
    prior_ratings,
)

_DENSE_CELLS = 4_000_000
"""Number of cells (units × values) above which the counts of values stay sparse."""

_BLOCK_CELLS = 1_000_000
"""Number of pairs of values whose differences on a ratio scale are in memory at once."""

AlphaLevel: TypeAlias = Literal["nominal", "ordinal", "interval", "ratio"]


@dataclass(frozen=True, slots=True)
class _Pairable:
    """The ratings of all units that have two or more ratings."""

    codes: Codes  # position of each rating among the values, shape `(u, n_raters)`, -1 where missing
    counts: Codes  # number of units with these ratings, shape `(u,)`
    values: Array | None  # numeric values in increasing order; None if the values have no order
    size: int
    cluster: Codes | None  # cluster of each unit; None if each unit is independent
    prior: SmoothingPrior | None  # possible units that the smoothed bootstrap adds; None without smoothing
    any_rated: bool  # whether any unit has a rating, pairable or not
    n_units: int
    note: str  # note on the scale for the `method` of the estimate


@metric(inputs="ratings", levels=ALL_LEVELS, bounds=SIGNED, reference="Krippendorff 2004, 2011")
def krippendorff_alpha(
    ratings: Any,
    *,
    level: AlphaLevel = "nominal",
    scale: Scale | None = None,
    **interval: Unpack[CodedArguments],
) -> Estimate:
    """Compute Krippendorff's alpha, 1 - (n - 1) Σ o_ck δ²_ck / Σ n_c n_k δ²_ck (Krippendorff 2011).

    The sums include only pairable ratings: units (rated items) with one rating are ignored. δ² depends on the
    level: 1 for different values (nominal); the squared number of ratings between the midpoints of the two
    values (ordinal); (c - k)² (interval); or ((c - k) / (c + k))² (ratio). Alpha is undefined if no unit has
    two ratings (`no_pairs`), or if all pairable ratings are equal, so that De = 0 (`single_class`). At the
    ratio level, the time grows with the square of the number of distinct values.

    The interval resamples the units together with one pseudo-unit whose ratings take each category with equal
    probability. Numbers without declared categories (interval and ratio levels) do not permit this, so they
    use the plain percentile interval, whose coverage is too low with few units.

    Args:
        ratings: Labels of shape `(n_units, n_raters)`; None and NaN count as missing.
        level: Measurement level, which determines the difference metric δ².
        scale: Declared categories and their order; None uses the labels that occur. Required for ordinal
            labels that are not numbers.
        **interval: See `CodedArguments`; `cluster` has one id per unit.

    Raises:
        ArgumentError: If the labels lack the order or distances that the level requires, or are negative at
            the ratio level.
    """
    check_choice("level", level, AlphaLevel)
    options = CodedOptions(**interval)
    name = f"Krippendorff's alpha, {level}"
    table = _read(ratings, level, scale, options)
    if not len(table.codes):
        reason: Reason = "no_pairs" if table.any_rated else "no_ratings"
        return Estimate.undefined(reason, method=name, n_missing=table.n_units)
    units, compute = _FIGURES[level](table)
    figure = Figure(
        name=name,
        compute=compute,
        reason=lambda sums: "single_class",
        auto="percentile" if units.prior is None else "smoothed",
        on_table=units.prior is not None,
    )
    return estimate(figure, units, options, n_missing=table.n_units - units.n, note=table.note)


def alpha_parts(
    codes: Codes, values: Array | None, level: AlphaLevel, cluster: Codes
) -> tuple[Units, Compute]:
    """Return the clusters with a pairable unit, and alpha of their sums; `codes` are places in `values`."""
    return _FIGURES[level](_pairable(codes, values, IntervalOptions(cluster=cluster), ""))


def _read(ratings: Any, level: AlphaLevel, scale: Scale | None, options: CodedOptions) -> _Pairable:
    undeclared = options.labels is None and (scale is None or isinstance(scale, Interval))
    if level in ("interval", "ratio") and undeclared:
        scores = number_rows(ratings)
        if isinstance(scale, Interval):
            scale.check(scores[~np.isnan(scores)])
        values: Array | None
        codes, values = number_codes(scores)
        note, size = "", 0
    else:
        coded, codes = code_ratings(ratings, scale, options.labels)
        values = _positions(level, coded.scale, coded.size)
        note = "" if coded.declared else "categories seen"
        size = coded.size if is_smoothed(options) else 0
        if values is not None and values.size:
            values, places = np.unique(values, return_inverse=True)
            codes = np.where(codes < 0, -1, places.reshape(-1)[codes])
    if level == "ratio" and values is not None and values.size and values[0] < 0:
        raise ArgumentError(f"values on a ratio scale must not be negative; got {float(values[0])!r}")
    table = _pairable(codes, values, options, note)
    if not size or not len(table.codes):
        return table
    size = size if values is None else len(values)
    prior = prior_ratings(table.codes >= 0, table.counts, size)
    # Rows are sorted as in the table, because alpha does not distinguish raters.
    return replace(
        table, size=size, prior=SmoothingPrior(np.sort(prior.rows, axis=1), prior.chances).merge_equal()
    )


def _positions(level: AlphaLevel, scale: Scale | None, size: int) -> Array | None:
    """Return the numeric values of the categories; for the ordinal level, only their ranks."""
    if level == "nominal":
        return None
    if isinstance(scale, Nominal):
        raise ArgumentError(
            f"level={level!r} needs an order, but {scale} has none; pass scale=Ordinal(labels) or numbers"
        )
    if level == "ordinal" or scale is None or isinstance(scale, Interval):
        return np.arange(size, dtype=float)
    return scale.positions


def _pairable(codes: Codes, values: Array | None, options: IntervalOptions, note: str) -> _Pairable:
    members = cluster_codes(options.cluster, len(codes))
    size = int(codes.max(initial=-1)) + 1 if values is None else len(values)
    table = CountedRows.of(codes, size, members)
    # Alpha does not distinguish raters, so rows are sorted; merging identical rows first leaves few.
    table = CountedRows(np.sort(table.rows, axis=1), table.counts)
    if members is None:
        table = table.merge_equal(size)
    rated = (table.rows >= 0).sum(axis=1) if codes.size else np.zeros(len(codes), dtype=np.int64)
    kept = rated >= 2
    return _Pairable(
        codes=table.rows[kept],
        counts=table.counts[kept],
        values=values,
        size=size,
        cluster=renumber_kept(members, kept),
        prior=None,
        any_rated=bool(rated.any()),
        n_units=len(codes),
        note=note,
    )


def _counts(codes: Codes, size: int) -> csr_array:
    """Count each unit's ratings at each value; sparse, because every rating may be a different value."""
    unit, rater = np.nonzero(codes >= 0)
    ones = np.ones(len(unit))
    return csr_array((ones, (unit, codes[unit, rater])), shape=(len(codes), size))


def _units_of_sums(table: _Pairable, sums_of: Callable[[Codes], Array]) -> Units:
    """Return the units with their sums, computed from each row of codes."""
    units = row_units(sums_of(table.codes), table.cluster, table.counts)
    if table.prior is None:
        return units
    return with_prior(units, table.prior.chances, sums_of(table.prior.rows))


def _alpha(observed: Array, expected: Array, n: Array) -> Array:
    """Compute 1 - (n - 1) Σ o δ² / Σ n n δ² (eq. 4); NaN if the expected disagreement is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        # A disagreement this small is rounding error of equal values.
        none = expected <= 1e-12 * n * n
        return np.where(none, np.nan, 1 - (n - 1) * observed / expected)


def _nominal(table: _Pairable) -> tuple[Units, Compute]:
    def pairs_of_units(codes: Codes, counts: csr_array) -> Array:
        m = np.asarray(counts.sum(axis=1)).reshape(-1)
        return np.asarray((m * m - np.asarray((counts * counts).sum(axis=1)).reshape(-1)) / (m - 1))

    def all_pairs(margins: Array) -> Array:
        n = margins.sum(-1)
        return np.asarray(n * n - (margins * margins).sum(-1))

    return _from_margins(table, pairs_of_units, all_pairs)


def _ratio(table: _Pairable) -> tuple[Units, Compute]:
    assert table.values is not None
    values = table.values

    def pairs_of_units(codes: Codes, counts: csr_array) -> Array:
        there = codes >= 0
        scores = np.where(there, values[codes], np.nan)
        observed = np.zeros(len(codes))
        for rater in range(1, codes.shape[1]):
            observed += np.nansum(_ratio_differences(scores[:, rater, None], scores[:, :rater]), axis=1)
        return np.asarray(2 * observed / (there.sum(1) - 1))

    def all_pairs(margins: Array) -> Array:
        total = np.zeros(margins.shape[:-1])
        step = max(1, _BLOCK_CELLS // len(values))
        for start in range(0, len(values), step):
            own = values[start : start + step]
            differences = _ratio_differences(own[:, None], values[start:])
            # Each pair with a later block stands for both of its orders.
            differences[:, len(own) :] *= 2
            total += ((margins[..., start:] @ differences.T) * margins[..., start : start + step]).sum(-1)
        return total

    return _from_margins(table, pairs_of_units, all_pairs)


def _ratio_differences(left: Array, right: Array) -> Array:
    total = left + right
    return np.asarray(((left - right) / np.where(total == 0, 1.0, total)) ** 2)


def _from_margins(
    table: _Pairable, pairs_of_units: Callable[[Codes, csr_array], Array], all_pairs: Callable[[Array], Array]
) -> tuple[Units, Compute]:
    """Return units and function for alpha if the expected disagreement follows from the counts of the values.

    Args:
        table: Ratings of the units.
        pairs_of_units: Sums δ² over each unit's ordered pairs, divided by m - 1, so that every rating counts
            once (eq. 2), from the codes and counts of the units.
        all_pairs: Sums n_c n_k δ² for counts of the values, shape `(..., size)`.
    """
    codes = table.codes if table.prior is None else np.concatenate([table.codes, table.prior.rows])
    if len(codes) * table.size <= _DENSE_CELLS:

        def sums_of(rows: Codes) -> Array:
            counts = _counts(rows, table.size)
            return np.column_stack([pairs_of_units(rows, counts), counts.toarray()])

        def compute(sums: Array) -> Array:
            margins = sums[..., 1:]
            return _alpha(sums[..., 0], all_pairs(margins), margins.sum(-1))

        return _units_of_sums(table, sums_of), compute
    counts = _counts(codes, table.size)
    observed = pairs_of_units(codes, counts)

    def compute_of_weights(weights: Array) -> Array:
        margins = (counts.T @ weights.T).T
        return _alpha((weights * observed).sum(-1), all_pairs(margins), margins.sum(-1))

    units = weighted_units(len(table.codes), table.cluster, table.counts)
    smoothed = units if table.prior is None else with_prior(units, table.prior.chances)
    return smoothed, compute_of_weights


def _interval(table: _Pairable) -> tuple[Units, Compute]:
    assert table.values is not None
    span = float(np.ptp(table.values)) or 1.0
    placed = (table.values - table.values.mean()) / span

    def sums_of(codes: Codes) -> Array:
        there = codes >= 0
        x = np.where(there, placed[codes], 0.0)
        m, first, second = there.sum(1).astype(float), x.sum(1), (x * x).sum(1)
        # Σ_ij (x_i - x_j)² = 2 (m Σ x² - (Σ x)²), which avoids comparing all pairs of values.
        observed = 2 * (m * second - first * first) / (m - 1)
        return np.column_stack([observed, m, first, second])

    def compute(sums: Array) -> Array:
        n = sums[..., 1]
        return _alpha(sums[..., 0], 2 * (n * sums[..., 3] - sums[..., 2] ** 2), n)

    return _units_of_sums(table, sums_of), compute


def _ordinal(table: _Pairable) -> tuple[Units, Compute]:
    codes = table.codes if table.prior is None else np.concatenate([table.codes, table.prior.rows])
    counts = _counts(codes, table.size)
    there = codes >= 0
    m = there.sum(1).astype(float)

    def compute(weights: Array) -> Array:
        margins = (counts.T @ weights.T).T
        n = margins.sum(-1)
        # Number of ratings up to the middle of each value; differences of these are ordinal (eq. 9).
        middles = np.cumsum(margins, axis=-1) - margins / 2 - n[..., None] / 2
        first, second = np.zeros_like(weights), np.zeros_like(weights)
        for rater in range(codes.shape[1]):
            place = np.where(there[:, rater], middles[..., codes[:, rater]], 0.0)
            first += place
            second += place * place
        observed = (weights * 2 * (m * second - first * first) / (m - 1)).sum(-1)
        total, squares = ((margins * middles**power).sum(-1) for power in (1, 2))
        scale = np.where(n > 0, n * n, 1.0)
        return _alpha(observed / scale, 2 * (n * squares - total * total) / scale, n)

    units = weighted_units(len(table.codes), table.cluster, table.counts)
    return units if table.prior is None else with_prior(units, table.prior.chances), compute


_FIGURES: dict[AlphaLevel, Callable[[_Pairable], tuple[Units, Compute]]] = {
    "nominal": _nominal,
    "ordinal": _ordinal,
    "interval": _interval,
    "ratio": _ratio,
}
