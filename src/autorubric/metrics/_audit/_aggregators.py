"""Comparison of Dawid–Skene with majority voting, which shows whether modelling error rates helps."""

from __future__ import annotations

from typing import Any

import numpy as np

from autorubric.metrics._audit._decided import Decided
from autorubric.metrics._audit._panel_choice import credit_sums, macro_credits
from autorubric.metrics._audit._panel_results import AggregatorComparison
from autorubric.metrics._audit._panels import panel_credit
from autorubric.metrics._audit._resampled import not_a_point, resampled
from autorubric.metrics._estimate import Estimate, Reason
from autorubric.metrics._options import Resampling
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Nominal
from autorubric.metrics._votes_to_truth import dawid_skene

_METHOD = "share of right answers, mean over categorical criteria; model fitted once"


def compare_aggregators(decided: Decided, resampling: Resampling, reason: Reason) -> AggregatorComparison:
    """Compare the accuracy of Dawid–Skene and of the majority where every judge answered."""
    k = len(decided.judges)
    inferred = np.full(len(decided.item), np.nan)
    majority = np.where(decided.graded, np.nan, panel_credit(decided, range(k)))
    for place in np.unique(decided.criterion[~decided.graded]) if k > 1 else ():
        cells = np.flatnonzero(decided.criterion == place)
        labels = _inferred(decided.code[cells])
        right = np.array(labels, dtype=float) == decided.truth_code[cells]
        inferred[cells] = np.where(np.isnan(majority[cells]), np.nan, right)
    there = ~np.isnan(inferred)
    if not there.any():
        nothing = Estimate.undefined("not_comparable" if decided.graded.all() and len(there) else reason,
                                     method=_METHOD)  # fmt: skip
        return AggregatorComparison(dawid_skene=nothing, majority=nothing, difference=nothing)
    sums = credit_sums(decided, [inferred, majority])[np.unique(decided.item[there])]

    def compute(totals: Array) -> Array:
        each = macro_credits(totals, 2)
        return np.column_stack([each, each[:, 0] - each[:, 1]])

    ours, theirs, difference = resampled(
        sums, compute, resampling, _METHOD, n=int(np.count_nonzero(there)), reason=reason
    )
    ours, theirs = (not_a_point(one, len(sums), resampling.confidence_level) for one in (ours, theirs))
    return AggregatorComparison(dawid_skene=ours, majority=theirs, difference=difference)


def _inferred(codes: Array) -> list[Any]:
    """Return the inferred label of each unit; NaN if no judge answered or labels are tied."""
    size = int(codes.max(initial=0)) + 1
    ratings = [[None if code < 0 else code for code in row] for row in codes.tolist()]
    found = dawid_skene(ratings, scale=Nominal(range(max(size, 2))))
    return [float("nan") if label is None else label for label in found.labels]
