"""Correctness of panels, correlation of judges' errors, choice of smaller panels, and Dawid–Skene labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np

from autorubric.metrics.audit.item_resampling import estimate_over_items, widen_at_bound, with_t_interval
from autorubric.metrics.core.contingency import divide, mean_of_defined
from autorubric.metrics.core.estimate import RELATIVE_ZERO, Estimate, Reason
from autorubric.metrics.core.intervals import t_quantile
from autorubric.metrics.core.read_votes import Cells, Column, Modes, cells_of
from autorubric.metrics.core.resampling import Resampling
from autorubric.metrics.core.scales import Array, Codes
from autorubric.metrics.core.votes_table import MeasuredCriterion, VotesTable, distinct_names, rank_by_id
from autorubric.metrics.figures.dawid_skene import dawid_skene

_PARTS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledVotes:
    """Judges' decisions and labels by cell, where a cell is one criterion of one item."""

    names: tuple[str, ...]  # unique name of each criterion
    by_value: Array  # whether answers to each criterion are averaged as values, shape `(n_criteria,)`
    left_out: tuple[str, ...]  # criteria whose answers are numbers without a range, or text
    n_items: int
    item: Codes  # of each cell, in the order of ids, shape `(n_cells,)`
    criterion: Codes  # of each cell
    judges: tuple[str, ...]
    code: Codes  # category of each judge's answer, shape `(n_cells, n_judges)`; -1 if missing
    value: Array  # each judge's answer in [0, 1]; NaN if missing
    truth_code: Codes  # category of the label, shape `(n_cells,)`; -1 if missing
    truth_value: Array  # the label in [0, 1]; NaN if missing

    @property
    def graded(self) -> Array:
        """Whether the answers in each cell are compared as values, not as categories, shape `(n_cells,)`."""
        return np.asarray(self.by_value[self.criterion])

    @property
    def answered(self) -> Array:
        """Whether each judge answered each criterion of each item, shape `(n_cells, n_judges)`."""
        return np.where(self.graded[:, None], ~np.isnan(self.value), self.code >= 0)

    @property
    def labelled(self) -> Array:
        """Whether each cell (one criterion of one item) has a label, shape `(n_cells,)`."""
        return np.where(self.graded, ~np.isnan(self.truth_value), self.truth_code >= 0)

    @property
    def errors(self) -> Array:
        """Judge minus truth for values, 1 for wrong categories; `(n_cells, n_judges)`, NaN if missing."""
        apart = np.where(
            self.graded[:, None],
            self.value - self.truth_value[:, None],
            (self.code != self.truth_code[:, None]).astype(float),
        )
        return np.where(self.answered & self.labelled[:, None], apart, np.nan)

    def sum_common(self, columns: Sequence[Array]) -> Array:
        """Sum columns of cells that all columns have, by item and criterion, `(n_items, n_columns * C)`."""
        shape = (self.n_items, len(self.names))
        common = ~np.isnan(np.stack(columns)).any(axis=0)
        flat, size = self.item * shape[1] + self.criterion, shape[0] * shape[1]
        sums = [np.bincount(flat, weights=np.where(common, one, 0.0), minlength=size) for one in columns]
        return np.concatenate([one.reshape(shape) for one in sums], axis=1)


def read_labelled_votes(table: VotesTable) -> LabelledVotes:
    """Return the decisions in a votes table, without abstentions and failures."""
    cells = cells_of(table, Modes())
    criterion = cells.criterion
    names = distinct_names(table.criteria)
    columns = [cells.raters["judge", judge] for judge in table.judges]
    by_value = np.array([_is_graded(one) for one in cells.criteria], dtype=bool)
    usable = np.array([not _is_unusable(cells, at, columns) for at in range(len(names))], dtype=bool)
    kept = usable[criterion] if len(criterion) else np.zeros(0, dtype=bool)
    return LabelledVotes(
        names=names,
        by_value=by_value,
        left_out=tuple(name for name, fits in zip(names, usable, strict=True) if not fits),
        n_items=table.n_items,
        item=rank_by_id(table.item_ids)[cells.item[kept]],
        criterion=criterion[kept],
        judges=table.judges,
        code=_stack([one.code for one in columns], kept, np.int64),
        value=_stack([one.value for one in columns], kept, float),
        truth_code=cells.truth.code[kept],
        truth_value=cells.truth.value[kept],
    )


