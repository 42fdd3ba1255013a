"""Metrics over several criteria, from sums per item that can be resampled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, hstack

from autorubric.metrics.core import contingency as shares
from autorubric.metrics.core.read_votes import Cells, Modes
from autorubric.metrics.core.scales import Array
from autorubric.metrics.core.votes_table import MeasuredCriterion
from autorubric.metrics.figures.correlation import pearson_of
from autorubric.metrics.figures.kappa import kappa_of, kappa_parts
from autorubric.metrics.summaries.compute import FEW_OF_A_CLASS
from autorubric.metrics.summaries.criterion_figures import category_values, weights_on_values
from autorubric.metrics.summaries.raters import HEADLINES, Contestant

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
class SumLayout:
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


def layout_of(cells: Cells, modes: Modes) -> SumLayout:
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
    return SumLayout(groups=tuple(groups), numeric=numeric, start=start)


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


def item_sums(contestants: Sequence[Contestant], layout: SumLayout, used: Array) -> Array:
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


def _sums_of(contestant: Contestant, layout: SumLayout, frames: Sequence[tuple[float, float]]) -> csr_array:
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


_MET = 1
OF_ONE_CLASS: dict[str, Callable[[Array, int], Array]] = {
    "precision": shares.precision_of,
    "recall": shares.recall_of,
    "specificity": shares.specificity_of,
    "f1": shares.f1_of,
}
"""Metrics of MET on binary criteria."""

OF_ALL_CLASSES: dict[str, Callable[[Array], Array]] = {
    "macro_precision": shares.macro_precision_of,
    "macro_recall": shares.macro_recall_of,
    "macro_f1": shares.macro_f1_of,
}
"""Metrics over all options of nominal criteria or all outcomes of comparisons."""


def groups_with(groups: Sequence[ScaleGroup], figure: str) -> list[ScaleGroup]:
    """Return the scales on which a categorical metric can be computed."""
    level = "binary" if figure in OF_ONE_CLASS else "nominal" if figure in OF_ALL_CLASSES else None
    return [one for one in groups if level in (None, one.level)]


def places_with(layout: SumLayout, figure: str) -> list[int]:
    """Return the positions of the criteria to which a metric applies, in the order of `by_criterion`."""
    if figure == "pearson":
        return list(layout.numeric)
    return [place for group in groups_with(layout.groups, figure) for place in group.places]


def by_criterion(layout: SumLayout, sums: Array) -> dict[str, Array]:
    """Compute each metric on each criterion it applies to, shape `(…, n_criteria)`; NaN if undefined."""
    found: dict[str, list[Array]] = {name: [np.zeros((*sums.shape[:-1], 0))] for name in HEADLINES}
    for group in layout.groups:
        tables = layout.tables(sums, group)
        found["accuracy"].append(shares.accuracy_of(tables))
        found["balanced_accuracy"].append(shares.balanced_accuracy_of(tables))
        found["kappa"].append(
            np.full(tables.shape[:-2], np.nan)
            if group.weights is None
            else kappa_of(tables, group.weights if group.level == "ordinal" else None)
        )
        for name, values in _of_level(group, tables).items():
            found[name].append(values)
    if layout.numeric:
        found["pearson"].append(pearson_of(layout.moments(sums)))
    return {name: np.concatenate(parts, axis=-1) for name, parts in found.items()}


def _of_level(group: ScaleGroup, tables: Array) -> dict[str, Array]:
    """Compute the level-specific metrics of confusion tables of shape `(…, K, K)`."""
    if group.level == "binary":
        return {name: of(tables, _MET) for name, of in OF_ONE_CLASS.items()}
    if group.level == "nominal":
        return {name: of(tables) for name, of in OF_ALL_CLASSES.items()}
    return {}


def macro(each: Mapping[str, Array], on: Mapping[str, Array]) -> Array:
    """Average each metric of `by_criterion` over the criteria where it is defined, shape `(…, n_figures)`.

    Criteria on which a metric is undefined are excluded by `on`, because adding pseudo-pairs to them would
    make it defined.
    """
    means = [mean_of_defined(np.where(on[name], each[name], np.nan)) for name in HEADLINES]
    return np.stack(means, axis=-1)


def defined(each: Mapping[str, Array]) -> dict[str, Array]:
    """Return whether each metric of `by_criterion` is defined."""
    return {name: ~np.isnan(found) for name, found in each.items()}


def mean_of_defined(values: Array, axis: int = -1) -> Array:
    """Return the mean of the defined values; NaN if all are undefined."""
    there = ~np.isnan(values)
    return shares.divide(np.where(there, values, 0.0).sum(axis), there.sum(axis))


def micro(layout: SumLayout, sums: Array, on_kappa: Array) -> Array:
    """Compute each metric over all cells pooled, `(…, n_figures)`, with chance agreement within criteria.

    `on_kappa` is a mask of the criteria that have a kappa, in the order of `by_criterion`. Metrics of one
    table use the only scale or, if there are several, the binary scale; NaN if there is none.
    """
    nothing = np.full(sums.shape[:-1], np.nan)
    found = dict.fromkeys(HEADLINES, nothing)
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
                so_far + np.where(counted, part, 0.0).sum(-1)
                for so_far, part in zip((beyond, room), parts, strict=True)
            )
        start += len(group.places)
    found["accuracy"] = shares.divide(hit, n)
    # If the chance agreement is perfect on every criterion, the room above it is only rounding error.
    found["kappa"] = shares.divide(beyond, np.where(room <= 1e-9 * np.maximum(n, 1.0), 0.0, room))
    groups = one_table(layout)
    if groups:
        table = np.sum([layout.tables(sums, group).sum(-3) for group in groups], axis=0)
        found["balanced_accuracy"] = shares.balanced_accuracy_of(table)
        found |= _of_level(groups[0], table)
    return np.stack([found[name] for name in HEADLINES], axis=-1)


def one_table(layout: SumLayout) -> Sequence[ScaleGroup]:
    """Return the scales whose cells form one table: the only scale or all binary scales."""
    if len(layout.groups) == 1:
        return layout.groups
    return [group for group in layout.groups if group.level == "binary"]


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
    found = dict.fromkeys(HEADLINES, np.full(sums.shape[:-1], np.nan))
    found["accuracy"] = shares.accuracy_of(table)
    found["balanced_accuracy"] = shares.balanced_accuracy_of(table)
    if group.weights is not None:
        mixed = kappa_of(table, group.weights if group.level == "ordinal" else None)
        others = _stratified(tables, group.weights, without_itself=True)
        within = _stratified(tables, group.weights, without_itself=False)
        found["kappa"] = np.choose(chance, [mixed, others, within])
    found |= _of_level(group, table)
    return np.stack([found[name] for name in HEADLINES], axis=-1)


def _stratified(tables: Array, weights: Array, *, without_itself: bool) -> Array:
    """Compute kappa over tables `(…, n_criteria, K, K)` with the chance agreement of each table.

    With few pairs, a table's chance agreement is too high, because each answer is also compared with its own
    label. With `without_itself`, these comparisons are removed from `po - pe` and `1 - pe`. Tables with a
    single pair are then ignored.
    """
    n = tables.sum((-1, -2))
    beyond, room = kappa_parts(tables, weights)
    if without_itself:
        beyond, room = (
            np.where(n > 1, part * n / np.maximum(n - 1, 1), 0.0)
            for part in (beyond, room - (room - beyond) / np.maximum(n, 1))
        )
    beyond, room, n = beyond.sum(-1), room.sum(-1), n.sum(-1)
    # If the chance agreement is perfect, the room above it is only rounding error.
    return shares.divide(beyond, np.where(room <= 1e-9 * np.maximum(n, 1.0), 0.0, room))


def item_parts(
    layout: SumLayout, figure: str, sums: Array, *, pooled: Sequence[ScaleGroup] | None = None
) -> Array:
    """Return each item's weight in each criterion's mean of proportions, `(n_items, n_criteria)`.

    Columns are in the order of `by_criterion`. `pooled` lists the scales whose cells form one table, which
    then replaces all criteria.
    """
    groups = layout.groups if pooled is None else pooled
    found = [_denominators(layout.tables(sums, group), figure) for group in groups_with(groups, figure)]
    if pooled is not None and found:
        found = [np.sum([one.sum(1, keepdims=True) for one in found], axis=0)]
    return np.concatenate([np.zeros((len(sums), 0)), *map(_parts_in, found)], axis=1)


def weights_of(parts: Array) -> Array:
    """Return each item's weight in the mean over the columns of `item_parts`, shape `(n_items,)`."""
    return np.asarray(parts.sum(1) / max(np.count_nonzero(parts.sum(0)), 1))


