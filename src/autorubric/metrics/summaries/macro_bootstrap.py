"""Resampling of items, and intervals of metrics averaged over criteria."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array, hstack

from autorubric.metrics.core.contingency import divide, mean_of_defined
from autorubric.metrics.core.estimate import is_rounding
from autorubric.metrics.core.intervals import logit_t_ends, normal_quantile, t_quantile
from autorubric.metrics.core.item_scores import TRUTH, Rater
from autorubric.metrics.core.read_votes import Modes
from autorubric.metrics.core.resampling import NO_ENDS, Ends, Resampling, Units, interval_of, replicates
from autorubric.metrics.core.scales import Array, Codes
from autorubric.metrics.core.votes_table import MeasuredCriterion
from autorubric.metrics.figures.bias import ConfidenceInterval, interval_between
from autorubric.metrics.figures.classification import ACCURACY
from autorubric.metrics.figures.specs import shown_metric
from autorubric.metrics.summaries.compared_raters import ComparedRater
from autorubric.metrics.summaries.results import BootstrapResults
from autorubric.metrics.summaries.table_metrics import (
    SumLayout,
    by_criterion,
    item_sums,
    layout_of,
    places_with,
    share_counts,
)

_CELLS_AT_ONCE = 2_000_000


class SmoothingPairs:
    """Pseudo-pairs for resampled tables, 1/K² per cell, so that unobserved errors are not ruled out."""

    def __init__(self, criteria: Sequence[MeasuredCriterion], tables: Sequence[tuple[int, int]], seed: int):
        # The generator is independent of the one that draws items and visits criteria sorted by name, so
        # results depend neither on chunks nor on the order of `tables` (position and number of categories).
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
    value: float, drawn: Array, n_units: int, n_tables: int, options: Resampling, *, most: float = 1.0
) -> Ends:
    """Compute an interval around a kappa of several tables from smoothed resamples, within ±`most`.

    The percentiles' distances from the value are widened by the ratio of the t quantile to the normal
    one. A kappa of few items is biased, and its resamples twice; a mean over criteria averages out the
    random error but not this bias, so only 1 / `n_tables` of the draws' bias is kept. With several
    tables, each bound is also at least t standard errors from the value. If the value equals `most`, the
    lower bound is the plain percentile.
    """
    low, high, se = interval_of(drawn, options)[0]
    if low is None or high is None or se is None:
        return NO_ENDS
    if is_rounding(most - value):
        return Ends(min(low, value), value, se)
    offset = (float(drawn[~np.isnan(drawn)].mean()) - value) * (1 - 1 / max(n_tables, 1))
    quantile = t_quantile(options.confidence_level, n_units - 1)
    wider = quantile / normal_quantile(options.confidence_level)
    least = quantile * se if n_tables > 1 else 0.0
    low = value - max(least, (value - low + offset) * wider)
    high = value + max(least, (high - offset - value) * wider)
    return Ends(max(-most, low), min(most, high), se)


def share_ends(value: float, se: float, weights: Array, confidence_level: float) -> Ends:
    """Compute the logit-t interval of a mean of proportions, with 1 / Σw² as the number of items."""
    held = weights[weights > 0]
    if len(held) < 2:
        return NO_ENDS
    effective = float(held.sum() ** 2 / (held**2).sum())
    # The effective number of items is at least two; below that, the t quantile grows without bound.
    low, high = logit_t_ends(value, se, max(2.0, effective), confidence_level)
    return Ends(low, high, se)


def share_parts(hits: Array, pairs: Array) -> tuple[float, Array]:
    """Return the standard error over items of a mean proportion over criteria, and each item's weight."""
    n = pairs.sum(0)
    there = n > 0
    n, hits, pairs = n[there], np.asfortranarray(hits[:, there]), np.asfortranarray(pairs[:, there])
    n_criteria = max(len(n), 1)
    weights = (pairs / n).sum(1) / n_criteria
    effects = ((hits - pairs * (hits.sum(0) / n)) / n).sum(1) / n_criteria
    size = int(np.count_nonzero(weights))
    se = math.sqrt(float((effects**2).sum()) * size / (size - 1)) if size > 1 else 0.0
    return se, weights


def mean_share_ends(item: Codes, criterion: Codes, hit: Array, confidence_level: float) -> Ends:
    """Compute the interval of a proportion averaged over criteria from its cells; `hit` is 0 or 1."""
    if not len(item):
        return NO_ENDS
    n = np.bincount(criterion)
    share = np.bincount(criterion, hit) / np.maximum(n, 1)
    n_criteria = np.count_nonzero(n)
    weights = np.bincount(item, 1 / n[criterion]) / n_criteria
    effects = np.bincount(item, (hit - share[criterion]) / n[criterion]) / n_criteria
    size = int(np.count_nonzero(weights))
    se = math.sqrt(float((effects**2).sum()) * size / (size - 1)) if size > 1 else 0.0
    return share_ends(float(share[n > 0].mean()), se, weights, confidence_level)