def _stack(columns: Sequence[Array], kept: Array, kind: type) -> Array:
    empty: Array = np.zeros((int(np.count_nonzero(kept)), 0), dtype=kind)
    return np.column_stack([empty, *(column[kept] for column in columns)]).astype(kind, copy=False)


def _is_graded(criterion: MeasuredCriterion) -> bool:
    if criterion.level == "interval":
        return True
    return criterion.level == "ordinal" and all(one.value is not None for one in criterion.categories)


def _is_unusable(cells: Cells, at: int, columns: Sequence[Column]) -> bool:
    """Return whether no rater has a category or value on the criterion that can be compared with a label."""
    span = cells.spans[at]
    everyone = [cells.truth, *columns]
    if _is_graded(cells.criteria[at]):
        return all(bool(np.isnan(one.value[span]).all()) for one in everyone)
    return all(bool((one.code[span] < 0).all()) for one in everyone)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorCorrelation:
    """The correlation of two judges' errors, which is phi if errors are 0 or 1."""

    first: str
    second: str
    pooled: Estimate  # Σ_c S_ab / √(Σ_c S_aa Σ_c S_bb), with sums S around each criterion's means
    per_criterion: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelErrors:
    pairs: tuple[ErrorCorrelation, ...]
    mean: Estimate  # over the pairs whose correlation is defined
    effective: Estimate  # effective number of judges


_METHOD = "correlation of errors within criteria"


def error_correlations(votes: LabelledVotes, resampling: Resampling) -> PanelErrors:
    """Estimate the error correlations of all pairs, their mean, and the effective number of judges."""
    errors, k = votes.errors, len(votes.judges)
    pairs = list(combinations(range(k), 2))
    if not pairs or not len(errors):
        nothing = Estimate.undefined("one_judge" if k < 2 else "no_truth", method=_METHOD)
        named = tuple(_name_pair(votes, pair, nothing, {}) for pair in pairs)
        return PanelErrors(pairs=named, mean=nothing, effective=nothing)
    columns = [(errors[:, a], errors[:, b]) for a, b in pairs]
    ones = np.ones(len(errors))
    # n, Σa, Σb, Σab, Σa² and Σb² of common cells, by item and criterion.
    sums = np.concatenate([votes.sum_common((ones, a, b, a * b, a * a, b * b)) for a, b in columns], axis=1)
    n_criteria = len(votes.names)

    def compute(totals: Array) -> Array:
        parts = totals.reshape(len(totals), len(pairs), _PARTS, n_criteria)
        pooled, each, _ = _correlations(parts)
        flat = each.reshape(len(totals), -1)
        return np.column_stack([mean_of_defined(pooled), pooled, flat])

    counts = sums.sum(0).reshape(len(pairs), _PARTS, n_criteria)[:, 0, :].astype(int)
    used = int(counts.sum(1).max(initial=0))
    sizes = [used, *counts.sum(1).tolist(), *counts.reshape(-1).tolist()]
    reason: Reason = "no_variance" if votes.labelled.any() else "no_truth"
    mean, *rest = estimate_over_items(sums, compute, resampling, _METHOD, n=sizes, reason=reason)
    pooled, each = rest[: len(pairs)], rest[len(pairs) :]
    by_pair = [each[at : at + n_criteria] for at in range(0, len(each), n_criteria)]
    named = tuple(
        _name_pair(votes, pair, one, dict(zip(votes.names, parts, strict=True)))
        for pair, one, parts in zip(pairs, pooled, by_pair, strict=True)
    )
    done = sum(one.value is not None for one in pooled)
    over = f"mean over pairs of judges, {done} of {len(pairs)} pairs defined; {mean.method}"
    occupied = np.count_nonzero(sums.any(axis=1))
    chance = (
        np.nansum(_correlations(sums.sum(0).reshape(1, len(pairs), _PARTS, n_criteria))[2])
        / max(done, 1) ** 2
    )
    mean = replace(mean, method=over, se=mean.se and max(mean.se, math.sqrt(chance)))
    mean = _with_z_interval(mean, k, int(occupied), resampling.confidence_level)
    return PanelErrors(pairs=named, mean=mean, effective=_effective_judges(mean, k))


