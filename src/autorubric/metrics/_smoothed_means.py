"""Intervals of metrics averaged over criteria, from resampled tables with added pseudo-pairs."""

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
    """The pseudo-pairs added to resampled tables: 1/K² per cell, one pair per table in total.

    As in the smoothed bootstrap of one table, but for the table of each criterion, so that errors that were
    not observed on a criterion are not ruled out by the data of other criteria.
    """

    def __init__(self, criteria: Sequence[MeasuredCriterion], tables: Sequence[tuple[int, int]], seed: int):
        """Prepare the draws for `tables`: criterion position and number of categories, in order of the sums.

        The generator is independent of the one for items and processes the criteria by name, so results do
        not depend on the chunks in which items are drawn, or on the order of the criteria.
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
        """Draw the additions to the next resamples, shape `(rows, ΣK²)`."""
        drawn = self._rng.poisson(self._chances, size=(rows, len(self._chances)))
        return np.asarray(drawn[:, self._columns], dtype=float)


def _key(criterion: MeasuredCriterion) -> tuple[str, ...]:
    return (criterion.name, criterion.level, *(str(answer.code) for answer in criterion.answers))


def kappa_ends(
    value: float, drawn: Array, n_units: int, n_tables: int, confidence_level: float, *, most: float = 1.0
) -> Ends:
    """Compute the ends around a kappa of several tables from smoothed resamples, within ±`most`.

    The distances of the percentiles from the value are multiplied by the ratio of the t quantile with
    `n_units` - 1 degrees of freedom to the normal quantile. The interval contains the value.

    A kappa of few items is biased, and its resamples are biased twice. A mean over many criteria averages out
    the random error but not this bias, so only 1 / `n_tables` of the draws' bias is kept. With several
    tables, each end is also at least t times the draws' standard error away. At a kappa of 1 (`most`), the
    plain percentile is the lower end. There are no ends if most draws are undefined.
    """
    defined = drawn[~np.isnan(drawn)]
    if len(defined) < 2 or len(drawn) - len(defined) > DEGENERATE_SHARE * len(drawn):
        return _NOTHING
    tail = (1 - confidence_level) / 2
    low, high = (float(end) for end in np.quantile(defined, (tail, 1 - tail)))
    se = float(defined.std(ddof=1))
    if is_rounding(most - value):
        return Ends(min(low, value), value, se)
    beside = (float(defined.mean()) - value) * (1 - 1 / max(n_tables, 1))
    quantile = t_quantile(confidence_level, n_units - 1)
    wider, least = quantile / normal_quantile(confidence_level), quantile * se if n_tables > 1 else 0.0
    low = value - max(least, (value - low + beside) * wider)
    high = value + max(least, (high - beside - value) * wider)
    return Ends(max(-most, low), min(most, high), se)


def share_ends(value: float, se: float, weights: Array, confidence_level: float) -> Ends:
    """Compute the logit-t ends of a mean of shares; at 0 and 1, or without spread, a score interval.

    Args:
        value: The mean.
        se: Its standard error.
        weights: Weight of each item in the mean, shape `(n_items,)`; 1/n for n equal items. The effective
            number of items is 1 / Σw², which is small if a criterion has few items.
        confidence_level: Confidence level.
    """
    held = weights[weights > 0]
    if len(held) < 2:
        return _NOTHING
    effective = float(held.sum() ** 2 / (held**2).sum())
    # No interval has fewer than two items; t would widen without end.
    low, high = logit_t_ends(value, se, max(2.0, effective), confidence_level)
    return Ends(low, high, se)


def share_parts(hits: Array, pairs: Array) -> tuple[float, Array]:
    """Compute the standard error over items of a share averaged over criteria, and each item's weight.

    Args:
        hits: Correct answers of each item on each criterion, shape `(n_items, n_criteria)`.
        pairs: All answers counted in the share, same shape.
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
    """Compute the ends of a share averaged over criteria from cells; see `share_parts` and `share_ends`.

    Args:
        item: Item of each cell counted in the share, shape `(n_cells,)`.
        criterion: Criterion of each cell, same shape.
        hit: 1 if the cell is a hit, otherwise 0, same shape.
        confidence_level: Confidence level.
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
