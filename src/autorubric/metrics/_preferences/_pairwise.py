"""Pairwise accuracy: how many pairs of items a judge orders as people do."""

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
    """Compute the share of item pairs that `pred` orders as `gold` does: (C + T_both) / all pairs [1].

    C pairs have the same strict order on both sides; T_both are tied on both. Scores in `pred` are tied if
    they differ, as floats, by at most `epsilon`; scores in `gold` are tied if they are equal. No tolerance is
    added: if numbers differ only by rounding error, round them or set `epsilon`.

    With `ties="skip"`, pairs tied in gold are left out: C / (C + D + T_pred) over the pairs that gold orders,
    the accuracy of [2]; a tie in `pred` then counts as wrong.

    With `groups`, only pairs within a group count ("group by prompt"), and the result is the unweighted mean
    over groups of the accuracy within each [1]. Groups without a pair are left out, and `method` reports how
    many. (With pooled pairs, a group with twice the items would weigh four times as much.)

    If everything is tied on both sides, the result is 1.0. Undefined with no items or no group with a pair
    (`no_pairs`), with one item (`too_few_units`), or with `ties="skip"` and constant gold (`no_variance`).

    The interval is logit-t on the linear part of the U-statistic: over items, over clusters with C - 1
    degrees of freedom, or with groups over the groups. In a bootstrap an item makes no pair with a copy of
    itself.

    Args:
        gold: Numbers, shape `(n,)`; None and NaN are missing, and drop the item.
        pred: Numbers, shape `(n,)`.
        ties: Whether pairs tied in gold are credited or skipped.
        epsilon: Tie threshold for differences in `pred`, at least 0.
        groups: A group id per item.
        **interval: See `IntervalArguments`; a cluster contains whole groups.

    Raises:
        ArgumentError: If lengths differ, a score is not a number, or an option is not allowed.

    References:
        [1] D. Deutsch, G. Foster, M. Freitag (2023), Ties matter: meta-evaluating modern metrics with
            pairwise accuracy and tie calibration, EMNLP, 12914-12929.
        [2] T. Kocmi et al. (2021), To ship or not to ship: an extensive evaluation of automatic metrics for
            machine translation, WMT, 478-494.
    """
    if ties not in get_args(Ties):
        raise ArgumentError(f"ties={ties!r}; give one of {list(get_args(Ties))}")
    if isinstance(epsilon, bool) or not 0 <= epsilon < math.inf:
        raise ArgumentError(f"epsilon={epsilon!r}; give a difference of scores from 0")
    options = IntervalOptions(**interval)
    items = scored_items(gold, pred, groups, options.cluster)
    counts = count_pairs(items.gold, items.pred, items.groups, ties=ties, epsilon=epsilon)
    note = "ties credited" if ties == "credit" else "pairs that gold ties are skipped"
    if epsilon:
        note += f", epsilon {epsilon:g}"
    part = Part(items=np.arange(items.n), counts=counts)
    return right_share(items, [part], "pairwise accuracy", note, options)
