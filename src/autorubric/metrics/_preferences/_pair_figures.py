"""Proportion of right pairs, with an interval over items or over groups of items."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from autorubric.metrics._estimate import Estimate
from autorubric.metrics._estimation import Analytic, Figure, estimate, proportion
from autorubric.metrics._intervals import Ends, logit_t_ends
from autorubric.metrics._options import IntervalOptions
from autorubric.metrics._preferences._pair_counts import PairCounts
from autorubric.metrics._preferences._scored_items import ScoredItems
from autorubric.metrics._resampling import Array, Compute, Units
from autorubric.metrics._scales import Codes


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
    note += f", mean of {len(there)} groups" + (f", {without} without pairs excluded" if without else "")
    return estimate(figure, units, options, n_missing=items.n_missing, note=note)


def _mean(sums: Array) -> Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(sums[..., 1] == 0, np.nan, sums[..., 0] / sums[..., 1])