def _denominators(tables: Array, figure: str) -> Array:
    """Return each item's contribution to the denominators per criterion, `(n_items, n_criteria, m)`."""
    match figure:
        case "balanced_accuracy" | "macro_recall":
            return np.asarray(tables.sum(-1))
        case "macro_precision":
            return np.asarray(tables.sum(-2))
        case "macro_f1":
            return np.asarray(tables.sum(-1) + tables.sum(-2))
        case "precision":
            return np.asarray(tables[..., :, _MET].sum(-1)[..., None])
        case "recall":
            return np.asarray(tables[..., _MET, :].sum(-1)[..., None])
        case "specificity":
            return np.asarray((tables.sum((-1, -2)) - tables[..., _MET, :].sum(-1))[..., None])
        case "f1":
            return np.asarray((tables.sum((-1, -2)) - tables[..., 0, 0])[..., None])
        case _:
            return np.asarray(tables.sum((-1, -2))[..., None])


def hits_and_pairs(tables: Array, figure: str) -> tuple[Array, Array]:
    """Return the numerator and the denominator of a proportion in each table, shape `(…)`."""
    if figure not in OF_ONE_CLASS:
        return shares.hits(tables), np.asarray(tables.sum((-1, -2)))
    cells = shares.one_against_rest(tables, _MET)
    return (cells.tp, cells.tp + cells.fn) if figure == "recall" else (cells.tn, cells.tn + cells.fp)


