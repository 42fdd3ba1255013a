"""Panels of subsets of the judges: chosen on one part of the items, evaluated on the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from autorubric.metrics._audit._decided import Decided
from autorubric.metrics._audit._panel_results import PanelChoice, Search
from autorubric.metrics._audit._resampled import (
    by_item_and_criterion,
    mean_of_defined,
    not_a_point,
    ratio,
    resampled,
)
from autorubric.metrics._estimate import Estimate, Reason
from autorubric.metrics._options import Resampling
from autorubric.metrics._resampling import Array

EXHAUSTIVE_UP_TO = 10
"""Maximum number of judges for which all panels are tried; with more, panels grow one judge at a time."""


def panel_credit(decided: Decided, members: Sequence[int]) -> Array:
    """Return a panel's correctness on each criterion of each item, in [0, 1], shape `(n_cells,)`.

    For categories, it is 1 if the true one has the most votes, 1/t if it is among t tied for the lead (the
    expected result of breaking the tie at random), and 0 otherwise. For values, it is 1 - |mean - truth|. It
    is NaN if there is no label or one of the judges did not answer.
    """
    chosen = list(members)
    credit = np.full(len(decided.item), np.nan)
    complete = decided.labelled & decided.answered[:, chosen].all(axis=1)
    if not chosen:
        return credit
    graded = decided.graded
    which = complete & graded
    credit[which] = 1 - np.abs(decided.value[which][:, chosen].mean(1) - decided.truth_value[which])
    which = complete & ~graded
    credit[which] = _plurality(decided.code[which][:, chosen], decided.truth_code[which])
    return credit


def _plurality(codes: Array, truth: Array) -> Array:
    if not len(codes):
        return np.zeros(0)
    size = int(max(codes.max(), truth.max())) + 1
    counts = np.stack([(codes == category).sum(1) for category in range(size)], axis=1)
    leading = counts == counts.max(1, keepdims=True)
    return np.where(leading[np.arange(len(truth)), truth], 1.0 / leading.sum(1), 0.0)


def panels_by_size(n_judges: int) -> Iterator[list[tuple[int, ...]]]:
    """Yield all panels of one judge, then of two, and so on up to all judges."""
    for size in range(1, n_judges + 1):
        yield list(combinations(range(n_judges), size))


FIGURE = "correctness of the panel (ties broken at random), mean over criteria"


def credit_sums(decided: Decided, credits: Sequence[Array]) -> Array:
    """Return panels' credits and counts by item and criterion, shape `(n_items, (m + 1) C)`.

    A credit is a panel's correctness in [0, 1] on one criterion of one item; only common ones are used.
    """
    shape = (len(decided.item_ids), len(decided.names))
    common = ~np.isnan(np.stack(credits)).any(axis=0)
    columns = [*credits, np.ones(len(decided.item))]
    return np.concatenate(
        [
            by_item_and_criterion(np.where(common, column, np.nan), decided.item, decided.criterion, shape)
            for column in columns
        ],
        axis=1,
    )


def macro_credits(totals: Array, n_panels: int) -> Array:
    """Return each panel's mean over criteria from the sums of `credit_sums`, shape `(r, n_panels)`."""
    parts = totals.reshape(len(totals), n_panels + 1, -1)
    return mean_of_defined(ratio(parts[:, :-1, :], np.broadcast_to(parts[:, -1:, :], parts[:, :-1, :].shape)))


def split_items(decided: Decided, complete: Array, resampling: Resampling) -> tuple[Array, Array]:
    """Split the items, ordered by id, at random into those to choose on and those to report on."""
    there = np.unique(decided.item[complete])
    ordered = there[np.argsort([decided.item_ids[at] for at in there])] if len(there) else there
    shuffled = resampling.generator().permutation(ordered)
    half = len(shuffled) // 2
    return np.sort(shuffled[:half]), np.sort(shuffled[half:])


