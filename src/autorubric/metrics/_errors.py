"""Errors between two columns of numbers: root mean square error and mean absolute error."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Unpack

from autorubric.metrics._columns import NumberPairs, number_pairs
from autorubric.metrics._contingency import cluster_codes
from autorubric.metrics._estimate import Estimate
from autorubric.metrics._estimation import Figure, estimate
from autorubric.metrics._intervals import Ends, t_quantile
from autorubric.metrics._moments import mean_absolute_of, mean_square_of, moments_of
from autorubric.metrics._options import IntervalArguments, IntervalOptions
from autorubric.metrics._resampling import Units, influence
from autorubric.metrics._scales import as_sequence


def _mean_t(figure: Figure, units: Units, value: float, confidence_level: float) -> Ends:
    """Compute the t interval of a mean of squared or absolute errors, truncated at 0."""
    if units.size < 2:
        return Ends(None, None, None)
    effects = influence(units, figure.compute)
    se = math.sqrt(float((units.counts * effects**2).sum()) * units.size / (units.size - 1))
    half = t_quantile(confidence_level, units.size - 1) * se
    return Ends(max(0.0, value - half), value + half, se)


def _mean_figure(name: str, compute: Any) -> Figure:
    return Figure(
        name=name,
        compute=compute,
        reason=lambda sums: "no_pairs",
        bounds=(0.0, math.inf),
        auto="analytic",
        auto_clustered="analytic",
        analytic=_mean_t,
        on_table=False,
    )


def _pairs(truth: Iterable[Any], pred: Iterable[Any], options: IntervalOptions) -> NumberPairs:
    left = as_sequence(truth, "truth")
    return number_pairs(left, pred, cluster_codes(options.cluster, len(left)))


def rmse(truth: Iterable[Any], pred: Iterable[Any], **interval: Unpack[IntervalArguments]) -> Estimate:
    """Compute the root mean square error, √(Σ (pred - truth)² / n), in the units of the numbers.

    It is undefined if there are no pairs (`no_pairs`). The interval limits are the square roots of the limits
    of a t interval for the mean squared error; with C clusters, t has C - 1 degrees of freedom.

    Args:
        truth: Numbers; pairs with None or NaN are dropped.
        pred: Numbers to compare with `truth`, in the same order.
        **interval: See `IntervalArguments`.
    """
    options = IntervalOptions(**interval)
    return rmse_estimate(_pairs(truth, pred, options), options)


def rmse_estimate(pairs: NumberPairs, options: IntervalOptions) -> Estimate:
    """Compute `rmse` from pairs that have already been read."""
    moments = moments_of(pairs)
    figure = _mean_figure("RMSE", mean_square_of)
    squared = estimate(figure, moments.units, options, n_missing=pairs.n_missing)
    root = squared.map(lambda square: moments.unit * math.sqrt(square))
    if squared.se is None or not squared.value:
        return root
    # Delta method for the square root.
    se = squared.se * moments.unit / (2 * math.sqrt(squared.value))
    return Estimate(root.value, root.low, root.high, se, root.n, root.method, root.reason, root.n_missing)


def mae(truth: Iterable[Any], pred: Iterable[Any], **interval: Unpack[IntervalArguments]) -> Estimate:
    """Compute the mean absolute error, Σ |pred - truth| / n, in the units of the numbers.

    It is undefined if there are no pairs (`no_pairs`). The interval is a t interval; with C clusters, it has
    C - 1 degrees of freedom. See `rmse` for the arguments.
    """
    options = IntervalOptions(**interval)
    return mae_estimate(_pairs(truth, pred, options), options)


def mae_estimate(pairs: NumberPairs, options: IntervalOptions) -> Estimate:
    """Compute `mae` from pairs that have already been read."""
    moments = moments_of(pairs)
    scaled = estimate(
        _mean_figure("MAE", mean_absolute_of), moments.units, options, n_missing=pairs.n_missing
    )
    plain = scaled.map(lambda distance: moments.unit * distance)
    se = None if scaled.se is None else scaled.se * moments.unit
    return Estimate(
        plain.value, plain.low, plain.high, se, plain.n, plain.method, plain.reason, plain.n_missing
    )
