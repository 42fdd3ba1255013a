"""Pairwise accuracy: the proportion of pairs of items that two columns of scores order alike."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from autorubric.metrics.core.contingency import divide, renumber
from autorubric.metrics.core.estimate import Estimate
from autorubric.metrics.core.estimation import Analytic, Figure, estimate, proportion, ratio_figure
from autorubric.metrics.core.intervals import logit_t_ends
from autorubric.metrics.core.metric import ORDERED, metric
from autorubric.metrics.core.resampling import (
    NO_ENDS,
    Ends,
    IntervalArguments,
    IntervalOptions,
    Units,
    check_choice,
    check_number,
    row_units,
    standard_error,
    weighted_units,
)
from autorubric.metrics.core.scales import Array
from autorubric.metrics.figures.ranks import ScoredItems, Ties, count_pairs, scored_items

_NAME = "pairwise accuracy"


def _over_items(right: Array, compared: Array) -> Analytic:
    """Return a logit-t interval from the linear part of the U-statistic (Hoeffding 1948)."""

    def ends(figure: Figure, units: Units, value: float, confidence_level: float) -> Ends:
        size = units.size
        if size < 2 or units.gather is None:
            return NO_ENDS
        effects = np.bincount(units.gather, weights=2 * (right - value * compared) / compared.sum())
        se = standard_error(effects, size)
        return Ends(*logit_t_ends(value, se, size, confidence_level), se)

    return ends


def _mean_of_groups(
    items: ScoredItems, right_of_each: Array, compared_of_each: Array, note: str, options: IntervalOptions
) -> Estimate:
    right, compared = (np.bincount(items.groups, weights=each) for each in (right_of_each, compared_of_each))
    there = np.flatnonzero(compared)
    sums = np.stack([right[there] / compared[there], np.ones(len(there))], axis=1)
    owner = np.arange(len(right))
    if items.cluster is not None:
        owner[items.groups] = items.cluster
    used = int(np.isin(items.groups, there).sum())
    units = replace(row_units(sums, renumber(owner[there])), n=used)
    figure = ratio_figure(_NAME, proportion)
    without = len(right) - len(there)
    note += f", mean of {len(there)} groups" + (f", excluding {without} without pairs" if without else "")
    return estimate(figure, units, options, n_missing=items.n_missing, note=note)


@metric(inputs="numbers", levels=ORDERED, reference="Deutsch, Foster and Freitag 2023")
def pairwise_accuracy(
    gold: Iterable[Any],
    pred: Iterable[Any],
    *,
    ties: Ties = "credit",
    epsilon: float = 0.0,
    groups: Iterable[Any] | None = None,
    **interval: Unpack[IntervalArguments],
) -> Estimate:
    """Compute the proportion of item pairs that `pred` orders as `gold` does: (C + T_both) / all pairs [1].

    C counts pairs with the same strict order in both scores, and T_both counts pairs tied in both. Scores in
    `pred` are tied if they differ, as floats, by at most `epsilon`; scores in `gold` are tied if they are
    equal. No tolerance is added: if scores differ only by rounding error, round them or set `epsilon`.

    With `ties="skip"`, pairs tied in `gold` are excluded, and a tie in `pred` counts as wrong. The result is
    C / (C + D + T_pred), the accuracy of [2], with D pairs in opposite order and T_pred pairs tied in `pred`.

    With `groups`, only pairs within a group count ("group by prompt"), and the result is the unweighted mean
    of the accuracies within groups [1]. Groups that have no pairs are excluded, and `method` reports how
    many. (With pooled pairs, a group with twice the items would weigh four times as much.)

    If all pairs are tied in both scores, the result is 1.0. It is undefined with no items or no group with a
    pair (`no_pairs`), one item (`too_few_units`), or `ties="skip"` and constant `gold` (`no_variance`).

    The interval is a logit-t interval on the linear part of the U-statistic: over items, over clusters
    (degrees of freedom: number of clusters minus 1) or, with groups, over groups. In a bootstrap, an item is
    never paired with a copy of itself.

    Args:
        gold: Reference scores, shape `(n,)`. Items with None or NaN in either score are dropped.
        pred: Scores to evaluate, shape `(n,)`.
        ties: Whether pairs tied in `gold` are credited (`"credit"`) or skipped (`"skip"`).
        epsilon: Largest difference in `pred` that counts as a tie, at least 0.
        groups: One group id per item; None compares all pairs.
        **interval: See `IntervalArguments`; all items of a group must be in the same cluster.

    Raises:
        ArgumentError: If lengths differ, a score is not a number, or an option is invalid.

    References:
        [1] D. Deutsch, G. Foster, M. Freitag (2023), Ties matter: meta-evaluating modern metrics with
            pairwise accuracy and tie calibration, EMNLP, 12914-12929.
        [2] T. Kocmi et al. (2021), To ship or not to ship: an extensive evaluation of automatic metrics for
            machine translation, WMT, 478-494.
    """
    check_choice("ties", ties, Ties)
    check_number("epsilon", epsilon, "[0, inf)")
    options = IntervalOptions(**interval)
    items = scored_items(gold, pred, groups, options.cluster)
    counts = count_pairs(items.gold, items.pred, items.groups, ties=ties, epsilon=epsilon)
    right, compared = counts.right_of_each(), counts.count_compared_of_each()
    note = "ties credited" if ties == "credit" else "pairs tied in gold skipped"
    if epsilon:
        note += f", epsilon {epsilon:g}"
    if items.group is not None:
        return _mean_of_groups(items, right, compared, note, options)
    figure = Figure(
        name=_NAME,
        compute=lambda weights: divide(counts.right(weights), counts.count_compared(weights)),
        reason=lambda weights: "too_few_units" if items.n < 2 else "no_variance",
        bounds=(0.0, 1.0),
        auto="analytic",
        analytic=_over_items(right, compared),
        on_table=False,
    )
    units = weighted_units(items.n, items.cluster)
    note = f"{note}, {int(compared.sum()) // 2} pairs"
    return estimate(figure, units, options, n_missing=items.n_missing, note=note)