def choose_single(
    decided: Decided, parts: tuple[Array, Array], resampling: Resampling, reason: Reason
) -> PanelChoice:
    """Choose the best single judge and compare it with the panel."""
    fitting = on_items(decided, parts[0])
    found = None
    if len(parts[0]):
        singles = [(at,) for at in range(len(decided.judges))]
        found = max(singles, key=lambda one: _figure(fitting, one))
    return _reported(decided, found, parts, resampling, "exhaustive", reason)


def choose_smallest(
    decided: Decided, epsilon: float, parts: tuple[Array, Array], resampling: Resampling, reason: Reason
) -> PanelChoice:
    """Choose the smallest panel within `epsilon` of all judges."""
    k = len(decided.judges)
    search = _exhaustive if k <= EXHAUSTIVE_UP_TO else _greedy
    found = search(on_items(decided, parts[0]), epsilon) if len(parts[0]) and k else None
    name: Search = "exhaustive" if k <= EXHAUSTIVE_UP_TO else "greedy"
    return _reported(decided, found, parts, resampling, name, reason)


def on_items(decided: Decided, items: Array) -> Decided:
    """Return the decisions on these items that have a label and every judge's answer."""
    kept = np.isin(decided.item, items) & decided.labelled & decided.answered.all(axis=1)
    return Decided(
        criteria=decided.criteria,
        names=decided.names,
        by_value=decided.by_value,
        left_out=decided.left_out,
        item_ids=decided.item_ids,
        item=decided.item[kept],
        criterion=decided.criterion[kept],
        judges=decided.judges,
        code=decided.code[kept],
        value=decided.value[kept],
        truth_code=decided.truth_code[kept],
        truth_value=decided.truth_value[kept],
    )


def _figure(decided: Decided, members: Sequence[int]) -> float:
    size = len(decided.names)
    credit = np.bincount(decided.criterion, weights=panel_credit(decided, members), minlength=size)
    counts = np.bincount(decided.criterion, minlength=size).astype(float)
    return float(mean_of_defined(ratio(credit, counts)))


def _exhaustive(decided: Decided, epsilon: float) -> tuple[int, ...] | None:
    """Return the best panel of the smallest size that is within `epsilon`."""
    k = len(decided.judges)
    wanted = _figure(decided, range(k)) - epsilon
    for panels in panels_by_size(k):
        figures = [_figure(decided, panel) for panel in panels]
        best = int(np.argmax(figures))
        if figures[best] >= wanted - 1e-12:
            return panels[best]
    return None


def _greedy(decided: Decided, epsilon: float) -> tuple[int, ...] | None:
    """Add the judge that helps most, one at a time, until the panel is within `epsilon`."""
    k = len(decided.judges)
    wanted = _figure(decided, range(k)) - epsilon
    chosen: tuple[int, ...] = ()
    while len(chosen) < k:
        left = [at for at in range(k) if at not in chosen]
        figures = [_figure(decided, (*chosen, at)) for at in left]
        chosen = (*chosen, left[int(np.argmax(figures))])
        if max(figures) >= wanted - 1e-12:
            break
    return tuple(sorted(chosen))


def _reported(
    decided: Decided,
    found: tuple[int, ...] | None,
    parts: tuple[Array, Array],
    resampling: Resampling,
    search: Search,
    reason: Reason,
) -> PanelChoice:
    chosen, panel, difference = (Estimate.undefined(reason, method=FIGURE),) * 3
    if found is not None and len(parts[1]):
        there = on_items(decided, parts[1])
        credits = [panel_credit(there, found), panel_credit(there, range(len(there.judges)))]
        sums = credit_sums(there, credits)[parts[1]]

        def compute(totals: Array) -> Array:
            each = macro_credits(totals, 2)
            return np.column_stack([each, each[:, 1] - each[:, 0]])

        chosen, panel, difference = resampled(
            sums, compute, resampling, FIGURE, n=len(there.item), reason=reason
        )
        level = resampling.confidence_level
        chosen, panel = (not_a_point(one, len(sums), level) for one in (chosen, panel))
    return PanelChoice(
        judges=() if found is None else tuple(decided.judges[at] for at in found),
        chosen=chosen,
        panel=panel,
        difference=difference,
        n_items_chosen_on=len(parts[0]),
        n_items_reported=len(parts[1]),
        search=search,
    )
