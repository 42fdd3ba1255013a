"""Metrics of confusion tables, on one criterion or over several, from sums per item that can be resampled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack

from autorubric.metrics.core import contingency as shares
from autorubric.metrics.core.contingency import add_up, mean_of_defined
from autorubric.metrics.core.estimate import Reason
from autorubric.metrics.core.metric import CATEGORICAL, MetricDisplay, TableMetric
from autorubric.metrics.core.read_votes import Cells, Column, Modes
from autorubric.metrics.core.scales import Array, Ordinal, weight_matrix
from autorubric.metrics.core.votes_table import MeasuredCriterion
from autorubric.metrics.figures.kappa import kappa_parts
from autorubric.metrics.figures.specs import metrics_over, shown_metrics
from autorubric.metrics.summaries.compared_raters import ComparedRater

_DENSE_UP_TO = 20_000_000
_MOMENTS = 6


FEW_OF_A_CLASS = 10
"""Size of the rarer class below which kappa and its interval depend heavily on single items."""


@cache
def headlines() -> tuple[MetricDisplay, ...]:
    """Return the metrics that are combined over criteria."""
    return tuple(one for one in shown_metrics() if one.where["report"])


def table_value(metric: TableMetric, table: Array, weights: Array | None = None) -> float | Reason:
    """Compute a metric of one table, or return the reason why it is undefined."""
    value = float(metric.of(table, weights))
    return metric.why_undefined(table) if np.isnan(value) else value


def category_values(criterion: MeasuredCriterion) -> list[float]:
    """Return the values of the categories in [0, 1], or their positions if any value is missing."""
    values = [answer.value for answer in criterion.categories]
    if any(value is None for value in values):
        return [float(place) for place in range(len(values))]
    return [value for value in values if value is not None]


def weights_on_values(criterion: MeasuredCriterion) -> Array:
    """Return quadratic agreement weights on the option values, shape `(K, K)`."""
    return weight_matrix(
        "quadratic", Ordinal(range(len(criterion.categories)), category_values(criterion)), 0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleGroup:
    """Criteria that share a scale."""

    level: str  # measurement level; "nominal" for comparisons
    labels: tuple[str, ...]  # followed by the level if another scale has the same labels
    places: tuple[int, ...]  # positions of the criteria
    size: int  # number of categories, including abstention if it is a category
    weights: Array | None  # of kappa; None if abstentions are a category, which has no order
    start: int  # index at which the scale's tables begin in a rater's sums

    def metrics(self) -> tuple[MetricDisplay, ...]:
        """Return the metrics of this scale's tables."""
        return metrics_over(self.level)

    def compute(self, metric: MetricDisplay, tables: Array) -> Array:
        """Compute a metric of tables of this scale, `(…)`; NaN where it is undefined."""
        table = metric.table
        assert table is not None
        if self.weights is None and (table.weighted or metric.needs_order):
            return np.full(tables.shape[:-2], np.nan)
        return table.of(tables, self.weights)

    @property
    def stop(self) -> int:
        return self.start + len(self.places) * self.size**2


@dataclass(frozen=True, slots=True, kw_only=True)
class SumLayout:
    """Layout of a rater's sums: tables by scale, then moments of the numeric criteria."""

    groups: tuple[ScaleGroup, ...]
    numeric: tuple[int, ...]  # positions of the numeric criteria
    start: int  # index at which their sums begin

    @property
    def width(self) -> int:
        return self.start + _MOMENTS * len(self.numeric)

    def tables(self, sums: Array, group: ScaleGroup) -> Array:
        """Return the tables of a scale's criteria, `(…, n_criteria, K, K)`, from sums `(…, width)`."""
        part = sums[..., group.start : group.stop]
        return part.reshape(*sums.shape[:-1], len(group.places), group.size, group.size)

    def moments(self, sums: Array) -> Array:
        """Return the sums of the numeric criteria, `(…, n_criteria, 6)`."""
        return sums[..., self.start : self.width].reshape(*sums.shape[:-1], len(self.numeric), _MOMENTS)


