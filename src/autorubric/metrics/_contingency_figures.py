"""Metrics of a K × K table: proportions with their intervals, and other smooth functions of the cells."""

from __future__ import annotations

from collections.abc import Callable

from autorubric.metrics._estimate import Reason
from autorubric.metrics._estimation import Figure, delta, proportion
from autorubric.metrics._resampling import Array


def square(sums: Array, size: int) -> Array:
    """Reshape sums of cells, stored row by row, to tables."""
    return sums.reshape(*sums.shape[:-1], size, size)


def share_figure(
    name: str, size: int, of: Callable[[Array], Array], trials: Callable[[Array], Array], reason: Reason
) -> Figure:
    """Return the `Figure` of a proportion, with a Wilson interval or, for clusters, a logit-t interval."""
    return Figure(
        name=name,
        compute=lambda sums: of(square(sums, size)),
        reason=lambda sums: reason,
        bounds=(0.0, 1.0),
        auto="analytic",
        auto_clustered="analytic",
        analytic=proportion,
        trials=lambda sums: trials(square(sums, size)),
    )


def smooth_figure(
    name: str, size: int, of: Callable[[Array], Array], reason: Reason, low: float = 0.0
) -> Figure:
    """Return the `Figure` of a smooth function of the cells, with a smoothed bootstrap interval."""
    return Figure(
        name=name,
        compute=lambda sums: of(square(sums, size)),
        reason=lambda sums: reason,
        bounds=(low, 1.0),
        analytic=delta,
    )
