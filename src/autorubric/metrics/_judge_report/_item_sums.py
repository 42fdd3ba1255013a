"""Contributions of each item to the metrics of all raters, in one matrix that can be resampled.

A rater's part of a row contains the confusion table of each criterion, scale by scale, and the six sums of
Pearson's r for each numeric criterion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, hstack

from autorubric.metrics._cells import Cells, Modes
from autorubric.metrics._criterion_figures import category_values, weights_on_values
from autorubric.metrics._judge_report._contestants import Contestant
from autorubric.metrics._resampling import Array
from autorubric.metrics._votes_table import MeasuredCriterion

_CATEGORICAL = ("binary", "nominal", "ordinal")
_DENSE_UP_TO = 20_000_000
_MOMENTS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleGroup:
    """Criteria that share a scale.

    Attributes:
        level: Measurement level of the scale.
        labels: Labels of the scale, followed by the level if another scale has the same labels.
        places: Positions of the criteria.
        size: Number of categories, including abstention if it counts as a category.
        weights: Agreement weights for kappa; None if the scale has no order because abstentions count as a
            category.
        start: Index at which the scale's tables begin in a rater's part.
    """

    level: str
    labels: tuple[str, ...]
    places: tuple[int, ...]
    size: int
    weights: Array | None
    start: int

    @property
    def stop(self) -> int:
        """Index at which the scale's tables end in a rater's part."""
        return self.start + len(self.places) * self.size**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Layout of a rater's part of a row.

    Attributes:
        groups: Scales with their criteria.
        numeric: Positions of the numeric criteria.
        start: Index at which the sums of the numeric criteria begin.
    """

    groups: tuple[ScaleGroup, ...]
    numeric: tuple[int, ...]
    start: int

    @property
    def width(self) -> int:
        """Number of sums per rater."""
        return self.start + _MOMENTS * len(self.numeric)

    def tables(self, sums: Array, group: ScaleGroup) -> Array:
        """Return the tables of a scale's criteria, `(…, n_criteria, K, K)`, from sums `(…, width)`."""
        part = sums[..., group.start : group.stop]
        return part.reshape(*sums.shape[:-1], len(group.places), group.size, group.size)

    def moments(self, sums: Array) -> Array:
        """Return the sums of the numeric criteria, `(…, n_criteria, 6)`."""
        return sums[..., self.start :].reshape(*sums.shape[:-1], len(self.numeric), _MOMENTS)


def layout_of(cells: Cells, modes: Modes) -> Layout:
    """Return the layout for the criteria of the cells."""
    found: dict[tuple[object, ...], list[int]] = {}
    for place, one in enumerate(cells.criteria):
        if one.level in _CATEGORICAL and one.categories:
            values = tuple(answer.value for answer in one.categories)
            found.setdefault((one.level, words_of(one), values), []).append(place)
        elif one.level == "ranking" and cells.outcomes.get(place):
            # Outcomes are unordered categories that are specific to each comparison.
            found[one.level, place] = [place]
    groups: list[ScaleGroup] = []
    named: set[tuple[str, ...]] = set()
    start = 0
    for places in found.values():
        first = cells.criteria[places[0]]
        ranks = first.level == "ranking"
        labels = outcome_words(cells, places[0]) if ranks else words_of(first)
        while labels in named:
            labels = (*labels, first.level)
        named.add(labels)
        size = cells.size(places[0], modes)
        weights: Array | None = np.eye(size)
        if first.level == "ordinal":
            weights = None if modes.has_category else weights_on_values(first)
        group = ScaleGroup(
            level="nominal" if ranks else first.level,
            labels=labels,
            places=tuple(places),
            size=size,
            weights=weights,
            start=start,
        )
        groups.append(group)
        start = group.stop
    numeric = tuple(
        place
        for place, one in enumerate(cells.criteria)
        if one.level == "interval" or (one.level == "ordinal" and not modes.has_category)
    )
    return Layout(groups=tuple(groups), numeric=numeric, start=start)


def outcome_words(cells: Cells, place: int) -> tuple[str, ...]:
    """Return labels for the outcomes of a comparison, which list the rank of each candidate."""
    return tuple(", ".join(str(above + 1) for above in one) for one in cells.outcomes[place])


def words_of(criterion: MeasuredCriterion) -> tuple[str, ...]:
    """Return the labels of a criterion's categories."""
    return tuple(answer.label or str(answer.code) for answer in criterion.categories)


def numbers_on(contestant: Contestant, place: int) -> tuple[Array, Array]:
    """Return the truth and the decisions on a criterion as ordinal values or as numbers in their own units.

    Answers that are not single numbers (such as checklists) are compared by their value.
    """
    cells, span = contestant.cells, contestant.cells.spans[place]
    truth, column = cells.truth.take(span), contestant.column.take(span)
    if cells.criteria[place].level == "ordinal":
        values = np.append(category_values(cells.criteria[place]), np.nan)
        return values[truth.code], values[column.code]
    if np.isnan(truth.number + column.number).all():
        return truth.value, column.value
    return truth.number, column.number


def item_sums(contestants: Sequence[Contestant], layout: Layout, used: Array) -> Array:
    """Return each used item's contribution to the sums, shape `(n_used, n_raters * width)`."""
    frames = [_frame(contestants, place) for place in layout.numeric]
    parts = [_sums_of(one, layout, frames) for one in contestants]
    sums = hstack(parts, format="csr")[used]
    # Use a sparse matrix if a dense array would be too large. It only needs a shape, products and sums.
    return np.asarray(sums.toarray()) if sums.shape[0] * sums.shape[1] <= _DENSE_UP_TO else sums


def _frame(contestants: Sequence[Contestant], place: int) -> tuple[float, float]:
    """Return the centre and range of all numbers on a criterion, which are used to avoid cancellation.

    They are the same for all raters, so that the raters' sums can be added.
    """
    numbers = np.concatenate([side for one in contestants for side in numbers_on(one, place)])
    numbers = numbers[~np.isnan(numbers)]
    if not len(numbers):
        return 0.0, 1.0
    middle = float(numbers.mean())
    return middle, float(np.abs(numbers - middle).max()) or 1.0


def _sums_of(contestant: Contestant, layout: Layout, frames: Sequence[tuple[float, float]]) -> csr_array:
    cells, column = contestant.cells, contestant.column
    rows, columns, added = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    for group in layout.groups:
        for at, place in enumerate(group.places):
            span = cells.spans[place]
            truth, judged = cells.truth.code[span], column.code[span]
            both = (truth >= 0) & (judged >= 0)
            rows.append(cells.item[span][both])
            start = group.start + at * group.size**2
            columns.append(start + truth[both] * group.size + judged[both])
            added.append(np.ones(len(rows[-1])))
    for at, (place, (middle, reach)) in enumerate(zip(layout.numeric, frames, strict=True)):
        x, y = numbers_on(contestant, place)
        both = ~np.isnan(x + y)
        u, v = (x[both] - middle) / reach, (y[both] - middle) / reach
        item = cells.item[cells.spans[place]][both]
        for moment, sums in enumerate((np.ones(len(u)), u, v, u * u, v * v, u * v)):
            rows.append(item)
            columns.append(np.full(len(u), layout.start + at * _MOMENTS + moment))
            added.append(sums)
    where = np.concatenate(rows), np.concatenate(columns)
    return csr_array((np.concatenate(added), where), shape=(cells.n_items, layout.width))
