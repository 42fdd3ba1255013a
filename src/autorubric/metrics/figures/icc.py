"""Intraclass correlations, and Kendall's W, of units × raters tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias, Unpack

import numpy as np
from scipy.special import chdtrc, fdtrc, fdtri

from autorubric.errors import ArgumentError
from autorubric.metrics.core.contingency import divide, drop_incomplete, number_rows
from autorubric.metrics.core.estimate import RELATIVE_ZERO, Estimate, Reason, TestStatistic
from autorubric.metrics.core.estimation import Figure, estimate
from autorubric.metrics.core.metric import ORDERED, metric
from autorubric.metrics.core.resampling import (
    NO_ENDS,
    Compute,
    Ends,
    IntervalArguments,
    IntervalOptions,
    Units,
    row_units,
    weighted_units,
)
from autorubric.metrics.core.scales import Array, Codes
from autorubric.metrics.figures.ranks import count_kinds

_Model: TypeAlias = Literal["one-way", "agreement", "consistency"]

_FORMS: dict[str, tuple[_Model, bool]] = {
    "ICC(1,1)": ("one-way", False),
    "ICC(2,1)": ("agreement", False),
    "ICC(3,1)": ("consistency", False),
    "ICC(1,k)": ("one-way", True),
    "ICC(2,k)": ("agreement", True),
    "ICC(3,k)": ("consistency", True),
    "ICC(A,1)": ("agreement", False),
    "ICC(C,1)": ("consistency", False),
    "ICC(A,k)": ("agreement", True),
    "ICC(C,k)": ("consistency", True),
}


@dataclass(frozen=True, slots=True)
class _CompleteTable:
    """The units that every rater rated."""

    # scores without missing values, shape `(n_units, n_raters)`, centred and scaled to avoid cancellation
    scores: Array
    cluster: Codes | None  # cluster of each unit, 0..C-1 without gaps; None if units are independent
    n_missing: int  # number of units dropped because a rating was missing
    reason: Reason | None  # why the metrics are undefined; None if there are enough units and raters

    @property
    def n_raters(self) -> int:
        return int(self.scores.shape[1])

    def undefined(self, reason: Reason, method: str) -> Estimate:
        return Estimate.undefined(reason, n=len(self.scores), method=method, n_missing=self.n_missing)


def _complete_table(ratings: Any, cluster: Iterable[Any] | None) -> _CompleteTable:
    """Return the rows of a table of ratings that have no missing rating."""
    scores = number_rows(ratings)
    complete = np.asarray(~np.isnan(scores).any(axis=1))
    members, n_missing = drop_incomplete(complete, cluster)
    kept = scores[complete]
    if kept.size:
        kept = kept - kept.mean()
        kept = kept / (np.abs(kept).max() or 1.0)
    reason: Reason | None = "too_few_units" if len(kept) < 2 else None
    if not len(kept) and np.isnan(scores).all():
        reason = "no_ratings"
    elif len(kept) and kept.shape[1] < 2:
        reason = "no_pairs"
    return _CompleteTable(kept, members, n_missing, reason)


class _Squares(NamedTuple):
    """Mean squares and the number of units, as arrays of the same shape."""

    units: Array
    raters: Array
    error: Array
    within: Array
    n: Array


@metric(
    inputs="scores",
    levels=ORDERED,
    bounds=(None, 1.0),
    reference="Shrout and Fleiss 1979; McGraw and Wong 1996",
)
def icc(ratings: Any, *, form: str = "ICC(2,1)", **interval: Unpack[IntervalArguments]) -> Estimate:
    """Compute an intraclass correlation, the proportion of variance that is between units.

    - `ICC(1,1)` = (MSR - MSW) / (MSR + (k-1) MSW): each unit is rated by different raters.
    - `ICC(2,1)` = (MSR - MSE) / (MSR + (k-1) MSE + k/n (MSC - MSE)): the same raters, a random sample of
      possible raters, rate all units (agreement, `ICC(A,1)`).
    - `ICC(3,1)` = (MSR - MSE) / (MSR + (k-1) MSE): the same fixed raters rate all units, and differences
      between rater means are ignored (consistency, `ICC(C,1)`).

    These forms (Shrout and Fleiss 1979) are for one rating. The `…,k)` forms, k ρ / (1 + (k-1) ρ), are for
    the mean of all k ratings. Values may be negative. Units with a missing rating are dropped (`n_missing`).

    The correlation is undefined if there are no ratings (`no_ratings`), one rater (`no_pairs`), fewer than
    two complete units (`too_few_units`) or no variance (`no_variance`). The interval is McGraw and Wong's
    (1996, table 7) or, with clusters, a percentile bootstrap. It is omitted if the raters agree perfectly.

    `test` is the F test of ρ = 0 (table 8), or None with clusters or perfect agreement. It is MSR / MSW with
    n - 1 and n (k-1) degrees of freedom for one-way forms, and otherwise MSR / MSE with n - 1 and (n-1)(k-1).

    Args:
        ratings: Numbers, shape `(n_units, n_raters)`; None and NaN count as missing.
        form: One of the six forms, such as `"ICC(2,1)"`, or its other name, such as `"ICC(A,1)"`.
        **interval: See `IntervalArguments`; `cluster` has one id per unit.

    Raises:
        ArgumentError: If the form is unknown, or a rating is not a number.
    """
    if form not in _FORMS:
        raise ArgumentError(f"form must be one of {', '.join(_FORMS)}; got {form!r}")
    return _estimate(ratings, form, form, IntervalOptions(**interval))


@metric(inputs="scores", levels=ORDERED, bounds=(None, 1.0), reference="Cronbach 1951; Feldt 1965")
def cronbach_alpha(ratings: Any, **interval: Unpack[IntervalArguments]) -> Estimate:
    """Compute Cronbach's alpha with raters as items, k / (k-1) (1 - Σ s_j² / s_T²) = ICC(3,k) [1, 2].

    The interval, as for ICC(3,k), equals Feldt's [3]. See `icc` for the arguments and undefined cases.

    References:
        [1] L. J. Cronbach (1951), Coefficient alpha and the internal structure of tests, Psychometrika 16(3),
            297-334, eq. 2.
        [2] P. E. Shrout, J. L. Fleiss (1979), see `icc`.
        [3] L. S. Feldt (1965), The approximate sampling distribution of Kuder-Richardson reliability
            coefficient twenty, Psychometrika 30, 357-370.
    """
    return _estimate(ratings, "ICC(3,k)", "Cronbach's alpha", IntervalOptions(**interval))


def _estimate(ratings: Any, form: str, name: str, options: IntervalOptions) -> Estimate:
    table = _complete_table(ratings, options.cluster)
    if table.reason is not None:
        return table.undefined(table.reason, name)
    scores, k = table.scores, table.n_raters
    model, mean = _FORMS[form]
    rows = scores.sum(1)
    sums = np.column_stack([np.ones(len(scores)), (scores**2).sum(1), rows**2, scores])
    figure = Figure(
        name=name,
        compute=lambda totals: _coefficient(_squares(totals, k), k, model, mean=mean),
        reason=lambda totals: "no_variance",
        bounds=(-math.inf, 1.0),
        auto="analytic",
        auto_clustered="percentile",
        analytic=_analytic(k, model, mean=mean),
        on_table=False,
    )
    found = estimate(figure, row_units(sums, table.cluster), options, n_missing=table.n_missing)
    if found.value is None or table.cluster is not None:
        return found
    return replace(found, test=_f_test(_squares(sums.sum(0), k), k, model))


def _f_test(squares: _Squares, k: int, model: _Model) -> TestStatistic | None:
    """Return the F test of no variance between units; None under perfect agreement, where F is infinite."""
    n, rest, df = _error(squares, k, model)
    if rest == 0:
        return None
    f = float(squares.units / rest)
    p = float(fdtrc(n - 1, df, f))
    return TestStatistic(name="F", value=f, df=n - 1, df_denominator=df, p_value=p)


def _error(squares: _Squares, k: int, model: _Model) -> tuple[float, Array, float]:
    """Return the number of units, and the mean square of the error with its degrees of freedom."""
    n = float(squares.n)
    if model == "one-way":
        return n, squares.within, n * (k - 1)
    return n, squares.error, (n - 1) * (k - 1)


def _squares(totals: Array, k: int) -> _Squares:
    n, squares, rows, columns = totals[..., 0], totals[..., 1], totals[..., 2], totals[..., 3:]
    correction = columns.sum(-1) ** 2 / (n * k)
    total = squares - correction
    between_units = _or_zero(rows / k - correction, squares)
    between_raters = _or_zero((columns**2).sum(-1) / n - correction, squares)
    left = _or_zero(total - between_units - between_raters, squares)
    # At least 1, so that a single remaining unit does not cause a division by zero.
    df = np.maximum(n - 1, 1.0)
    return _Squares(
        units=between_units / df,
        raters=between_raters / (k - 1),
        error=left / (df * (k - 1)),
        within=_or_zero(total - between_units, squares) / (n * (k - 1)),
        n=n,
    )


def _or_zero(square: Array, scale: Array) -> Array:
    """Replace sums of squares that are only rounding error by 0."""
    return np.where(square <= RELATIVE_ZERO * scale, 0.0, square)


def _coefficient(squares: _Squares, k: int, model: _Model, *, mean: bool) -> Array:
    numerator, denominator = _parts(squares, k, model)
    if mean:
        # k ρ / (1 + (k-1) ρ) on the fraction itself.
        numerator, denominator = k * numerator, denominator + (k - 1) * numerator
    with np.errstate(invalid="ignore", divide="ignore"):
        none = np.abs(denominator) <= RELATIVE_ZERO * (squares.units + squares.within)
        return np.where(none, np.nan, numerator / denominator)


def _parts(squares: _Squares, k: int, model: _Model) -> tuple[Array, Array]:
    """Return numerator and denominator of the coefficient of a single rating."""
    rest = squares.within if model == "one-way" else squares.error
    numerator, denominator = squares.units - rest, squares.units + (k - 1) * rest
    if model == "agreement":
        denominator = denominator + k / squares.n * (squares.raters - squares.error)
    return numerator, denominator


def _analytic(k: int, model: _Model, *, mean: bool) -> Callable[[Figure, Units, float, float], Ends]:
    def ends(figure: Figure, units: Units, value: float, confidence_level: float) -> Ends:
        if units.clustered:
            raise ArgumentError(f"{figure.name} has no analytic interval over clusters; use ci='percentile'")
        squares = _squares(units.total(), k)
        tail = 0.5 + confidence_level / 2
        limits = _agreement_limits if model == "agreement" else _ratio_limits
        low, high = limits(squares, k, tail, model)
        if mean:
            low, high = (_step_up(limit, k) for limit in (low, high))
        if not low - 1e-12 <= value <= high + 1e-12:
            return NO_ENDS
        return Ends(min(low, value), max(high, value), None)

    return ends


def _step_up(single: float, k: int) -> float:
    room = 1 + (k - 1) * single
    return k * single / room if room > 0 else math.nan


def _ratio_limits(squares: _Squares, k: int, tail: float, model: _Model) -> tuple[float, float]:
    """Compute the limits of ICC(1,1) and ICC(3,1) from the ratio of two mean squares."""
    n, rest, df = _error(squares, k, model)
    if rest == 0:
        return 1.0, 1.0
    ratio = float(squares.units / rest)
    lower, upper = ratio / fdtri(n - 1, df, tail), ratio * fdtri(df, n - 1, tail)
    return tuple(float((f - 1) / (f + k - 1)) for f in (lower, upper))  # type: ignore[return-value]


def _agreement_limits(squares: _Squares, k: int, tail: float, model: _Model) -> tuple[float, float]:
    """Compute the limits of ICC(2,1) with Satterthwaite's degrees of freedom."""
    n, rows, columns, error = (
        float(one) for one in (squares.n, squares.units, squares.raters, squares.error)
    )
    value = float(_coefficient(squares, k, model, mean=False))
    if value == 1.0:
        return 1.0, 1.0
    a = k * value / (n * (1 - value))
    b = 1 + k * value * (n - 1) / (n * (1 - value))
    spread = (a * columns) ** 2 / (k - 1) + (b * error) ** 2 / ((n - 1) * (k - 1))
    if spread == 0:
        return math.nan, math.nan
    df = (a * columns + b * error) ** 2 / spread
    lower, upper = fdtri(n - 1, df, tail), fdtri(df, n - 1, tail)
    other = k * columns + (k * n - k - n) * error
    return (
        float(n * (rows - lower * error) / (lower * other + n * rows)),
        float(n * (upper * rows - error) / (other + n * upper * rows)),
    )


