"""Figures of a K × K table: what is known about the interval of a share, and of anything else."""

from __future__ import annotations

from collections.abc import Callable

from autorubric.metrics._estimate import Reason
from autorubric.metrics._estimation import Figure, delta, proportion
from autorubric.metrics._resampling import Array


def square(sums: Array, size: int) -> Array:
    """Sums of cells, row by row, as tables."""
    return sums.reshape(*sums.shape[:-1], size, size)


def share_figure(
    name: str, size: int, of: Callable[[Array], Array], trials: Callable[[Array], Array], reason: Reason
) -> Figure:
    """A share with its denominator: Wilson, or logit-t over clusters."""
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
    """Any other figure, smooth in the cells: bootstrap on the smoothed table."""
    return Figure(
        name=name,
        compute=lambda sums: of(square(sums, size)),
        reason=lambda sums: reason,
        bounds=(low, 1.0),
        analytic=delta,
    )