def _parts_in(held: Array) -> Array:
    """Return each item's weight in the mean of each criterion's proportions, `(n_items, n_criteria)`."""
    total = held.sum(0)
    parts = np.where(total > 0, held / np.where(total > 0, total, 1.0), 0.0)
    return np.asarray(parts.sum(-1) / np.maximum((total > 0).sum(-1), 1))


def share_masks(layout: SumLayout, groups: Sequence[ScaleGroup]) -> dict[str, tuple[Array, Array]]:
    """Return numerator and denominator masks over the sums for the pooled proportions of some scales."""
    hit, pair, tp, judged, true, tn, false = (np.zeros(layout.width) for _ in range(7))
    for group in groups:
        tables = np.zeros((len(group.places), group.size, group.size))
        part = slice(group.start, group.stop)
        pair[part] = 1.0
        hit[part] = (tables + np.eye(group.size)).reshape(-1)
        if group.level == "binary":
            for mask, at in ((tp, (_MET, _MET)), (judged, (slice(None), _MET)), (true, (_MET, slice(None)))):
                chosen = tables.copy()
                chosen[:, at[0], at[1]] = 1.0
                mask[part] = chosen.reshape(-1)
            false[part] = 1.0 - true[part]
            tn[part] = 1.0 - np.maximum(true[part], judged[part])
    return {
        "accuracy": (hit, pair),
        "precision": (tp, judged),
        "recall": (tp, true),
        "specificity": (tn, false),
    }
