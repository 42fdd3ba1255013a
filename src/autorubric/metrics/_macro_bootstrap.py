"""Intervals of the macro figures from resampled items, the same resamples for every rater."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array

from autorubric.metrics._bias import ConfidenceInterval
from autorubric.metrics._cells import Cells, Column, Modes
from autorubric.metrics._chance import kappa_of
from autorubric.metrics._criterion_figures import weights_on_values
from autorubric.metrics._estimation import DEGENERATE_SHARE
from autorubric.metrics._item_scores import TRUTH, Rater
from autorubric.metrics._resampling import Array, draw_weights
from autorubric.metrics._results import BootstrapResults
from autorubric.metrics._shares import accuracy_of, divide

_CHUNK_CELLS = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampling:
    """How to resample.

    Attributes:
        n_bootstrap: Resamples.
        confidence_level: Level of the intervals.
        seed: Seed.
    """

    n_bootstrap: int
    confidence_level: float
    seed: int


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the tables of the criteria lie in one row of sums.

    Attributes:
        places: Categorical criteria, by position.
        sizes: Categories of each.
        starts: First cell of each, and the end.
    """

    places: tuple[int, ...]
    sizes: tuple[int, ...]
    starts: tuple[int, ...]


@dataclass(slots=True)
class _Drawn:
    """Figures of a rater in each resample so far."""

    accuracy: list[Array] = field(default_factory=list)
    kappa: list[Array] = field(default_factory=list)
    rmse: list[Array] = field(default_factory=list)


def macro_bootstrap(
    cells: Cells, raters: Sequence[Rater], modes: Modes, resampling: Resampling
) -> dict[Rater, BootstrapResults]:
    """Percentile intervals of macro accuracy, mean kappa and score RMSE of each rater."""
    layout = _layout(cells, modes)
    sums = {rater: _item_tables(cells, cells.raters[rater], layout) for rater in raters}
    errors = {rater: _squared_errors(cells.scores, rater, cells.n_items) for rater in raters}
    drawn = {rater: _Drawn() for rater in raters}
    # Items without a cell or score carry nothing, and drawing them would only thin out the rest.
    used = np.unique(cells.item[cells.truth.status > 0])
    rng = np.random.default_rng(resampling.seed)
    width = max(len(used), layout.starts[-1], 1)
    step = max(1, _CHUNK_CELLS // width)
    for start in range(0, resampling.n_bootstrap if len(used) > 1 else 0, step):
        rows = min(step, resampling.n_bootstrap - start)
        weights = np.zeros((rows, cells.n_items))
        weights[:, used] = draw_weights(np.ones(len(used), dtype=np.int64), len(used), rows, rng)
        for rater in raters:
            _draw(weights, sums[rater], errors[rater], cells, layout, drawn[rater])
    return {rater: _results(drawn[rater], resampling) for rater in raters}


def _layout(cells: Cells, modes: Modes) -> _Layout:
    places = tuple(i for i, one in enumerate(cells.criteria) if one.level in ("binary", "nominal", "ordinal"))
    sizes = tuple(len(cells.criteria[i].categories) + modes.has_category for i in places)
    starts = np.concatenate([[0], np.cumsum([size * size for size in sizes])]).astype(int)
    return _Layout(places, sizes, tuple(int(start) for start in starts))


def _item_tables(cells: Cells, rater: Column, layout: _Layout) -> csr_array:
    """Each item's cells of all tables, `(n_items, n_table_cells)`."""
    rows, columns = [], []
    for place, size, start in zip(layout.places, layout.sizes, layout.starts, strict=False):
        span = cells.spans[place]
        truth, judged = cells.truth.code[span], rater.code[span]
        both = (truth >= 0) & (judged >= 0)
        rows.append(cells.item[span][both])
        columns.append(start + truth[both] * size + judged[both])
    where = (np.concatenate(rows), np.concatenate(columns)) if rows else (np.zeros(0, int), np.zeros(0, int))
    return csr_array((np.ones(len(where[0])), where), shape=(cells.n_items, layout.starts[-1]))


def _squared_errors(scores: Mapping[Rater, Array], rater: Rater, n_items: int) -> tuple[Array, Array]:
    """Squared error of each item's score, 0 where there is none, and whether there is one."""
    gap = scores[TRUTH] - scores.get(rater, np.full(n_items, np.nan))
    there = ~np.isnan(gap)
    return np.where(there, gap, 0.0) ** 2, there.astype(float)


def _draw(
    weights: Array, sums: csr_array, errors: tuple[Array, Array], cells: Cells, layout: _Layout, drawn: _Drawn
) -> None:
    cell_counts = (sums.T @ weights.T).T
    accuracies, kappas = [], []
    for place, size, start in zip(layout.places, layout.sizes, layout.starts, strict=False):
        table = cell_counts[:, start : start + size * size].reshape(-1, size, size)
        criterion = cells.criteria[place]
        accuracies.append(accuracy_of(table))
        weighted = criterion.level == "ordinal" and size == len(criterion.categories)
        if criterion.level != "ordinal" or weighted:
            kappas.append(kappa_of(table, weights_on_values(criterion) if weighted else None))
    drawn.accuracy.append(_mean_of_defined(accuracies, len(weights)))
    drawn.kappa.append(_mean_of_defined(kappas, len(weights)))
    drawn.rmse.append(np.sqrt(divide(weights @ errors[0], weights @ errors[1])))


def _mean_of_defined(figures: Sequence[Array], rows: int) -> Array:
    if not figures:
        return np.full(rows, np.nan)
    stacked = np.stack(figures)
    defined = ~np.isnan(stacked)
    return divide(np.where(defined, stacked, 0.0).sum(0), defined.sum(0))


def _results(drawn: _Drawn, resampling: Resampling) -> BootstrapResults:
    accuracy, kappa, rmse = (_interval(one, resampling) for one in (drawn.accuracy, drawn.kappa, drawn.rmse))
    return BootstrapResults(
        accuracy_ci=accuracy,
        kappa_ci=kappa,
        rmse_ci=rmse,
        n_bootstrap=resampling.n_bootstrap,
        confidence_level=resampling.confidence_level,
        seed=resampling.seed,
    )


def _interval(chunks: Sequence[Array], resampling: Resampling) -> ConfidenceInterval | None:
    figures = np.concatenate(chunks) if chunks else np.zeros(0)
    defined = figures[~np.isnan(figures)]
    if not len(defined) or len(figures) - len(defined) > DEGENERATE_SHARE * len(figures):
        return None
    tail = (1 - resampling.confidence_level) / 2
    low, high = np.quantile(defined, (tail, 1 - tail))
    return ConfidenceInterval(
        lower=float(low),
        upper=float(high),
        confidence=resampling.confidence_level,
        method="percentile over resampled items",
    )
