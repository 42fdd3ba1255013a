"""Confidence intervals for metrics averaged over criteria, from resampled tables with added pseudo-pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from autorubric.metrics._estimation import DEGENERATE_SHARE
from autorubric.metrics._intervals import Ends, logit_t_ends, normal_quantile, t_quantile
from autorubric.metrics._resampling import Array
from autorubric.metrics._rounding import is_rounding
from autorubric.metrics._scales import Codes
from autorubric.metrics._votes_table import MeasuredCriterion

_NOTHING = Ends(None, None, None)


class PseudoPairs:
    """Pseudo-pairs that are added to resampled tables: 1/K² per cell, which is one pair per table.

    The smoothed bootstrap of a single table is applied to the table of each criterion. Errors that were not
    observed on a criterion are therefore not ruled out by the data of other criteria.
    """

    def __init__(self, criteria: Sequence[MeasuredCriterion], tables: Sequence[tuple[int, int]], seed: int):
        """Prepare the draws for `tables`, pairs of criterion position and number of categories.

        The tables are in the order of the sums. The generator is independent of the one that draws items and
        visits the criteria sorted by name, so results do not depend on chunking or on the criteria's order.
        """
        order = sorted(range(len(tables)), key=lambda at: _key(criteria[tables[at][0]]))
        sizes = [tables[at][1] ** 2 for at in order]
        starts = dict(zip(order, np.cumsum([0, *sizes]).tolist(), strict=False))
        chances = [np.full(size, 1.0 / size) for size in sizes]
        columns = [np.arange(starts[at], starts[at] + size * size) for at, (_, size) in enumerate(tables)]
        self._chances = np.concatenate([np.zeros(0), *chances])
        self._columns = np.concatenate([np.zeros(0, dtype=np.int64), *columns])
        self._rng = np.random.default_rng([seed, 1])

    def draw(self, rows: int) -> Array:
        """Draw the counts to add to the next `rows` resamples, shape `(rows, ΣK²)`."""
        drawn = self._rng.poisson(self._chances, size=(rows, len(self._chances)))
        return np.asarray(drawn[:, self._columns], dtype=float)


def _key(criterion: MeasuredCriterion) -> tuple[str, ...]:
    return (criterion.name, criterion.level, *(str(answer.code) for answer in criterion.answers))


def kappa_ends(
    value: float, drawn: Array, n_units: int, n_tables: int, confidence_level: float, *, most: float = 1.0
) -> Ends:
    """Compute an interval around a kappa of several tables from smoothed resamples, within ±`most`.

    The distances of the percentiles from the value are multiplied by the ratio of the t quantile with
    `n_units` - 1 degrees of freedom to the normal quantile. The interval always contains the value.

    A kappa computed from few items is biased, and its resamples are biased twice. A mean over many criteria
    averages out the random error but not this bias, so only 1 / `n_tables` of the draws' bias is kept. With
    several tables, each bound is also at least t standard errors of the draws from the value. If the value
    equals `most`, the lower bound is the plain percentile. The bounds are None if most draws are undefined.
    """
    defined = drawn[~np.isnan(drawn)]
    if len(defined) < 2 or len(drawn) - len(defined) > DEGENERATE_SHARE * len(drawn):
        return _NOTHING
    tail = (1 - confidence_level) / 2
    low, high = (float(end) for end in np.quantile(defined, (tail, 1 - tail)))
    se = float(defined.std(ddof=1))
    if is_rounding(most - value):
        return Ends(min(low, value), value, se)
    offset = (float(defined.mean()) - value) * (1 - 1 / max(n_tables, 1))
    quantile = t_quantile(confidence_level, n_units - 1)
    wider, least = quantile / normal_quantile(confidence_level), quantile * se if n_tables > 1 else 0.0
    low = value - max(least, (value - low + offset) * wider)
    high = value + max(least, (high - offset - value) * wider)
    return Ends(max(-most, low), min(most, high), se)


def share_ends(value: float, se: float, weights: Array, confidence_level: float) -> Ends:
    """Compute the logit-t interval of a mean of proportions, or a score interval if 0, 1 or without spread.

    Args:
        value: Mean of the proportions.
        se: Standard error of the mean.
        weights: Weight of each item in the mean, shape `(n_items,)`; 1/n for n equal items. The effective
            number of items is 1 / Σw², which is small if a criterion has few items.
        confidence_level: Confidence level of the interval.
    """
    held = weights[weights > 0]
    if len(held) < 2:
        return _NOTHING
    effective = float(held.sum() ** 2 / (held**2).sum())
    # The effective number of items is at least two; below that, the t quantile grows without bound.
    low, high = logit_t_ends(value, se, max(2.0, effective), confidence_level)
    return Ends(low, high, se)


def share_parts(hits: Array, pairs: Array) -> tuple[float, Array]:
    """Compute the standard error over items of a proportion averaged over criteria, and each item's weight.

    Args:
        hits: Number of correct answers of each item on each criterion, shape `(n_items, n_criteria)`.
        pairs: Number of all answers in the proportion's denominator, with the same shape.
    """
    n = pairs.sum(0)
    there = n > 0
    n, hits, pairs = n[there], hits[:, there], pairs[:, there]
    n_criteria = max(len(n), 1)
    weights = (pairs / n).sum(1) / n_criteria
    effects = ((hits - pairs * (hits.sum(0) / n)) / n).sum(1) / n_criteria
    size = int(np.count_nonzero(weights))
    se = math.sqrt(float((effects**2).sum()) * size / (size - 1)) if size > 1 else 0.0
    return se, weights


def mean_share_ends(item: Codes, criterion: Codes, hit: Array, confidence_level: float) -> Ends:
    """Compute the interval of a proportion averaged over criteria; see `share_parts` and `share_ends`.

    Args:
        item: Item of each cell in the proportion's denominator, shape `(n_cells,)`.
        criterion: Criterion of each cell, shape `(n_cells,)`.
        hit: 1 if the cell is a hit and 0 otherwise, shape `(n_cells,)`.
        confidence_level: Confidence level of the interval.
    """
    if not len(item):
        return _NOTHING
    n = np.bincount(criterion)
    share = np.bincount(criterion, hit) / np.maximum(n, 1)
    n_criteria = np.count_nonzero(n)
    weights = np.bincount(item, 1 / n[criterion]) / n_criteria
    effects = np.bincount(item, (hit - share[criterion]) / n[criterion]) / n_criteria
    size = int(np.count_nonzero(weights))
    se = math.sqrt(float((effects**2).sum()) * size / (size - 1)) if size > 1 else 0.0
    return share_ends(float(share[n > 0].mean()), se, weights, confidence_level)