def layout_of(cells: Cells, modes: Modes, *, comparisons: bool = True) -> SumLayout:
    """Return the layout for the criteria of the cells, with or without comparisons."""
    found: dict[tuple[object, ...], list[int]] = {}
    for place, one in enumerate(cells.criteria):
        if one.level in CATEGORICAL and one.categories:
            values = tuple(answer.value for answer in one.categories)
            found.setdefault((one.level, words_of(one), values), []).append(place)
        elif comparisons and one.level == "ranking" and cells.outcomes.get(place):
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
    return SumLayout(groups=tuple(groups), numeric=numeric, start=start)


def outcome_words(cells: Cells, place: int) -> tuple[str, ...]:
    """Return labels for the outcomes of a comparison, which list the rank of each candidate."""
    return tuple(", ".join(str(above + 1) for above in one) for one in cells.outcomes[place])


def words_of(criterion: MeasuredCriterion) -> tuple[str, ...]:
    return tuple(answer.label or str(answer.code) for answer in criterion.categories)


def numbers_of(truth: Column, rater: Column) -> tuple[Array, Array]:
    """Return two columns in their own units, or by value if no cell has both numbers (as in checklists)."""
    if np.isnan(truth.number + rater.number).all():
        return truth.value, rater.value
    return truth.number, rater.number


def numbers_on(rater: ComparedRater, place: int) -> tuple[Array, Array]:
    """Return the truth and the decisions on a criterion as ordinal values or as in `numbers_of`."""
    cells, span = rater.cells, rater.cells.spans[place]
    truth, column = cells.truth.take(span), rater.column.take(span)
    if cells.criteria[place].level == "ordinal":
        values = np.append(category_values(cells.criteria[place]), np.nan)
        return values[truth.code], values[column.code]
    return numbers_of(truth, column)


def item_sums(raters: Sequence[ComparedRater], layout: SumLayout, used: Array) -> csr_array:
    """Return each used item's contribution to the sums, shape `(n_used, n_raters * width)`."""
    frames = [_frame(raters, place) for place in layout.numeric]
    sums: csr_array = hstack([_sums_of(one, layout, frames) for one in raters], format="csr")[used]
    return sums


def dense_if_small(sums: Any) -> Array:
    """Return the sums as an array, or sparse if it would be too large; they only need products and sums."""
    dense: Array = sums.toarray() if sums.shape[0] * sums.shape[1] <= _DENSE_UP_TO else sums
    return dense


def _frame(raters: Sequence[ComparedRater], place: int) -> tuple[float, float]:
    """Return centre and range of all raters' numbers on a criterion, which avoid cancellation in the sums."""
    numbers = np.concatenate([side for one in raters for side in numbers_on(one, place)])
    numbers = numbers[~np.isnan(numbers)]
    if not len(numbers):
        return 0.0, 1.0
    middle = float(numbers.mean())
    return middle, float(np.abs(numbers - middle).max()) or 1.0


def _sums_of(rater: ComparedRater, layout: SumLayout, frames: Sequence[tuple[float, float]]) -> csr_array:
    cells, column = rater.cells, rater.column
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
        x, y = numbers_on(rater, place)
        both = ~np.isnan(x + y)
        u, v = (x[both] - middle) / reach, (y[both] - middle) / reach
        item = cells.item[cells.spans[place]][both]
        for moment, sums in enumerate((np.ones(len(u)), u, v, u * u, v * v, u * v)):
            rows.append(item)
            columns.append(np.full(len(u), layout.start + at * _MOMENTS + moment))
            added.append(sums)
    where = np.concatenate(rows), np.concatenate(columns)
    return csr_array((np.concatenate(added), where), shape=(cells.n_items, layout.width))


def groups_with(groups: Sequence[ScaleGroup], metric: MetricDisplay) -> list[ScaleGroup]:
    """Return the scales on which a metric of confusion tables can be computed."""
    return [one for one in groups if metric in one.metrics()]