@metric(inputs="scores", levels=ORDERED, reference="Kendall and Babington Smith 1939")
def kendall_w(ratings: Any, **interval: Unpack[IntervalArguments]) -> Estimate:
    """Compute Kendall's W with tie correction, 12 S / (m² (n³ - n) - m Σ T_j) [1, 2].

    S is the sum of squared deviations of the n units' rank sums from their mean, and T_j = Σ (t³ - t) over
    rater j's groups of t ties. Ties get midranks. With no ties, W = (r̄ (m-1) + 1) / m, where r̄ is the mean
    Spearman correlation of the m raters. Units with a missing rating are dropped and counted in `n_missing`.

    W is undefined if there are no ratings (`no_ratings`), one rater (`no_pairs`), fewer than two complete
    units (`too_few_units`), or if every rater is constant (`no_variance`). The interval resamples units;
    resamples contain ties, which widen the interval. `test` is Friedman's test of the null hypothesis of no
    agreement, χ² = m (n - 1) W with n - 1 degrees of freedom [2]; it is None if clusters are passed.

    Args:
        ratings: Numbers, shape `(n_units, n_raters)`; only the ranking by each rater matters. None and NaN
            count as missing.
        **interval: See `IntervalArguments`; `cluster` has one id per unit.

    References:
        [1] M. G. Kendall, B. Babington Smith (1939), The problem of m rankings, Annals of Mathematical
            Statistics 10(3), 275-287.
        [2] M. G. Kendall (1970), Rank correlation methods, 4th ed., ch. 6 (ties).
    """
    options = IntervalOptions(**interval)
    name = "Kendall's W"
    table = _complete_table(ratings, options.cluster)
    if table.reason is not None:
        return table.undefined(table.reason, name)
    figure = Figure(
        name=name,
        compute=_compute(table.scores),
        reason=lambda weights: "no_variance",
        bounds=(0.0, 1.0),
        auto="percentile",
        on_table=False,
    )
    units = weighted_units(len(table.scores), table.cluster, np.ones(len(table.scores), dtype=np.int64))
    found = estimate(figure, units, options, n_missing=table.n_missing)
    if found.value is None or table.cluster is not None:
        return found
    df = len(table.scores) - 1
    statistic = table.n_raters * df * found.value
    p = float(chdtrc(df, statistic))
    return replace(found, test=TestStatistic(name="chi-squared", value=statistic, df=df, p_value=p))


