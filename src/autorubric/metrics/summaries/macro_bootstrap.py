"""Intervals of metrics averaged over criteria, from resampled items or smoothed tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, hstack

from autorubric.metrics.core.contingency import accuracy_of, divide
from autorubric.metrics.core.estimate import is_rounding
from autorubric.metrics.core.intervals import logit_t_ends, normal_quantile, t_quantile
from autorubric.metrics.core.item_scores import TRUTH, Rater
from autorubric.metrics.core.read_votes import Cells, Modes
from autorubric.metrics.core.resampling import NO_ENDS, Ends, Resampling, draw_weights, interval_of
from autorubric.metrics.core.scales import Array, Codes
from autorubric.metrics.core.votes_table import MeasuredCriterion
from autorubric.metrics.figures.bias import ConfidenceInterval
from autorubric.metrics.figures.kappa import kappa_of
from autorubric.metrics.summaries.criterion_figures import weights_on_values
from autorubric.metrics.summaries.results import BootstrapResults


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
    value: float, drawn: Array, n_units: int, n_tables: int, options: Resampling, *, most: float = 1.0
) -> Ends:
    """Compute an interval around a kappa of several tables from smoothed resamples, within ±`most`.

    The distances of the percentiles from the value are multiplied by the ratio of the t quantile with
    `n_units` - 1 degrees of freedom to the normal quantile. The interval always contains the value.

    A kappa computed from few items is biased, and its resamples are biased twice. A mean over many criteria
    averages out the random error but not this bias, so only 1 / `n_tables` of the draws' bias is kept. With
    several tables, each bound is also at least t standard errors of the draws from the value. If the value
    equals `most`, the lower bound is the plain percentile. The bounds are None if most draws are undefined.
    """
    low, high, se = interval_of(drawn, options)[0]
    if low is None or high is None or se is None:
        return NO_ENDS
    if is_rounding(most - value):
        return Ends(min(low, value), value, se)
    offset = (float(drawn[~np.isnan(drawn)].mean()) - value) * (1 - 1 / max(n_tables, 1))
    quantile = t_quantile(options.confidence_level, n_units - 1)
    wider, least = (
        quantile / normal_quantile(options.confidence_level),
        quantile * se if n_tables > 1 else 0.0,
    )
    low = value - max(least, (value - low + offset) * wider)
    high = value + max(least, (high - offset - value) * wider)
    return Ends(max(-most, low), min(most, high), se)


def share_ends(value: float, se: float, weights: Array, confidence_level: float) -> Ends:
    """Compute the logit-t interval of a mean of proportions, or a score interval if 0, 1 or without spread.

    Args:
        weights: Weight of each item in the mean, shape `(n_items,)`; 1/n for n equal items. The effective
            number of items is 1 / Σw², which is small if a criterion has few items.
    """
    held = weights[weights > 0]
    if len(held) < 2:
        return NO_ENDS
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
    """
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


_CHUNK_CELLS = 2_000_000


@dataclass(frozen=True, slots=True)
class _Layout:
    """Layout of a rater's sums: confusion tables, squared score error, number of scores.

    Attributes:
        places: Positions of the categorical criteria.
        sizes: Number of categories of each criterion.
        starts: Index of the first cell of each table, followed by the end of the last table.
    """

    places: tuple[int, ...]
    sizes: tuple[int, ...]
    starts: tuple[int, ...]

    @property
    def width(self) -> int:
        """Number of sums per rater."""
        return self.starts[-1] + 2