def _with_z_interval(mean: Estimate, k: int, n_items: int, confidence_level: float) -> Estimate:
    """Return the mean with a t interval on Fisher's scale z = ½ log((1 + (k - 1) r) / (1 - r)).

    Percentile intervals of such a skewed statistic cover .84 to .92 at 30 items; this one .91 to .97. Its
    standard error is at least that of independent errors, because rare errors that never coincide would
    coincide in no resample either.
    """
    r, se = mean.value, mean.se
    if r is None or not se or n_items < 2 or not 1e-9 < 1 + (k - 1) * r < k * (1 - 1e-9):
        return mean
    room = (1 + (k - 1) * r) / (1 - r)
    # Resamples of n items have the spread of n - 1 items.
    se *= math.sqrt(n_items / (n_items - 1))
    half = t_quantile(confidence_level, n_items - 1) * se * k / (2 * (1 + (k - 1) * r) * (1 - r))
    low, high = (
        (odds - 1) / (odds + k - 1) for odds in (room * math.exp(-2 * half), room * math.exp(2 * half))
    )
    method = mean.method.replace("percentile bootstrap", "t with bootstrap standard error on Fisher's z")
    return replace(mean, low=low, high=high, se=se, method=method)


def _effective_judges(mean: Estimate, k: int) -> Estimate:
    """Apply k / (1 + (k - 1) r) to the mean and its bounds, which swaps the bounds."""
    method = f"k / (1 + (k - 1) r), where r is the {mean.method}"
    if mean.value is None:
        return Estimate.undefined(mean.reason or "no_variance", n=mean.n, method=method)

    def shrink(r: float | None) -> float | None:
        return None if r is None or 1 + (k - 1) * r <= RELATIVE_ZERO else k / (1 + (k - 1) * r)

    value = shrink(mean.value)
    if value is None:
        return Estimate.undefined("errors_cancel", n=mean.n, method=method)
    low, high = shrink(mean.high), shrink(mean.low)
    if low is None or high is None:
        reason = mean.reason if mean.low is None else "errors_cancel"
        return Estimate(value, n=mean.n, method=method, reason=reason)
    se = None if mean.se is None else mean.se * (k - 1) * value**2 / k
    return Estimate(value, low, high, se, mean.n, method)


def _name_pair(
    votes: LabelledVotes, pair: tuple[int, int], pooled: Estimate, each: Mapping[str, Estimate]
) -> ErrorCorrelation:
    first, second = (votes.judges[at] for at in pair)
    kept = {name: one for name, one in each.items() if name not in votes.left_out}
    return ErrorCorrelation(first=first, second=second, pooled=pooled, per_criterion=kept)


def _correlations(parts: Array) -> tuple[Array, Array, Array]:
    """Return the pooled and per-criterion correlations, shapes `(r, pairs)` and `(r, pairs, n_criteria)`.

    The third array is the variance of the pooled ones over permutations of a judge's errors.
    """
    n, a, b, ab, aa, bb = (parts[:, :, at, :] for at in range(_PARTS))
    safe = np.where(n > 0, n, 1.0)
    product, first, second = ab - a * b / safe, aa - a * a / safe, bb - b * b / safe
    first = np.where(first <= RELATIVE_ZERO * np.maximum(aa, 1.0), 0.0, first)
    second = np.where(second <= RELATIVE_ZERO * np.maximum(bb, 1.0), 0.0, second)
    each = divide(product, np.sqrt(first * second))
    room = first.sum(-1) * second.sum(-1)
    pooled = divide(product.sum(-1), np.sqrt(room))
    variance = divide((first * second / np.maximum(n - 1, 1.0)).sum(-1), room)
    return np.clip(pooled, -1.0, 1.0), np.clip(each, -1.0, 1.0), variance


Search: TypeAlias = Literal["exhaustive", "greedy"]

