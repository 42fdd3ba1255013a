"""Pairwise accuracy and position consistency, with an interval over items or over groups of items."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Unpack, get_args

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics import _shares as shares
from autorubric.metrics._contingency import read_pair
from autorubric.metrics._estimate import Estimate
from autorubric.metrics._estimation import Analytic, Figure, estimate, proportion, share_figure
from autorubric.metrics._intervals import Ends, logit_t_ends
from autorubric.metrics._options import CodedArguments, CodedOptions, IntervalArguments, IntervalOptions
from autorubric.metrics._preferences._pair_counts import (
    PairCounts,
    ScoredItems,
    Ties,
    count_pairs,
    scored_items,
)
from autorubric.metrics._resampling import Array, Compute, Units
from autorubric.metrics._scales import Codes, Scale


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Items that are compared with each other, and their pairs.

    Attributes:
        items: Positions of the items.
        counts: Pair counts of the items.
    """

    items: Codes
    counts: PairCounts


def right_share(
    items: ScoredItems, parts: list[Part], name: str, note: str, options: IntervalOptions
) -> Estimate:
    """Return the proportion of right pairs or, with groups, its mean over the groups that have a pair."""
    right, compared = np.zeros(items.n), np.zeros(items.n)
    for part in parts:
        right[part.items] = part.counts.right_of_each()
        compared[part.items] = part.counts.compared_of_each()
    if items.group is not None:
        return _mean_of_groups(items, (right, compared), name, note, options)
    figure = Figure(
        name=name,
        compute=_share_of(parts),
        reason=lambda weights: "too_few_units" if items.n < 2 else "no_variance",
        bounds=(0.0, 1.0),
        auto="analytic",
        auto_clustered="analytic",
        analytic=_over_items(right, compared),
        on_table=False,
    )
    members = np.arange(items.n) if items.cluster is None else items.cluster
    ones = np.ones(int(members.max(initial=-1)) + 1, dtype=np.int64)
    units = Units(counts=ones, n=items.n, gather=members, clustered=items.cluster is not None)
    note = f"{note}, {int(compared.sum()) // 2} pairs"
    return estimate(figure, units, options, n_missing=items.n_missing, note=note)


def _share_of(parts: list[Part]) -> Compute:
    """Return a function from item weights to the proportion of compared pairs that are right."""

    def compute(weights: Array) -> Array:
        right = sum(part.counts.right(weights[..., part.items]) for part in parts)
        compared = sum(part.counts.compared(weights[..., part.items]) for part in parts)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(compared == 0, np.nan, np.asarray(right) / compared)

    return compute


def _over_items(right: Array, compared: Array) -> Analytic:
    """Return a logit-t interval from the linear part of the U-statistic [1].

    The effect of an item on the proportion is 2 (right - value · compared) / Σ compared.

    References:
        [1] W. Hoeffding (1948), A class of statistics with asymptotically normal distribution, Annals of
            Mathematical Statistics 19(3), 293-325.
    """

    def ends(figure: Figure, units: Units, value: float, confidence_level: float) -> Ends:
        size = units.size
        if size < 2 or units.gather is None:
            return Ends(None, None, None)
        effects = np.bincount(units.gather, weights=2 * (right - value * compared) / compared.sum())
        se = math.sqrt(float((effects**2).sum()) * size / (size - 1))
        return Ends(*logit_t_ends(value, se, size, confidence_level), se)

    return ends


def _mean_of_groups(
    items: ScoredItems, of_each: tuple[Array, Array], name: str, note: str, options: IntervalOptions
) -> Estimate:
    right, compared = (np.bincount(items.groups, weights=one) for one in of_each)
    there = np.flatnonzero(compared)
    sums = np.stack([right[there] / compared[there], np.ones(len(there))], axis=1)
    if items.cluster is not None:
        owner = np.zeros(len(right), dtype=np.int64)
        owner[items.groups] = items.cluster
        clusters, where = np.unique(owner[there], return_inverse=True)
        grouped = np.zeros((len(clusters), 2))
        np.add.at(grouped, where.reshape(-1), sums)
        sums = grouped
    used = int(np.isin(items.groups, there).sum())
    units = Units(counts=np.ones(len(sums), dtype=np.int64), n=used, sums=sums, clustered=True)
    figure = Figure(
        name=name,
        compute=_mean,
        reason=lambda sums: "no_pairs",
        bounds=(0.0, 1.0),
        auto="analytic",
        auto_clustered="analytic",
        analytic=proportion,
        on_table=False,
    )
    without = len(right) - len(there)
    note += f", mean of {len(there)} groups" + (f", excluding {without} without pairs" if without else "")
    return estimate(figure, units, options, n_missing=items.n_missing, note=note)


def _mean(sums: Array) -> Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(sums[..., 1] == 0, np.nan, sums[..., 0] / sums[..., 1])


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
    if ties not in get_args(Ties):
        raise ArgumentError(f"ties must be one of {list(get_args(Ties))}; got {ties!r}")
    if isinstance(epsilon, bool) or not 0 <= epsilon < math.inf:
        raise ArgumentError(f"epsilon must be a finite, non-negative number; got {epsilon!r}")
    options = IntervalOptions(**interval)
    items = scored_items(gold, pred, groups, options.cluster)
    counts = count_pairs(items.gold, items.pred, items.groups, ties=ties, epsilon=epsilon)
    note = "ties credited" if ties == "credit" else "pairs tied in gold skipped"
    if epsilon:
        note += f", epsilon {epsilon:g}"
    part = Part(items=np.arange(items.n), counts=counts)
    return right_share(items, [part], "pairwise accuracy", note, options)


def position_consistency(
    first: Iterable[Any],
    swapped: Iterable[Any],
    *,
    scale: Scale | None = None,
    **interval: Unpack[CodedArguments],
) -> Estimate:
    """Compute the proportion of comparisons with the same outcome in both orders of the candidates.

    Both arguments use the same names for the candidates, regardless of their order. A judge that always picks
    the first candidate scores 0; a judge that picks one of two at random scores about 1/2. The interval is
    Wilson's. The result is undefined if no pair is complete (`no_pairs`).

    Args:
        first: Outcomes in the declared order. Pairs in which either outcome is None or NaN are dropped.
        swapped: Outcomes in the swapped order, with the same candidate names.
        scale: Scale that declares the outcomes; None uses the outcomes that occur.
        **interval: See `CodedArguments`.
    """
    options = CodedOptions(**interval)
    pair = read_pair(first, swapped, None, scale, options)
    figure = share_figure(
        "position consistency", pair.size, shares.accuracy_of, lambda cells: cells.sum((-1, -2)), "no_pairs"
    )
    return estimate(figure, pair.units, options, n_missing=pair.n_missing)