def macro_bootstrap(
    cells: Cells, raters: Sequence[Rater], modes: Modes, resampling: Resampling
) -> dict[Rater, BootstrapResults]:
    """Compute intervals for the macro accuracy, mean kappa and score RMSE of each rater; see `judge_report`.

    Accuracy uses a logit-t interval over items, kappa uses smoothed resamples (see `kappa_ends`), and RMSE
    uses percentiles.
    """
    layout = _layout(cells, modes)
    # Items without a labelled cell contribute nothing, so drawing them would only dilute the resamples.
    used = np.unique(cells.item[cells.truth.status > 0])
    sums = hstack([_item_sums(cells, rater, layout) for rater in raters], format="csr")[used]
    total = np.asarray(sums.sum(0)).reshape(1, len(raters), layout.width)
    plain = _figures(total, cells, layout)
    defined = ~np.isnan(plain.kappas)
    some = _with_pairs(total[0], layout)
    rng = resampling.generator()
    tables = list(zip(layout.places, layout.sizes, strict=True))
    more = PseudoPairs(cells.criteria, tables, resampling.seed)
    step = max(1, _CHUNK_CELLS // max(len(used), sums.shape[1], 1))
    kappas, errors = [np.zeros((0, len(raters)))], [np.zeros((0, len(raters)))]
    for start in range(0, resampling.n_resamples if len(used) > 1 else 0, step):
        rows = min(step, resampling.n_resamples - start)
        weights = draw_weights(np.ones(len(used), dtype=np.int64), len(used), rows, rng)
        totals = np.array((sums.T @ weights.T).T, dtype=float).reshape(rows, len(raters), layout.width)
        totals[..., : layout.starts[-1]] += more.draw(rows)[:, None] * some
        found = _figures(totals, cells, layout)
        kappas.append(_mean_of_defined(np.where(defined, found.kappas, np.nan)))
        errors.append(found.rmse)
    drawn = np.concatenate(kappas), np.concatenate(errors)
    return {
        rater: BootstrapResults(
            accuracy_ci=_accuracy_ends(sums, place, plain, layout, resampling),
            kappa_ci=_kappa_ends(drawn[0][:, place], plain.kappas[0, place], len(used), resampling),
            rmse_ci=_ends(
                interval_of(drawn[1][:, place], resampling)[0], "percentile over resampled items", resampling
            ),
            n_bootstrap=resampling.n_resamples,
            confidence_level=resampling.confidence_level,
            seed=resampling.seed,
        )
        for place, rater in enumerate(raters)
    }


def _layout(cells: Cells, modes: Modes) -> _Layout:
    places = tuple(i for i, one in enumerate(cells.criteria) if one.level in ("binary", "nominal", "ordinal"))
    sizes = tuple(cells.size(place, modes) for place in places)
    starts = np.concatenate([[0], np.cumsum([size * size for size in sizes])]).astype(int)
    return _Layout(places, sizes, tuple(int(start) for start in starts))


def _item_sums(cells: Cells, rater: Rater, layout: _Layout) -> csr_array:
    """Compute the contribution of each item to a rater's sums, shape `(n_items, width)`."""
    column = cells.raters[rater]
    gap = cells.scores[TRUTH] - cells.scores.get(rater, np.full(cells.n_items, np.nan))
    scored = np.flatnonzero(~np.isnan(gap))
    end = layout.starts[-1]
    rows, columns = [scored, scored], [np.full(len(scored), end), np.full(len(scored), end + 1)]
    for place, size, start in zip(layout.places, layout.sizes, layout.starts, strict=False):
        span = cells.spans[place]
        truth, judged = cells.truth.code[span], column.code[span]
        both = (truth >= 0) & (judged >= 0)
        rows.append(cells.item[span][both])
        columns.append(start + truth[both] * size + judged[both])
    where = np.concatenate(rows), np.concatenate(columns)
    added = np.ones(len(where[0]))
    added[: len(scored)] = gap[scored] ** 2
    return csr_array((added, where), shape=(cells.n_items, layout.width))


class _Figures(NamedTuple):
    """Metrics computed from sums `(rows, n_raters, width)`: accuracy and kappa by criterion, score RMSE."""

    accuracies: Array
    kappas: Array
    rmse: Array


def _figures(totals: Array, cells: Cells, layout: _Layout) -> _Figures:
    none = np.zeros((*totals.shape[:-1], 0))
    accuracies, kappas = [none], [none]
    for place, size, start in zip(layout.places, layout.sizes, layout.starts, strict=False):
        table = totals[..., start : start + size * size].reshape(*totals.shape[:-1], size, size)
        criterion = cells.criteria[place]
        accuracies.append(accuracy_of(table)[..., None])
        weighted = criterion.level == "ordinal" and size == len(criterion.categories)
        if criterion.level != "ordinal" or weighted:
            kappas.append(kappa_of(table, weights_on_values(criterion) if weighted else None)[..., None])
    rmse = np.sqrt(divide(totals[..., -2], totals[..., -1]))
    return _Figures(np.concatenate(accuracies, axis=-1), np.concatenate(kappas, axis=-1), rmse)


def _with_pairs(total: Array, layout: _Layout) -> Array:
    """Return a mask of the table cells whose criterion has at least one pair, shape `(n_raters, ΣK²)`."""
    found = [np.zeros((len(total), 0))]
    for size, start in zip(layout.sizes, layout.starts, strict=False):
        n = total[:, start : start + size * size].sum(-1, keepdims=True) > 0
        found.append(np.repeat(n, size * size, axis=-1).astype(float))
    return np.concatenate(found, axis=-1)


def _mean_of_defined(figures: Array) -> Array:
    """Compute the mean of the defined values over the last axis; NaN if all are undefined."""
    defined = ~np.isnan(figures)
    return divide(np.where(defined, figures, 0.0).sum(-1), defined.sum(-1))


def _accuracy_ends(
    sums: csr_array, place: int, plain: _Figures, layout: _Layout, resampling: Resampling
) -> ConfidenceInterval | None:
    value = float(_mean_of_defined(plain.accuracies[0, place]))
    if np.isnan(value) or sums.shape[0] < 2:
        return None
    mine = sums[:, place * layout.width : (place + 1) * layout.width].toarray()
    hits, pairs = (np.zeros((len(mine), len(layout.sizes))) for _ in range(2))
    for at, (size, start) in enumerate(zip(layout.sizes, layout.starts, strict=False)):
        table = mine[:, start : start + size * size].reshape(-1, size, size)
        hits[:, at], pairs[:, at] = np.trace(table, axis1=-2, axis2=-1), table.sum((-1, -2))
    se, weights = share_parts(hits, pairs)
    ends = share_ends(value, se, weights, resampling.confidence_level)
    return _ends(ends, "logit-t over items", resampling)


def _kappa_ends(
    drawn: Array, kappas: Array, n_items: int, resampling: Resampling
) -> ConfidenceInterval | None:
    value = float(_mean_of_defined(kappas))
    if np.isnan(value) or n_items < 2:
        return None
    n_criteria = int(np.count_nonzero(~np.isnan(kappas)))
    ends = kappa_ends(value, drawn, n_items, n_criteria, resampling)
    return _ends(ends, "smoothed bootstrap over items, around the value", resampling)


def _ends(ends: Ends, method: str, resampling: Resampling) -> ConfidenceInterval | None:
    low, high, _ = ends
    if low is None or high is None or is_rounding(high - low, max(abs(low), 1.0)):
        return None
    return ConfidenceInterval(lower=low, upper=high, confidence=resampling.confidence_level, method=method)
