"""Pairwise accuracy: the proportion of item pairs that a judge orders as people do."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Unpack, get_args

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics._estimate import Estimate
from autorubric.metrics._options import IntervalArguments, IntervalOptions
from autorubric.metrics._preferences._pair_counts import Ties, count_pairs
from autorubric.metrics._preferences._pair_figures import Part, right_share
from autorubric.metrics._preferences._scored_items import scored_items


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

    C pairs have the same strict order in both scores; T_both pairs are tied in both. Scores in `pred` are
    tied if they differ, as floats, by at most `epsilon`; scores in `gold` are tied if they are equal. No
    tolerance is added: if numbers differ only by rounding error, round them or set `epsilon`.

    With `ties="skip"`, pairs tied in gold are excluded, and a tie in `pred` counts as wrong. The result is
    C / (C + D + T_pred), the accuracy of [2], with D pairs in opposite order and T_pred tied in `pred`.

    With `groups`, only pairs within a group count ("group by prompt"), and the result is the unweighted mean
    of the accuracies within the groups [1]. Groups without a pair are excluded, and `method` reports how
    many. (With pooled pairs, a group with twice the items would weigh four times as much.)

    If all pairs are tied in both scores, the result is 1.0. It is undefined with no items or no group with a
    pair (`no_pairs`), one item (`too_few_units`), or `ties="skip"` and constant gold (`no_variance`).

    The interval is logit-t on the linear part of the U-statistic: over items, over clusters with C - 1
    degrees of freedom or, with groups, over the groups. In a bootstrap, an item is never paired with a copy
    of itself.

    Args:
        gold: Numbers of shape `(n,)`. Items with None or NaN in either score are dropped.
        pred: Numbers of shape `(n,)`.
        ties: Whether pairs tied in gold are credited or skipped.
        epsilon: Tie threshold for differences in `pred`, at least 0.
        groups: One group id per item.
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
