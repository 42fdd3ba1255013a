"""Intervals of the macro figures from resampled items, the same resamples for every rater."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, hstack

from autorubric.metrics._bias import ConfidenceInterval
from autorubric.metrics._cells import Cells, Modes
from autorubric.metrics._chance import kappa_of
from autorubric.metrics._criterion_figures import weights_on_values
from autorubric.metrics._estimation import DEGENERATE_SHARE
from autorubric.metrics._intervals import resampled_t_ends
from autorubric.metrics._item_scores import TRUTH, Rater
from autorubric.metrics._resampling import Array, draw_weights
from autorubric.metrics._results import BootstrapResults
from autorubric.metrics._shares import accuracy_of, divide

_CHUNK_CELLS = 2_000_000


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
    """What stands where in a rater's part of a row of sums: tables, squared error of the score, scores.

    Attributes:
        places: Categorical criteria, by position.
        sizes: Categories of each.
        starts: First cell of each table, and the end of the last.
    """

    places: tuple[int, ...]
    sizes: tuple[int, ...]
    starts: tuple[int, ...]

    @property
    def width(self) -> int:
        """Sums of a rater."""
        return self.starts[-1] + 2


def macro_bootstrap(
    cells: Cells, raters: Sequence[Rater], modes: Modes, resampling: Resampling
) -> dict[Rater, BootstrapResults]:
    """Intervals of macro accuracy, mean kappa and score RMSE of each rater.

    Percentiles, but for the mean kappa: see `resampled_t_ends`.
    """
    layout = _layout(cells, modes)
    # Items without a cell or score carry nothing, and drawing them would only thin out the rest.
    used = np.unique(cells.item[cells.truth.status > 0])
    sums = hstack([_item_sums(cells, rater, layout) for rater in raters], format="csr")[used]
    rng = np.random.default_rng(resampling.seed)
    step = max(1, _CHUNK_CELLS // max(len(used), sums.shape[1], 1))
    drawn = [np.zeros((3, 0, len(raters)))]
    for start in range(0, resampling.n_bootstrap if len(used) > 1 else 0, step):
        rows = min(step, resampling.n_bootstrap - start)
        weights = draw_weights(np.ones(len(used), dtype=np.int64), len(used), rows, rng)
        totals = (sums.T @ weights.T).T.reshape(rows, len(raters), layout.width)
        drawn.append(_macro_figures(totals, cells, layout))
    figures = np.concatenate(drawn, axis=1)
    total = np.asarray(sums.sum(0)).reshape(1, len(raters), layout.width)
    kappas = _macro_figures(total, cells, layout)[1, 0]
    return {
        rater: _results(figures[..., place], float(kappas[place]), len(used), resampling)
        for place, rater in enumerate(raters)
    }


def _layout(cells: Cells, modes: Modes) -> _Layout:
    places = tuple(i for i, one in enumerate(cells.criteria) if one.level in ("binary", "nominal", "ordinal"))
    sizes = tuple(cells.size(place, modes) for place in places)
    starts = np.concatenate([[0], np.cumsum([size * size for size in sizes])]).astype(int)
    return _Layout(places, sizes, tuple(int(start) for start in starts))


def _item_sums(cells: Cells, rater: Rater, layout: _Layout) -> csr_array:
    """What each item adds to the sums of a rater, shape `(n_items, width)`."""
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


def _macro_figures(totals: Array, cells: Cells, layout: _Layout) -> Array:
    """Macro accuracy, mean kappa and score RMSE at sums `(rows, n_raters, width)`; `(3, rows, n_raters)`."""
    accuracies, kappas = [], []
    for place, size, start in zip(layout.places, layout.sizes, layout.starts, strict=False):
        table = totals[..., start : start + size * size].reshape(*totals.shape[:-1], size, size)
        criterion = cells.criteria[place]
        accuracies.append(accuracy_of(table))
        weighted = criterion.level == "ordinal" and size == len(criterion.categories)
        if criterion.level != "ordinal" or weighted:
            kappas.append(kappa_of(table, weights_on_values(criterion) if weighted else None))
    rmse = np.sqrt(divide(totals[..., -2], totals[..., -1]))
    shape = totals.shape[:-1]
    return np.stack([_mean_of_defined(accuracies, shape), _mean_of_defined(kappas, shape), rmse])


def _mean_of_defined(figures: Sequence[Array], shape: tuple[int, ...]) -> Array:
    if not figures:
        return np.full(shape, np.nan)
    stacked = np.stack(figures)
    defined = ~np.isnan(stacked)
    return divide(np.where(defined, stacked, 0.0).sum(0), defined.sum(0))


def _results(drawn: Array, kappa: float, n_items: int, resampling: Resampling) -> BootstrapResults:
    accuracies, kappas, errors = (_defined(figures) for figures in drawn)
    return BootstrapResults(
        accuracy_ci=_percentiles(accuracies, resampling),
        kappa_ci=_around(kappa, kappas, n_items, resampling),
        rmse_ci=_percentiles(errors, resampling),
        n_bootstrap=resampling.n_bootstrap,
        confidence_level=resampling.confidence_level,
        seed=resampling.seed,
    )


def _defined(figures: Array) -> Array | None:
    """The values that are defined; None where they are too few to stand for all."""
    defined = figures[~np.isnan(figures)]
    few = not len(defined) or len(figures) - len(defined) > DEGENERATE_SHARE * len(figures)
    return None if few else defined


def _percentiles(drawn: Array | None, resampling: Resampling) -> ConfidenceInterval | None:
    if drawn is None:
        return None
    tail = (1 - resampling.confidence_level) / 2
    low, high = np.quantile(drawn, (tail, 1 - tail))
    return _ends(float(low), float(high), "percentile over resampled items", resampling)


def _around(
    value: float, drawn: Array | None, n_items: int, resampling: Resampling
) -> ConfidenceInterval | None:
    if drawn is None or np.isnan(value):
        return None
    se = float(drawn.std(ddof=1)) if len(drawn) > 1 else 0.0
    low, high = resampled_t_ends(value, se, n_items, resampling.confidence_level)
    return _ends(low, high, "t with the standard error over resampled items", resampling)


def _ends(low: float, high: float, method: str, resampling: Resampling) -> ConfidenceInterval:
    return ConfidenceInterval(lower=low, upper=high, confidence=resampling.confidence_level, method=method)
