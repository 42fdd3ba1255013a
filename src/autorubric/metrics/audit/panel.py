"""Audit of a panel: whether its judges make the same errors, and how much each judge adds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.audit.labelled_votes import Decided, decided_of
from autorubric.metrics.audit.panel_results import (
    AggregatorComparison,
    JudgeInPanel,
    PanelAudit,
    PanelChoice,
    Search,
    error_correlations,
)
from autorubric.metrics.audit.resampled import (
    by_item_and_criterion,
    mean_of_defined,
    not_a_point,
    ratio,
    resampled,
)
from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.label_table import table_of
from autorubric.metrics.core.resampling import Resampling
from autorubric.metrics.core.scales import Array, Nominal
from autorubric.metrics.figures.dawid_skene import dawid_skene

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
