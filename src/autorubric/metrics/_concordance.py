"""Kendall's W, the agreement of several raters on the ranking of the units."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, Unpack

import numpy as np
from scipy.special import chdtrc

from autorubric.metrics._estimate import Estimate, TestStatistic
from autorubric.metrics._estimation import Figure, estimate
from autorubric.metrics._options import IntervalArguments, IntervalOptions
from autorubric.metrics._rater_tables import complete_table, no_analytic, weighted_units
from autorubric.metrics._resampling import Array, Compute
from autorubric.metrics._scales import Codes


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
    table = complete_table(ratings, options.cluster)
    undefined = table.undefined(name)
    if undefined is not None:
        return undefined
    figure = Figure(
        name=name,
        compute=_compute(table.scores),
        reason=lambda weights: "no_variance",
        bounds=(0.0, 1.0),
        auto="percentile",
        auto_clustered="percentile",
        analytic=no_analytic,
        on_table=False,
    )
    units = weighted_units(len(table.scores), table.cluster)
    found = estimate(figure, units, options, n_missing=table.n_missing)
    if found.value is None or table.cluster is not None:
        return found
    df = len(table.scores) - 1
    statistic = table.n_raters * df * found.value
    p = float(chdtrc(df, statistic))
    return replace(found, test=TestStatistic(name="chi-squared", value=statistic, df=df, p_value=p))


def _compute(scores: Array) -> Compute:
    columns = [_Order.of(column) for column in scores.T]

    def compute(weights: Array) -> Array:
        summed = np.zeros_like(weights)
        spread = np.zeros(weights.shape[:-1])
        for column in columns:
            ranks = column.midranks(weights)
            summed += ranks
            spread += (weights * ranks * ranks).sum(-1)
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = (weights * summed * summed).sum(-1) / (len(columns) * spread)
            return np.where(spread == 0, np.nan, np.clip(ratio, 0.0, 1.0))

    return compute


class _Order(NamedTuple):
    """One rater's order of the units: sorted positions, and the start and end of each unit's ties."""

    order: Codes
    start: Codes
    end: Codes

    @classmethod
    def of(cls, column: Array) -> _Order:
        order = np.argsort(column, kind="stable")
        ordered = column[order]
        return cls(order, np.searchsorted(ordered, column, "left"), np.searchsorted(ordered, column, "right"))

    def midranks(self, weights: Array) -> Array:
        """Return centred midranks of units drawn `weights` times, doubled so that counts stay integers."""
        upto = np.cumsum(weights[..., self.order], axis=-1)
        before = np.concatenate([np.zeros((*weights.shape[:-1], 1)), upto], axis=-1)
        return np.asarray(before[..., self.start] + before[..., self.end] - before[..., -1:])
