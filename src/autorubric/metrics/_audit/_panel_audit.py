"""Audit of a panel: whether its judges make the same errors, and how much each judge adds.

References:
    [1] L. Kish (1965), Survey sampling, ch. 5: the effective size n / (1 + (n - 1) ρ).
    [2] R. T. Clemen, R. L. Winkler (1985), Limits for the precision and value of information from dependent
        sources, Operations Research 33(2), 427-442: the same for correlated judges, k / (1 + (k - 1) ρ).
    [3] A. P. Dawid, A. M. Skene (1979), Maximum likelihood estimation of observer error-rates using the EM
        algorithm, Applied Statistics 28(1), 20-28.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics._audit._decided import Decided, decided_of
from autorubric.metrics._audit._error_correlation import error_correlations
from autorubric.metrics._audit._panel_choice import (
    FIGURE,
    choose_single,
    choose_smallest,
    credit_sums,
    macro_credits,
    panel_credit,
    split_items,
)
from autorubric.metrics._audit._panel_results import AggregatorComparison, JudgeInPanel, PanelAudit
from autorubric.metrics._audit._resampled import not_a_point, resampled
from autorubric.metrics._estimate import Estimate, Reason
from autorubric.metrics._label_table import table_of
from autorubric.metrics._options import Resampling
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Nominal
from autorubric.metrics._votes_to_truth._dawid_skene import dawid_skene

_MODELLING = "accuracy, mean over categorical criteria; Dawid–Skene model fitted once"


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
                                     method=_MODELLING)  # fmt: skip
        return AggregatorComparison(dawid_skene=nothing, majority=nothing, difference=nothing)
    sums = credit_sums(decided, [inferred, majority])[np.unique(decided.item[there])]

    def compute(totals: Array) -> Array:
        each = macro_credits(totals, 2)
        return np.column_stack([each, each[:, 0] - each[:, 1]])

    ours, theirs, difference = resampled(
        sums, compute, resampling, _MODELLING, n=int(np.count_nonzero(there)), reason=reason
    )
    ours, theirs = (not_a_point(one, len(sums), resampling.confidence_level) for one in (ours, theirs))
    return AggregatorComparison(dawid_skene=ours, majority=theirs, difference=difference)


def _inferred(codes: Array) -> list[Any]:
    """Return the inferred label of each unit; NaN if no judge answered or labels are tied."""
    size = int(codes.max(initial=0)) + 1
    ratings = [[None if code < 0 else code for code in row] for row in codes.tolist()]
    found = dawid_skene(ratings, scale=Nominal(range(max(size, 2))))
    return [float("nan") if label is None else label for label in found.labels]


def panel_audit(
    result: Any,
    dataset: Any = None,
    *,
    epsilon: float = 0.02,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    rng: int | np.random.Generator = 0,
) -> PanelAudit:
    """Audit a panel: its error correlations, its effective number of judges, and smaller panels.

    Two judges' errors are correlated within each criterion. To combine criteria, the sums of squares and
    products around each criterion's own means are pooled, so that differences in difficulty between criteria
    do not make judges look correlated. An error is 0 or 1 for categories, and judge minus truth for values.
    The effective number of judges is k / (1 + (k - 1) r̄) (Clemen and Winkler 1985), where r̄ is the mean
    over the pairs whose correlation is defined (see `n_pairs_defined`). Both r̄ and this number have t
    intervals based on the bootstrap standard error of Fisher's z = ½ log((1 + (k - 1) r) / (1 - r)); in
    simulations with 30 items, their coverage is .91 to .97 (percentile intervals: .84 to .92).

    A smaller panel's decision is recomputed from its judges' decisions, as the most frequent answer or the
    mean value. A tie counts as the average result of breaking it at random, so panels with an even number of
    judges are neither favoured nor penalised; a run that breaks ties differently has different results for
    them. Panels are compared on the cells (one criterion of one item) that every judge answered. The best
    single judge and the smallest panel within `epsilon` are chosen on a random half of the items and
    evaluated on the other half. With more than 10 judges, the smallest panel is built by adding one judge at
    a time. Dawid–Skene is fitted once per categorical criterion and not refitted in the resamples.

    Results are undefined if there are no labels (`no_truth`), only one judge (`one_judge`), or no cell that
    all judges answered (`no_pairs`). Errors that do not vary have no correlation (`no_variance`). If r̄ <= -1
    / (k - 1), the judges' mean error is always 0, which no number of independent judges can match
    (`errors_cancel`). A difference that is the same in every resample has no interval (`no_variance`).

    Args:
        result: An `EvalResult`, or a long table of labels.
        dataset: Dataset with the labels; the run's own dataset by default.
        epsilon: Largest loss allowed for the smallest panel, compared with all judges; at least 0.
        confidence_level: Confidence level of the intervals, computed by resampling items.
        n_resamples: Number of resamples.
        rng: Seed or NumPy generator for the resampling and the split of the items.

    Raises:
        ArgumentError: If `epsilon` is negative, or the table cannot be read.
    """
    if not 0.0 <= epsilon < float("inf"):
        raise ArgumentError(f"epsilon must be a number of at least 0, such as 0.02; got {epsilon!r}")
    given = Resampling(confidence_level=confidence_level, n_resamples=n_resamples, rng=rng)
    resampling, decided = given.fixed(), decided_of(table_of(result, dataset))
    usable = decided.labelled & decided.answered.any(axis=1)
    complete = decided.labelled & decided.answered.all(axis=1) & bool(decided.judges)
    labelled = int(np.count_nonzero(decided.labelled))
    reason = _reason(decided)
    together = error_correlations(decided, resampling)
    panel, per_judge = _leave_one_out(decided, resampling, reason)
    parts = split_items(decided, complete, resampling)
    choosing: Reason = "too_few_units" if complete.any() and reason != "one_judge" else reason
    return PanelAudit(
        judges=decided.judges,
        n_items=len(np.unique(decided.item[usable])),
        n_cells=int(np.count_nonzero(usable)),
        n_complete=int(np.count_nonzero(complete)),
        coverage=int(np.count_nonzero(complete)) / labelled if labelled else None,
        left_out=decided.left_out,
        epsilon=float(epsilon),
        panel=panel,
        per_judge=per_judge,
        correlations=together.pairs,
        mean_correlation=together.mean,
        n_pairs_defined=together.n_defined,
        effective_judges=together.effective,
        best_single=choose_single(decided, parts, resampling, choosing),
        smallest_panel=choose_smallest(decided, epsilon, parts, resampling, choosing),
        aggregators=compare_aggregators(decided, resampling, reason),
    )


def _reason(decided: Decided) -> Reason:
    if not decided.labelled.any():
        return "no_truth"
    return "one_judge" if len(decided.judges) == 1 else "no_pairs"


def _leave_one_out(
    decided: Decided, resampling: Resampling, reason: Reason
) -> tuple[Estimate, dict[str, JudgeInPanel]]:
    """Estimate how correct the panel is and, for each judge, the judge, the others, and its gain."""
    k = len(decided.judges)
    everyone = list(range(k))
    panels = [everyone, *([at] for at in everyone)]
    if k > 1:
        panels += [[other for other in everyone if other != at] for at in everyone]
    credits = [panel_credit(decided, panel) for panel in panels]
    sums = credit_sums(decided, credits)
    n = int(np.count_nonzero(~np.isnan(credits[0])))

    def compute(totals: Array) -> Array:
        each = macro_credits(totals, len(panels))
        return np.column_stack([each, each[:, :1] - each[:, 1 + k :]])

    occupied = np.unique(decided.item[~np.isnan(credits[0])])
    found = resampled(sums[occupied], compute, resampling, FIGURE, n=n, reason=reason)
    level = resampling.confidence_level
    found[: len(panels)] = [not_a_point(one, len(occupied), level) for one in found[: len(panels)]]
    nobody = Estimate.undefined("one_judge", n=n, method=FIGURE)
    judges = {
        name: JudgeInPanel(
            alone=found[1 + at],
            without=found[1 + k + at] if k > 1 else nobody,
            gain=found[1 + 2 * k + at] if k > 1 else nobody,
        )
        for at, name in enumerate(decided.judges)
    }
    return found[0], judges
