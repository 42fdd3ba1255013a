"""Chance-corrected agreement of two raters, averaged over many criteria."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autorubric.metrics._chance import kappa_of
from autorubric.metrics._criterion_figures import category_values
from autorubric.metrics._estimate import Estimate
from autorubric.metrics._resampling import Array
from autorubric.metrics._votes_table import MeasuredCriterion


def mean_kappa(
    criterion: Array, left: Array, right: Array, values: Sequence[tuple[float, ...] | None]
) -> Estimate:
    """Return the mean over criteria of Cohen's kappa between two raters, without an interval.

    The mean is undefined if there are no cells (`no_pairs`) or if no criterion has a kappa (`single_class`).

    Args:
        criterion: Criterion of each cell that both raters answered, as a position in `values`.
        left: First rater's answer to each cell, as a position among the criterion's answers.
        right: Second rater's answer to each cell, in the same form.
        values: For each criterion, the values of its answers for quadratic weights; None if its answers are
            not ordered.
    """
    method = "Cohen's kappa, mean over criteria"
    n = len(criterion)
    if not n:
        return Estimate.undefined("no_pairs", method=method)
    size = int(max(left.max(), right.max())) + 1
    places = (criterion * size + left) * size + right
    tables = np.bincount(places, minlength=len(values) * size**2).reshape(-1, size, size)
    found = np.full(len(values), np.nan)
    # Criteria are grouped by scale, because there can be thousands of them if each item has its own rubric.
    scales: dict[tuple[float, ...] | None, list[int]] = {}
    for at, one in enumerate(values):
        scales.setdefault(one, []).append(at)
    for scale, mine in scales.items():
        found[mine] = kappa_of(tables[mine], None if scale is None else _quadratic(scale, size))
    defined = found[~np.isnan(found)]
    method += f", {len(defined)} of {np.count_nonzero(tables.any((-1, -2)))} criteria defined"
    if not len(defined):
        return Estimate.undefined("single_class", n=n, method=method)
    return Estimate(float(defined.mean()), n=n, method=method)


def ordered_values(criterion: MeasuredCriterion) -> tuple[float, ...] | None:
    """Return the values of a criterion's answers for `mean_kappa`; None if they are not ordered."""
    if criterion.level != "ordinal":
        return None
    values = iter(category_values(criterion))
    return tuple(0.0 if answer.na else next(values) for answer in criterion.answers)


def _quadratic(values: Sequence[float], size: int) -> Array:
    """Return quadratic agreement weights of shape `(size, size)`."""
    found = np.zeros(size)
    found[: len(values)] = values[:size]
    squares = (found[:, None] - found) ** 2
    return np.asarray(1.0 - squares / (squares.max() or 1.0))