EXHAUSTIVE_UP_TO = 10
"""Maximum number of judges for which all panels are tried; with more, panels grow one judge at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelChoice:
    """Judges chosen on one part of the items and evaluated on the other."""

    judges: tuple[str, ...]  # empty if no judge could be chosen
    chosen: Estimate  # correctness of these judges on the items that were not used to choose them
    panel: Estimate  # correctness of the panel of all judges on the same items
    difference: Estimate  # `panel` minus `chosen`, paired by item
    n_items_chosen_on: int
    n_items_reported: int
    search: Search  # `exhaustive` tries all panels, `greedy` adds one judge at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregatorComparison:
    """A comparison of Dawid–Skene labels, inferred without the truth, with majority labels, on categories."""

    dawid_skene: Estimate = field(metadata={"title": "Dawid–Skene"})
    majority: Estimate = field(metadata={"title": "majority"})
    difference: Estimate = field(metadata={"title": "difference"})


def panel_credit(votes: LabelledVotes, members: Sequence[int]) -> Array:
    """Return a panel's correctness by cell, shape `(n_cells,)`; NaN if a label or an answer is missing.

    For values it is 1 - |mean - truth|. For categories it is 1/t if the true one is among t tied for the
    lead, which is the expected result of breaking the tie at random.
    """
    chosen = list(members)
    credit = np.full(len(votes.item), np.nan)
    complete = votes.labelled & votes.answered[:, chosen].all(axis=1)
    if not chosen:
        return credit
    graded = votes.graded
    which = complete & graded
    credit[which] = 1 - np.abs(votes.value[which][:, chosen].mean(1) - votes.truth_value[which])
    which = complete & ~graded
    credit[which] = _plurality(votes.code[which][:, chosen], votes.truth_code[which])
    return credit


def _plurality(codes: Array, truth: Array) -> Array:
    if not len(codes):
        return np.zeros(0)
    size = int(max(codes.max(), truth.max())) + 1
    counts = np.stack([(codes == category).sum(1) for category in range(size)], axis=1)
    leading = counts == counts.max(1, keepdims=True)
    return np.where(leading[np.arange(len(truth)), truth], 1.0 / leading.sum(1), 0.0)


CORRECTNESS = "correctness of the panel (ties broken at random), mean over criteria"


def estimate_credits(
    votes: LabelledVotes,
    credits: Sequence[Array],
    differences: Sequence[tuple[int, int]],
    resampling: Resampling,
    method: str,
    reason: Reason,
) -> list[Estimate]:
    """Estimate the mean of each credit over criteria, on the cells that all have, then their differences."""
    common = ~np.isnan(np.stack(credits)).any(axis=0)
    items = np.unique(votes.item[common])
    size = len(credits)

    def compute(totals: Array) -> Array:
        parts = totals.reshape(len(totals), size + 1, -1)
        counts = np.broadcast_to(parts[:, -1:, :], parts[:, :-1, :].shape)
        each = mean_of_defined(divide(parts[:, :-1, :], counts))
        return np.column_stack([each, *(each[:, a] - each[:, b] for a, b in differences)])

    sums = votes.sum_common([*credits, np.ones(len(votes.item))])[items]
    n = [int(np.count_nonzero(common))] * (size + len(differences))
    found = estimate_over_items(sums, compute, resampling, method, n=n, reason=reason)
    level = resampling.confidence_level
    return [
        *(widen_at_bound(one, len(items), level) for one in found[:size]),
        *(with_t_interval(one, len(items), level, 1.0) for one in found[size:]),
    ]


def split_items(votes: LabelledVotes, complete: Array, resampling: Resampling) -> tuple[Array, Array]:
    """Split the items, ordered by id, at random into those to choose on and those to report on."""
    there = np.unique(votes.item[complete])
    shuffled = resampling.generator().permutation(there)
    half = len(shuffled) // 2
    return np.sort(shuffled[:half]), np.sort(shuffled[half:])


def choose_single(
    votes: LabelledVotes, parts: tuple[Array, Array], resampling: Resampling, reason: Reason
) -> PanelChoice:
    """Choose the best single judge and compare it with the panel."""
    fitting = _on_items(votes, parts[0])
    singles = [(at,) for at in range(len(votes.judges))]
    found = max(singles, key=lambda one: _mean_credit(fitting, one)) if len(parts[0]) else None
    return _evaluate_choice(votes, found, parts, resampling, "exhaustive", reason)


def choose_smallest(
    votes: LabelledVotes, epsilon: float, parts: tuple[Array, Array], resampling: Resampling, reason: Reason
) -> PanelChoice:
    """Choose the smallest panel within `epsilon` of all judges."""
    search: Search = "exhaustive" if len(votes.judges) <= EXHAUSTIVE_UP_TO else "greedy"
    found = _search_panel(_on_items(votes, parts[0]), epsilon, search) if len(parts[0]) else None
    return _evaluate_choice(votes, found, parts, resampling, search, reason)


def _on_items(votes: LabelledVotes, items: Array) -> LabelledVotes:
    """Return the decisions on these items that have a label and every judge's answer."""
    kept = np.isin(votes.item, items) & votes.labelled & votes.answered.all(axis=1)
    by_cell = ("item", "criterion", "code", "value", "truth_code", "truth_value")
    return replace(votes, **{name: getattr(votes, name)[kept] for name in by_cell})