def resampled_metrics(
    sums: Array,
    n_raters: int,
    layout: SumLayout,
    criteria: Sequence[MeasuredCriterion],
    resampling: Resampling,
    compute: Callable[[Array, Array], Array],
    people: slice = slice(0),
) -> Array:
    """Compute metrics in each smoothed resample of the items, `(n_resamples, …)`.

    `sums` are `(n_items, n_raters * width)` with further columns that are not smoothed; `compute` takes
    both. `people` get separate pseudo-pairs, or a judge that copies them would always match them.
    """
    end = n_raters * layout.width
    tables = [(place, group.size) for group in layout.groups for place in group.places]
    kind = np.zeros(n_raters, dtype=np.int64)
    kind[people] = 1
    more = [SmoothingPairs(criteria, tables, resampling.seed + at) for at in range(1 + int(kind.any()))]
    some = _with_pairs(layout, np.asarray(sums.sum(0), dtype=float)[:end].reshape(n_raters, layout.width))

    def of_sums(totals: Array) -> Array:
        # Sums of the few cells of a table are many times as fast if resamples are adjacent in memory.
        by_rater = np.asfortranarray(totals[:, :end], dtype=float)
        by_rater = by_rater.reshape(len(totals), n_raters, layout.width)
        added = [np.asfortranarray(one.draw(len(totals))) for one in more]
        for at in range(n_raters):
            # One rater at a time, because all at once would need as much memory as the sums.
            by_rater[:, at, : layout.start] += added[kind[at]] * some[at]
        return compute(by_rater, np.asarray(totals[:, end:], dtype=float))

    units = Units(counts=np.ones(sums.shape[0], dtype=np.int64), n=sums.shape[0], sums=sums)
    rng, n = resampling.generator(), resampling.n_resamples
    # Large sums are sparse, and their resamples need more memory than `replicates` assumes.
    at_once = n if isinstance(sums, np.ndarray) else max(1, _CELLS_AT_ONCE // max(*sums.shape, 1))
    steps = [min(at_once, n - start) for start in range(0, n, at_once)]
    return np.concatenate([replicates(units, of_sums, rows, rng) for rows in steps])


def _with_pairs(layout: SumLayout, total: Array) -> Array:
    """Return a mask of the table cells of criteria with at least one pair, shape `(n_raters, start)`."""
    found = [np.zeros((len(total), 0))]
    for group in layout.groups:
        n = layout.tables(total, group).sum((-1, -2)) > 0
        found.append(np.repeat(n, group.size**2, axis=-1).astype(float))
    return np.concatenate(found, axis=-1)


def macro_bootstrap(
    raters: Sequence[ComparedRater], modes: Modes, resampling: Resampling
) -> dict[Rater, BootstrapResults]:
    """Compute intervals of each rater's macro accuracy (logit-t), mean kappa (`kappa_ends`) and RMSE."""
    cells, n = raters[0].cells, len(raters)
    layout = replace(layout_of(cells, modes, comparisons=False), numeric=())
    # Items without a labelled cell contribute nothing, so drawing them would only dilute the resamples.
    used = np.unique(cells.item[cells.truth.status > 0])
    sums = hstack([item_sums(raters, layout, used), _squared_errors(raters)[used]], format="csr")
    right, agreed = shown_metric("accuracy"), shown_metric("kappa")
    order = np.argsort(places_with(layout, right)).astype(np.int64)
    ordered = np.array([one.weights is not None for one in layout.groups for _ in one.places], dtype=bool)
    with_kappa = order[ordered[order]]
    total = np.asarray(sums.sum(0), dtype=float)[: n * layout.width].reshape(n, layout.width)
    each = by_criterion(layout, total, (right, agreed))
    accuracies, kappas = each["accuracy"][:, order], each["kappa"][:, with_kappa]

    def compute(by_rater: Array, scores: Array) -> Array:
        found = np.take(by_criterion(layout, by_rater, (agreed,))["kappa"], with_kappa, axis=-1)
        mean = mean_of_defined(np.where(np.isnan(kappas), np.nan, found))
        return np.stack([mean, np.sqrt(divide(scores[:, ::2], scores[:, 1::2]))], axis=1)

    drawn = np.zeros((0, 2, n))
    if len(used) > 1:
        drawn = resampled_metrics(sums, n, layout, cells.criteria, resampling, compute)
    found = {}
    for at, rater in enumerate(raters):
        mine = sums[:, at * layout.width : (at + 1) * layout.width].toarray()
        counts = [one[:, order] for one in share_counts(layout, mine, layout.groups, ACCURACY)]
        accuracy = float(mean_of_defined(accuracies[at]))
        accuracy_ends = share_ends(accuracy, *share_parts(*counts), resampling.confidence_level)
        kappa, n_kappas = float(mean_of_defined(kappas[at])), int((~np.isnan(kappas[at])).sum())
        around = kappa_ends(kappa, drawn[:, 0, at], len(used), n_kappas, resampling)
        percentiles, _ = interval_of(drawn[:, 1, at], resampling)
        found[rater.rater] = BootstrapResults(
            accuracy_ci=_interval(accuracy_ends, "logit-t over items", resampling),
            kappa_ci=_interval(around, "smoothed bootstrap over items, around the value", resampling),
            rmse_ci=_interval(percentiles, "percentile over resampled items", resampling),
            n_bootstrap=resampling.n_resamples,
            confidence_level=resampling.confidence_level,
            seed=resampling.seed,
        )
    return found


def _squared_errors(raters: Sequence[ComparedRater]) -> csr_array:
    """Return the squared error and the number of scores of each item and rater, `(n_items, 2 * n_raters)`."""
    cells = raters[0].cells
    nothing = np.full(cells.n_items, np.nan)
    gaps = np.column_stack([cells.scores[TRUTH] - cells.scores.get(one.rater, nothing) for one in raters])
    columns = np.stack([np.nan_to_num(gaps**2), ~np.isnan(gaps)], axis=-1)
    return csr_array(columns.reshape(cells.n_items, 2 * len(raters)).astype(float))


def _interval(ends: Ends, method: str, resampling: Resampling) -> ConfidenceInterval | None:
    low, high, _ = ends
    if low is not None and high is not None and is_rounding(high - low, max(abs(low), 1.0)):
        return None
    return interval_between(low, high, resampling.confidence_level, method)
