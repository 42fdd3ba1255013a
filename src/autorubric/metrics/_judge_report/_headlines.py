"""Figures of several criteria together, at sums of items `(…, width)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from autorubric.metrics import _shares as shares
from autorubric.metrics._chance import kappa_of, kappa_parts
from autorubric.metrics._judge_report._item_sums import Layout, ScaleGroup
from autorubric.metrics._judge_report._rater_report import HEADLINES
from autorubric.metrics._moments import pearson_of
from autorubric.metrics._resampling import Array

_MET = 1
_OF_ONE_CLASS: dict[str, Callable[[Array, int], Array]] = {
    "precision": shares.precision_of,
    "recall": shares.recall_of,
    "f1": shares.f1_of,
}


def places_with(layout: Layout, figure: str) -> list[int]:
    """Positions of the criteria that could have a figure, as `by_criterion` orders them."""
    if figure == "pearson":
        return list(layout.numeric)
    groups = [one for one in layout.groups if figure not in _OF_ONE_CLASS or one.level == "binary"]
    return [place for group in groups for place in group.places]


def by_criterion(layout: Layout, sums: Array) -> dict[str, Array]:
    """Each figure on each criterion that could have it, shape `(…, n_criteria)`, NaN where undefined."""
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
        if group.level == "binary":
            for name, of in _OF_ONE_CLASS.items():
                found[name].append(of(tables, _MET))
    if layout.numeric:
        found["pearson"].append(pearson_of(layout.moments(sums)))
    return {name: np.concatenate(parts, axis=-1) for name, parts in found.items()}


def macro(layout: Layout, sums: Array) -> Array:
    """Mean of each figure over the criteria where it is defined, shape `(…, n_figures)`."""
    each = by_criterion(layout, sums)
    return np.stack([mean_of_defined(each[name]) for name in HEADLINES], axis=-1)


def mean_of_defined(values: Array, axis: int = -1) -> Array:
    """Mean over what is defined, NaN where nothing is."""
    there = ~np.isnan(values)
    return shares.divide(np.where(there, values, 0.0).sum(axis), there.sum(axis))


def micro(layout: Layout, sums: Array) -> Array:
    """Each figure of all cells pooled, shape `(…, n_figures)`; the chance of kappa within each criterion.

    Figures of one table take the only scale or, of several, the binary one; NaN where there is none.
    """
    nothing = np.full(sums.shape[:-1], np.nan)
    found = dict.fromkeys(HEADLINES, nothing)
    hit, n = np.zeros(sums.shape[:-1]), np.zeros(sums.shape[:-1])
    beyond, room = np.zeros(sums.shape[:-1]), np.zeros(sums.shape[:-1])
    for group in layout.groups:
        tables = layout.tables(sums, group)
        hit, n = hit + shares.hits(tables).sum(-1), n + tables.sum((-1, -2, -3))
        if group.weights is not None:
            parts = kappa_parts(tables, group.weights)
            beyond, room = beyond + parts[0].sum(-1), room + parts[1].sum(-1)
    found["accuracy"] = shares.divide(hit, n)
    # Where chance agrees as much as anything can in every criterion, rounding is all that is left.
    found["kappa"] = shares.divide(beyond, np.where(room <= 1e-9 * np.maximum(n, 1.0), 0.0, room))
    groups = one_table(layout)
    if groups:
        table = np.sum([layout.tables(sums, group).sum(-3) for group in groups], axis=0)
        found["balanced_accuracy"] = shares.balanced_accuracy_of(table)
        if groups[0].level == "binary":
            found |= {name: of(table, _MET) for name, of in _OF_ONE_CLASS.items()}
    return np.stack([found[name] for name in HEADLINES], axis=-1)


def one_table(layout: Layout) -> Sequence[ScaleGroup]:
    """The scales whose cells make one table: the only one, else the binary ones, if any."""
    if len(layout.groups) == 1:
        return layout.groups
    return [group for group in layout.groups if group.level == "binary"]


def of_scale(layout: Layout, group: ScaleGroup, sums: Array) -> Array:
    """Each figure of the cells of a scale pooled, `(…, n_figures)`; chance is that of all these cells."""
    table = layout.tables(sums, group).sum(-3)
    found = dict.fromkeys(HEADLINES, np.full(sums.shape[:-1], np.nan))
    found["accuracy"] = shares.accuracy_of(table)
    found["balanced_accuracy"] = shares.balanced_accuracy_of(table)
    if group.weights is not None:
        found["kappa"] = kappa_of(table, group.weights if group.level == "ordinal" else None)
    if group.level == "binary":
        found |= {name: of(table, _MET) for name, of in _OF_ONE_CLASS.items()}
    return np.stack([found[name] for name in HEADLINES], axis=-1)


def share_masks(layout: Layout) -> dict[str, tuple[Array, Array]]:
    """Numerator and denominator, as weights of the sums, of the pooled figures that are shares."""
    hit, pair, tp, judged, true = (np.zeros(layout.width) for _ in range(5))
    for group in layout.groups:
        tables = np.zeros((len(group.places), group.size, group.size))
        part = slice(group.start, group.stop)
        pair[part] = 1.0
        hit[part] = (tables + np.eye(group.size)).reshape(-1)
        if group.level == "binary":
            for mask, at in ((tp, (_MET, _MET)), (judged, (slice(None), _MET)), (true, (_MET, slice(None)))):
                chosen = tables.copy()
                chosen[:, at[0], at[1]] = 1.0
                mask[part] = chosen.reshape(-1)
    return {"accuracy": (hit, pair), "precision": (tp, judged), "recall": (tp, true)}