def places_with(layout: SumLayout, metric: MetricDisplay) -> list[int]:
    """Return the positions of the criteria to which a metric applies, in the order of `by_criterion`."""
    if metric.moments:
        return list(layout.numeric)
    return [place for group in groups_with(layout.groups, metric) for place in group.places]


def by_criterion(
    layout: SumLayout, sums: Array, metrics: Sequence[MetricDisplay] | None = None
) -> dict[str, Array]:
    """Compute each metric on each criterion it applies to, shape `(…, n_criteria)`; NaN if undefined."""
    wanted = headlines() if metrics is None else metrics
    found: dict[str, list[Array]] = {one.key: [np.zeros((*sums.shape[:-1], 0))] for one in wanted}
    for group in layout.groups:
        tables = layout.tables(sums, group)
        for one in group.metrics():
            if one.key in found:
                found[one.key].append(group.compute(one, tables))
    for one in wanted if layout.numeric else ():
        if one.moments:
            found[one.key].append(one.moments(layout.moments(sums)))
    return {name: np.concatenate(parts, axis=-1) for name, parts in found.items()}


def macro(each: Mapping[str, Array], on: Mapping[str, Array]) -> Array:
    """Average each metric of `by_criterion` over the criteria in the mask `on`, shape `(…, n_figures)`."""
    means = [mean_of_defined(np.where(on[one.key], each[one.key], np.nan)) for one in headlines()]
    return np.stack(means, axis=-1)


def where_defined(each: Mapping[str, Array]) -> dict[str, Array]:
    return {name: ~np.isnan(found) for name, found in each.items()}


def micro(layout: SumLayout, sums: Array, on_kappa: Array) -> Array:
    """Compute each metric over all cells pooled, `(…, n_figures)`, with chance agreement within criteria.

    `on_kappa` is a mask of the criteria with a kappa. Metrics of one table use the only or the binary
    scale.
    """
    nothing = np.full(sums.shape[:-1], np.nan)
    found = {one.key: nothing for one in headlines()}
    hit, n = np.zeros(sums.shape[:-1]), np.zeros(sums.shape[:-1])
    beyond, room = np.zeros(sums.shape[:-1]), np.zeros(sums.shape[:-1])
    start = 0
    for group in layout.groups:
        tables = layout.tables(sums, group)
        hit, n = hit + shares.hits(tables).sum(-1), n + tables.sum((-1, -2, -3))
        if group.weights is not None:
            parts = kappa_parts(tables, group.weights)
            counted = on_kappa[..., start : start + len(group.places)]
            beyond, room = (
                so_far + add_up(np.where(counted, part, 0.0))
                for so_far, part in zip((beyond, room), parts, strict=True)
            )
        start += len(group.places)
    found["accuracy"] = shares.divide(hit, n)
    # If the chance agreement is perfect on every criterion, the room above it is only rounding error.
    found["kappa"] = shares.divide(beyond, np.where(room <= 1e-9 * np.maximum(n, 1.0), 0.0, room))
    groups = one_table(layout.groups)
    if groups:
        table = np.sum([layout.tables(sums, group).sum(-3) for group in groups], axis=0)
        for one in groups[0].metrics():
            if one.key not in ("accuracy", "kappa"):
                found[one.key] = groups[0].compute(one, table)
    return np.stack(list(found.values()), axis=-1)


def one_table(groups: Sequence[ScaleGroup]) -> Sequence[ScaleGroup]:
    """Return the scales whose cells form one table: the only scale or all binary scales."""
    return groups if len(groups) == 1 else [group for group in groups if group.level == "binary"]


CHANCES = ("mixes base rates", "chance agreement from other items", "chance agreement within criteria")
"""Source of the chance agreement in a scale's kappa if criteria have one, few or many pairs each."""