# Blocks of resamples that stay in the processor's cache, and the count whose double fits into 32 bits.
_BLOCK_CELLS = 2**16
_SMALL_COUNT = 2**30


def _compute(scores: Array) -> Compute:
    seen, kind = np.unique(scores, axis=0, return_inverse=True)
    # Equal units are counted together, if that saves time. All sums are of integers.
    merged = 2 * len(seen) <= len(scores)
    columns = [_RankOrder.of(column) for column in (seen if merged else scores).T]

    def compute_block(weights: Array) -> Array:
        summed = np.zeros_like(weights)
        spread = np.zeros(weights.shape[:-1])
        counts = weights.astype(np.int32 if weights.sum(-1).max() < _SMALL_COUNT else np.int64)
        for column in columns:
            ranks = column.midranks(counts).astype(float)
            summed += ranks
            spread += (weights * ranks * ranks).sum(-1)
        return np.clip(divide((weights * summed * summed).sum(-1), len(columns) * spread), 0.0, 1.0)

    def compute(weights: Array) -> Array:
        if merged:
            weights = count_kinds(weights, kind.reshape(-1), len(seen))
        step = max(1, _BLOCK_CELLS // weights.shape[-1])
        starts = range(0, len(weights), step)
        return np.concatenate([compute_block(weights[start : start + step]) for start in starts])

    return compute


class _RankOrder(NamedTuple):
    """One rater's order of the units: sorted positions, and the start and end of each unit's ties."""

    order: Codes
    start: Codes
    end: Codes

    @classmethod
    def of(cls, column: Array) -> _RankOrder:
        order = np.argsort(column, kind="stable")
        ordered = column[order]
        return cls(order, np.searchsorted(ordered, column, "left"), np.searchsorted(ordered, column, "right"))

    def midranks(self, counts: Array) -> Array:
        """Return centred midranks of units drawn `counts` times, doubled so that they stay integers."""
        before = np.zeros((len(counts), counts.shape[1] + 1), dtype=counts.dtype)
        np.cumsum(np.take(counts, self.order, axis=1), axis=1, dtype=counts.dtype, out=before[:, 1:])
        found = np.take(before, self.start, axis=1)
        found += np.take(before, self.end, axis=1)
        found -= before[:, -1:]
        return found