def _mean_credit(votes: LabelledVotes, members: Sequence[int]) -> float:
    size = len(votes.names)
    credit = np.bincount(votes.criterion, weights=panel_credit(votes, members), minlength=size)
    counts = np.bincount(votes.criterion, minlength=size).astype(float)
    return float(mean_of_defined(divide(credit, counts)))


def _search_panel(votes: LabelledVotes, epsilon: float, search: Search) -> tuple[int, ...]:
    """Return the best panel of the smallest size within `epsilon`, or add the judge that helps most."""
    k = len(votes.judges)
    wanted = _mean_credit(votes, range(k)) - epsilon
    chosen: tuple[int, ...] = ()
    for size in range(1, k + 1):
        grown = ((*chosen, at) for at in range(k) if at not in chosen)
        panels = list(combinations(range(k), size) if search == "exhaustive" else grown)
        figures = [_mean_credit(votes, panel) for panel in panels]
        chosen = panels[int(np.argmax(figures))]
        if max(figures) >= wanted - 1e-12:
            break
    return tuple(sorted(chosen))


def _evaluate_choice(
    votes: LabelledVotes,
    found: tuple[int, ...] | None,
    parts: tuple[Array, Array],
    resampling: Resampling,
    search: Search,
    reason: Reason,
) -> PanelChoice:
    chosen, panel, difference = (Estimate.undefined(reason, method=CORRECTNESS),) * 3
    if found is not None and len(parts[1]):
        there = _on_items(votes, parts[1])
        credits = [panel_credit(there, found), panel_credit(there, range(len(there.judges)))]
        chosen, panel, difference = estimate_credits(
            there, credits, [(1, 0)], resampling, CORRECTNESS, reason
        )
    return PanelChoice(
        judges=() if found is None else tuple(votes.judges[at] for at in found),
        chosen=chosen,
        panel=panel,
        difference=difference,
        n_items_chosen_on=len(parts[0]),
        n_items_reported=len(parts[1]),
        search=search,
    )


_AGGREGATION = "accuracy, mean over categorical criteria; Dawid–Skene model fitted once"


def compare_aggregators(votes: LabelledVotes, resampling: Resampling, reason: Reason) -> AggregatorComparison:
    """Compare the accuracy of Dawid–Skene and of the majority where every judge answered."""
    k = len(votes.judges)
    inferred = np.full(len(votes.item), np.nan)
    majority = np.where(votes.graded, np.nan, panel_credit(votes, range(k)))
    for place in np.unique(votes.criterion[~votes.graded]) if k > 1 else ():
        cells = np.flatnonzero(votes.criterion == place)
        labels = dawid_skene(
            votes.code[cells], labels=max(int(votes.code[cells].max(initial=0)) + 1, 2)
        ).labels
        # Units without an answer or with tied labels have no label.
        right = np.array(labels, dtype=float) == votes.truth_code[cells]
        inferred[cells] = np.where(np.isnan(majority[cells]), np.nan, right)
    there = ~np.isnan(inferred)
    if not there.any():
        why: Reason = "not_comparable" if votes.graded.all() and len(there) else reason
        nothing = Estimate.undefined(why, method=_AGGREGATION)
        return AggregatorComparison(dawid_skene=nothing, majority=nothing, difference=nothing)
    ours, theirs, difference = estimate_credits(
        votes, [inferred, majority], [(0, 1)], resampling, _AGGREGATION, reason
    )
    return AggregatorComparison(dawid_skene=ours, majority=theirs, difference=difference)
