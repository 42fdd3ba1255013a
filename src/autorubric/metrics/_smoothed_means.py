"""Intervals of figures over several criteria, from resampled tables that hold some pairs more."""

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
    """What is added to resampled tables: 1/K² a cell, one pair in all a table.

    As in the smoothed bootstrap of one table, but of each criterion's: an error that was not seen on a
    criterion is not ruled out by what was seen on others.
    """

    def __init__(self, criteria: Sequence[MeasuredCriterion], tables: Sequence[tuple[int, int]], seed: int):
        """`tables` are position of the criterion and categories, as they stand in a row of sums.

        The generator is apart from that of the items, and goes through the criteria by name: neither the
        chunks in which items are drawn nor the order of the criteria matter.
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
        """The next resamples' additions, shape `(rows, ΣK²)`."""
        drawn = self._rng.poisson(self._chances, size=(rows, len(self._chances)))
        return np.asarray(drawn[:, self._columns], dtype=float)


def _key(criterion: MeasuredCriterion) -> tuple[str, ...]:
    return (criterion.name, criterion.level, *(str(answer.code) for answer in criterion.answers))


def kappa_ends(
    value: float, drawn: Array, n_units: int, n_tables: int, confidence_level: float, *, most: float = 1.0
) -> Ends:
    """Ends about a kappa of several tables, from its values over smoothed resamples, in ±`most`.

    The distances of the percentiles, as wide again as t with `n_units` - 1 is to the normal; they hold the
    value. A kappa of few items is biased and its resamples twice so, which a mean over many criteria does not
    average out as it does the error: of the draws' distance from the value 1 / `n_tables` is kept, and of
    several tables the ends are no nearer than t with the draws' standard error. At a kappa of 1 the plain
    percentile is the lower end. None where most draws are undefined.
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
    """Logit-t ends of a mean of shares; at 0 and 1, or without a spread, a score interval.

    Args:
        value: The mean.
        se: Its standard error.
        weights: Part of each item in the mean, shape `(n_items,)`: of n items alike 1/n each. They come to
            1 / Σw² items, so that a criterion of few items counts as such.
        confidence_level: Level.
    """
    held = weights[weights > 0]
    if len(held) < 2:
        return _NOTHING
    effective = float(held.sum() ** 2 / (held**2).sum())
    # No interval has fewer than two items; t would widen without end.
    low, high = logit_t_ends(value, se, max(2.0, effective), confidence_level)
    return Ends(low, high, se)


def share_parts(hits: Array, pairs: Array) -> tuple[float, Array]:
    """Standard error over items of the mean over criteria of a share, and each item's part in it.

    Args:
        hits: Right answers of each item on each criterion, shape `(n_items, n_criteria)`.
        pairs: Answers that the share is of, same shape.
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
    """Ends of the mean over criteria of a share, from one row per cell; see `share_parts` and `share_ends`.

    Args:
        item: Item of each cell that the share is of, shape `(n_cells,)`.
        criterion: Its criterion, same shape.
        hit: 1 where the cell is a hit, else 0, same shape.
        confidence_level: Level.
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