def chance_of(layout: SumLayout, group: ScaleGroup, total: Array) -> Array:
    """Return each rater's position in `CHANCES`, `(…)`, from the median number of pairs per criterion."""
    n = layout.tables(total, group).sum((-1, -2))
    medians = [
        float(np.median(one[one > 0])) if (one > 0).any() else 0.0 for one in n.reshape(-1, n.shape[-1])
    ]
    return np.searchsorted([2, FEW_OF_A_CLASS], medians, side="right").reshape(n.shape[:-1])


def of_scale(layout: SumLayout, group: ScaleGroup, sums: Array, chance: Array) -> Array:
    """Compute each metric over a scale's pooled cells, `(…, n_figures)`; see `chance_of` for `chance`."""
    tables = layout.tables(sums, group)
    table = tables.sum(-3)
    nothing = np.full(sums.shape[:-1], np.nan)
    found = {one.key: nothing for one in headlines()}
    found |= {one.key: group.compute(one, table) for one in group.metrics()}
    if group.weights is not None:
        others = _stratified(tables, group.weights, without_itself=True)
        within = _stratified(tables, group.weights, without_itself=False)
        found["kappa"] = np.choose(chance, [found["kappa"], others, within])
    return np.stack(list(found.values()), axis=-1)


def _stratified(tables: Array, weights: Array, *, without_itself: bool) -> Array:
    """Compute kappa over tables `(…, n_criteria, K, K)` with the chance agreement of each table.

    `without_itself` excludes comparisons of an answer with its own label, which make the chance agreement
    of few pairs too high. Tables with a single pair are then ignored.
    """
    n = tables.sum((-1, -2))
    beyond, room = kappa_parts(tables, weights)
    if without_itself:
        beyond, room = (
            np.where(n > 1, part * n / np.maximum(n - 1, 1), 0.0)
            for part in (beyond, room - (room - beyond) / np.maximum(n, 1))
        )
    beyond, room, n = add_up(beyond), add_up(room), n.sum(-1)
    # If the chance agreement is perfect, the room above it is only rounding error.
    return shares.divide(beyond, np.where(room <= 1e-9 * np.maximum(n, 1.0), 0.0, room))


def item_parts(
    layout: SumLayout, metric: MetricDisplay, sums: Array, *, pooled: Sequence[ScaleGroup] | None = None
) -> Array:
    """Return each item's weight in the mean on each criterion or pooled scale, `(n_items, n_criteria)`."""
    groups = layout.groups if pooled is None else pooled
    found = (
        [metric.table.parts(layout.tables(sums, group)) for group in groups_with(groups, metric)]
        if metric.table
        else []
    )
    if pooled is not None and found:
        found = [np.sum([one.sum(1, keepdims=True) for one in found], axis=0)]
    return np.concatenate([np.zeros((len(sums), 0)), *map(_parts_in, found)], axis=1)


def interval_weights(parts: Array) -> Array:
    """Return each item's weight in the mean over the columns of `item_parts`, shape `(n_items,)`."""
    return np.asarray(add_up(parts) / max(np.count_nonzero(parts.sum(0)), 1))


def share_counts(
    layout: SumLayout, sums: Array, groups: Sequence[ScaleGroup], share: TableMetric
) -> tuple[Array, Array]:
    """Return numerator and denominator of a proportion on each criterion of scales, `(…, n_criteria)`."""
    assert share.hits is not None
    none = np.zeros((*sums.shape[:-1], 0))
    tables = [layout.tables(sums, group) for group in groups]
    hits = np.concatenate([none, *map(share.hits, tables)], axis=-1)
    return hits, np.concatenate([none, *map(share.trials, tables)], axis=-1)


def _parts_in(held: Array) -> Array:
    """Return each item's weight in the mean of each criterion's proportions, `(n_items, n_criteria)`."""
    total = held.sum(0)
    parts = np.where(total > 0, held / np.where(total > 0, total, 1.0), 0.0)
    return np.asarray(add_up(parts) / np.maximum((total > 0).sum(-1), 1))
