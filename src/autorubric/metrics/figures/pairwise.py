"""Pairwise accuracy: hard, soft, or with the threshold for ties that maximizes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Unpack

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.core.contingency import divide, drop_incomplete, number_rows, renumber
from autorubric.metrics.core.estimate import Estimate, Reason
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
    chunks,
    row_units,
    standard_error,
    weighted_units,
)
from autorubric.metrics.core.scales import Array, Codes
from autorubric.metrics.figures.ranks import (
    ItemPairs,
    PairPart,
    ScoredItems,
    Ties,
    count_pairs,
    pairs_within,
    scored_items,
)


def right_share(
    items: ScoredItems, parts: list[PairPart], name: str, note: str, options: IntervalOptions
) -> Estimate:
    """Return the proportion of right pairs or, with groups, its mean over the groups that have a pair."""
    right, compared = np.zeros(items.n), np.zeros(items.n)
    for part in parts:
        right[part.items] = part.counts.right_of_each()
        compared[part.items] = part.counts.count_compared_of_each()
    if items.group is not None:
        return _mean_of_groups(items, (right, compared), name, note, options)

    def compute(weights: Array) -> Array:
        right = sum(part.counts.right(weights[..., part.items]) for part in parts)
        compared = sum(part.counts.count_compared(weights[..., part.items]) for part in parts)
        return divide(np.asarray(right), np.asarray(compared))

    figure = Figure(
        name=name,
        compute=compute,
        reason=lambda weights: "too_few_units" if items.n < 2 else "no_variance",
        bounds=(0.0, 1.0),
        auto="analytic",
        analytic=_over_items(right, compared),
        on_table=False,
    )
    units = weighted_units(items.n, items.cluster)
    note = f"{note}, {int(compared.sum()) // 2} pairs"
    return estimate(figure, units, options, n_missing=items.n_missing, note=note)


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
    items: ScoredItems, of_each: tuple[Array, Array], name: str, note: str, options: IntervalOptions
) -> Estimate:
    right, compared = (np.bincount(items.groups, weights=one) for one in of_each)
    there = np.flatnonzero(compared)
    sums = np.stack([right[there] / compared[there], np.ones(len(there))], axis=1)
    owner = np.arange(len(right))
    if items.cluster is not None:
        owner[items.groups] = items.cluster
    used = int(np.isin(items.groups, there).sum())
    units = replace(row_units(sums, renumber(owner[there])), n=used)
    figure = ratio_figure(name, proportion)
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
    note = "ties credited" if ties == "credit" else "pairs tied in gold skipped"
    if epsilon:
        note += f", epsilon {epsilon:g}"
    part = PairPart(items=np.arange(items.n), counts=counts)
    return right_share(items, [part], "pairwise accuracy", note, options)


_EXACT_SEGMENTS = 13
_LEAST = 10_000


def soft_pairwise_accuracy(
    gold: Any, pred: Any, *, n_permutations: int = _LEAST, **interval: Unpack[IntervalArguments]
) -> Estimate:
    """Compare the p-values of all pairs of systems [1]: 1 - mean |p_gold(i>j) - p_pred(i>j)|.

    p(i>j), for i before j, is the one-sided p-value of a paired permutation test that system i scores higher
    on average: among the ways to swap the two systems' scores within segments, the proportion that gives a
    difference at least as large as the observed one. With S ≤ 13 segments (or clusters), all 2^S ways are
    enumerated; otherwise, m = `n_permutations` ways are drawn at random and the observed one is added: (k +
    1) / (m + 1), where k of the m differences are as large. All pairs, and both `gold` and `pred`, use the
    same permutations.

    If some swaps give exactly the observed difference, p(i>j) + p(j>i) exceeds 1, and the order of the
    systems can change the result by this excess.

    There is no interval (`no_interval`), because the p-values already account for the noise of the segments.
    Resampling segments would count that noise twice: p-values would move towards 0 and 1, and the resampled
    values would centre on a different value. The metric is undefined with one system (`too_few_units`) or no
    segment (`no_pairs`). Segments with a missing score are dropped and counted in `n_missing`.

    Args:
        gold: Reference scores, shape `(n_systems, n_segments)`; None and NaN count as missing.
        pred: Scores to evaluate, in the same shape.
        n_permutations: Number of random permutations, at least 10,000.
        **interval: See `IntervalArguments`. `cluster` has one id per segment; segments in the same cluster
            are swapped together. `rng` seeds the permutations. `ci` must be `"auto"` or None;
            `confidence_level` and `n_resamples` have no effect.

    Returns:
        The estimate, in which `n` is the number of systems.

    Raises:
        ArgumentError: If the shapes differ or are not two-dimensional, the numbers of cluster ids and
            segments differ, there are too few permutations, or a specific interval method is requested.

    References:
        [1] B. Thompson, N. Mathur, D. Deutsch, H. Khayrallah (2024), Improving statistical significance in
            human evaluation of automatic metrics via soft pairwise accuracy, WMT, 1222-1234.
    """
    check_number("n_permutations", n_permutations, f"[{_LEAST}, inf)", whole=True)
    options = IntervalOptions(**interval)
    if options.ci not in ("auto", None):
        raise ArgumentError(f"soft pairwise accuracy has no interval; pass ci=None; got {options.ci!r}")
    sides, n_missing = _read(gold, pred, options)
    n_systems, n_units = sides[0].shape
    exact = n_units <= _EXACT_SEGMENTS
    ways = f"all {2**n_units}" if exact else f"{n_permutations} random"
    what = "segments" if options.cluster is None else "clusters of segments"
    method = f"soft pairwise accuracy ({n_units} {what}, {ways} permutations)"
    if n_systems < 2 or not n_units:
        undefined: Reason = "too_few_units" if n_units else "no_pairs"
        return Estimate.undefined(undefined, n=n_systems, method=method, n_missing=n_missing)
    width, rng = max(n_systems * n_systems, n_units), options.generator()
    signs = _all_signs(n_units) if exact else _draw_signs(n_units, n_permutations, width, rng)
    left, right = _p_values(sides, signs, added=0 if exact else 1)
    value = 1 - float(np.abs(left - right)[np.triu_indices(n_systems, 1)].mean())
    reason: Reason | None = None if options.ci is None else "no_interval"
    return Estimate(value, n=n_systems, method=method, reason=reason, n_missing=n_missing)


def _read(gold: Any, pred: Any, options: IntervalOptions) -> tuple[list[Array], int]:
    """Return both scores as systems × complete exchangeable units, and the number of dropped segments."""
    sides = [
        number_rows(values, what, "(n_systems, n_segments)")
        for values, what in ((gold, "gold"), (pred, "pred"))
    ]
    if sides[0].shape != sides[1].shape:
        raise ArgumentError(
            f"gold has shape {sides[0].shape} but pred has {sides[1].shape}; pass systems × segments for both"
        )
    there = np.asarray(~(np.isnan(sides[0]) | np.isnan(sides[1])).any(axis=0))
    members, n_missing = drop_incomplete(there, options.cluster)
    kept = [side[:, there] for side in sides]
    if members is not None:
        # A cluster is swapped as a whole, so only its sum matters.
        one_hot = np.eye(int(members.max(initial=-1)) + 1)[members]
        kept = [side @ one_hot for side in kept]
    return kept, n_missing


def _all_signs(n_segments: int) -> Iterator[Array]:
    """Yield every combination of keeping or swapping, shape `(2^S, S)`."""
    yield 1.0 - 2.0 * (np.arange(2**n_segments)[:, None] >> np.arange(n_segments) & 1)


def _draw_signs(n_segments: int, n_drawn: int, width: int, rng: np.random.Generator) -> Iterator[Array]:
    """Yield randomly drawn combinations in parts; `width` is the number of cells that each one needs."""
    for rows in chunks(n_drawn, width):
        yield 1.0 - 2.0 * rng.integers(0, 2, size=(rows, n_segments))


def _p_values(sides: list[Array], signs: Iterable[Array], *, added: int) -> list[Array]:
    """Return p(i>j) for each side, shape `(n_systems, n_systems)`."""
    # A component common to all systems cancels; removing it reduces rounding error.
    sides = [side - side[:1] for side in sides]
    totals = [side.sum(axis=1) for side in sides]
    # Sums that are equal in exact arithmetic must compare as equal.
    slack = [1e-12 * side.shape[1] * float(np.abs(side).max()) for side in sides]
    at_least = [np.full((len(side), len(side)), float(added)) for side in sides]
    n_ways = added
    for block in signs:
        n_ways += len(block)
        for side, total, tolerance, count in zip(sides, totals, slack, at_least, strict=True):
            sums = block @ side.T
            apart = sums[:, :, None] - sums[:, None, :]
            count += (apart >= total[:, None] - total - tolerance).sum(axis=0)
    return [count / n_ways for count in at_least]


_MOST_PAIRS = 2_000_000
_ROUNDING = 1e-9
_NAME = "tie-calibrated pairwise accuracy"


@dataclass(frozen=True, slots=True, eq=False)
class TieCalibratedAccuracy(Estimate):
    """Pairwise accuracy at the tie threshold that maximizes it.

    Attributes:
        epsilon: Tie threshold chosen on all items; None if there are no pairs.
        in_sample: Whether `epsilon` was chosen on the same items as `value`, which makes `value` optimistic.
        cross_validated: Accuracy on items not used to choose the threshold; report this value.
        fold_epsilons: Threshold used in each fold, chosen on the other folds.
    """

    epsilon: float | None = None
    in_sample: bool = True
    cross_validated: Estimate = field(default_factory=lambda: Estimate.undefined("too_few_units"))
    fold_epsilons: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-compatible values. Undefined values are None, never NaN."""
        plain: dict[str, Any] = dict(Estimate.to_dict(self))
        return plain | {
            "cross_validated": self.cross_validated.to_dict(),
            "fold_epsilons": list(self.fold_epsilons),
        }


def tie_calibrated_pairwise_accuracy(
    gold: Iterable[Any],
    pred: Iterable[Any],
    *,
    ties: Ties = "credit",
    epsilon: float | None = None,
    groups: Iterable[Any] | None = None,
    folds: int = 5,
    **interval: Unpack[IntervalArguments],
) -> TieCalibratedAccuracy:
    """Find the tie threshold that maximizes pairwise accuracy, and the accuracy on held-out items [1].

    A judge whose scores are never equal is wrong on every pair that is tied in `gold`. `value`, the metric of
    [1], is the accuracy with ties credited at the best `epsilon`, which is 0 or a difference between two
    scores (the smallest of equally good ones). It is optimistic, because the threshold was chosen on the same
    items, and has no interval (`in_sample`). Report `cross_validated` instead: items (whole groups with
    `groups`, whole clusters with `cluster`) are split into folds, the pairs in each fold are evaluated at the
    threshold chosen on the other folds, and pairs across folds are excluded. Its interval treats the
    thresholds as fixed.

    With more than about 2000 items in one group, thresholds are chosen on a random sample of two million
    pairs, as in [1]; the accuracy always uses all pairs. Pairs tied in `gold` always count: if they were
    skipped, no threshold would help.

    `value` is undefined in the same cases as `pairwise_accuracy`. `cross_validated` is also undefined
    (`too_few_units`) with fewer than four items, fewer than two groups or, without groups, fewer than four
    clusters. If there are too few for the requested number of folds, fewer folds are used.

    Args:
        gold: Reference scores, shape `(n,)`. Items with None or NaN in either score are dropped.
        pred: Scores to evaluate, shape `(n,)`.
        ties: Must be `"credit"`; the parameter exists for compatibility with `pairwise_accuracy`.
        epsilon: Must be None, because this function chooses the threshold.
        groups: One group id per item. Only pairs within a group count, and groups are weighted equally.
        folds: Number of folds, at least 2.
        **interval: See `IntervalArguments`; `rng` also assigns the folds.

    Raises:
        ArgumentError: If an argument is invalid for `pairwise_accuracy`, `epsilon` is set, ties are skipped,
            or there are fewer than two folds.

    References:
        [1] D. Deutsch, G. Foster, M. Freitag (2023), Ties matter: meta-evaluating modern metrics with
            pairwise accuracy and tie calibration, EMNLP, 12914-12929, section 6.
    """
    if ties != "credit":
        raise ArgumentError(
            f"ties must be 'credit'; got {ties!r}. No threshold helps if pairs tied in gold are skipped; use "
            "pairwise_accuracy(ties='skip') instead"
        )
    if epsilon is not None:
        raise ArgumentError(
            f"epsilon must be None, because tie calibration chooses the threshold; got {epsilon!r}. Use "
            "pairwise_accuracy(epsilon=…) instead"
        )
    check_number("folds", folds, "[2, inf)", whole=True)
    options = IntervalOptions(**interval)
    items, rng = scored_items(gold, pred, groups, options.cluster), options.generator()
    gains = _gains(items, rng)
    fold = _assign_folds(items, folds, rng)
    chosen = _best(gains, np.ones(len(gains.size), dtype=bool))
    note = "in-sample optimum (optimistic; report cross_validated instead)"
    every = [_part(items, np.arange(items.n), chosen)]
    best = right_share(items, every, _NAME, f"{note}; epsilon {chosen:g}", IntervalOptions(ci=None))
    held_out, epsilons = _cross_validated(items, gains, fold, options)
    reason = best.reason if best.value is None else None if options.ci is None else "in_sample"
    return TieCalibratedAccuracy._extending(
        replace(best, reason=reason),
        epsilon=None if best.value is None else chosen,
        cross_validated=held_out,
        fold_epsilons=epsilons,
    )


def _part(items: ScoredItems, which: Codes, epsilon: float) -> PairPart:
    gold, pred, groups = items.gold[which], items.pred[which], items.groups[which]
    return PairPart(items=which, counts=count_pairs(gold, pred, groups, ties="credit", epsilon=epsilon))


class _Gains(NamedTuple):
    """Pairs by difference in pred, and the gain of a threshold there: tied +1, right order -1, wrong 0."""

    pairs: ItemPairs
    size: Array
    gain: Array


def _gains(items: ScoredItems, rng: np.random.Generator) -> _Gains:
    pairs, _ = pairs_within(items.groups, _MOST_PAIRS, rng)
    with np.errstate(over="ignore"):
        apart = items.pred[pairs.one] - items.pred[pairs.other]
    size = np.minimum(np.abs(apart), np.finfo(float).max)
    order = np.argsort(size, kind="stable")
    pairs, size = ItemPairs(pairs.one[order], pairs.other[order]), size[order]
    signs = np.sign(items.gold[pairs.one] - items.gold[pairs.other])
    gain = np.where(signs == 0, 1.0, np.where(signs == np.sign(apart[order]), -1.0, 0.0))
    # All groups have equal weight, whatever their number of pairs; pairs tied in pred stay tied.
    weight = np.bincount(items.groups[pairs.one], minlength=1) if len(size) else np.ones(1)
    gain = np.where(size == 0, 0.0, gain / weight[items.groups[pairs.one]])
    return _Gains(pairs, size, gain)


def _best(gains: _Gains, kept: Array) -> float:
    """Return the smallest threshold with the largest gain over the pairs kept."""
    size, gained = gains.size[kept], np.cumsum(gains.gain[kept])
    last = np.flatnonzero(np.diff(size, append=np.inf))
    if not len(last) or gained[last].max() <= _ROUNDING:
        return 0.0
    return float(size[last[np.argmax(gained[last] >= gained[last].max() - _ROUNDING)]])


def _assign_folds(items: ScoredItems, folds: int, rng: np.random.Generator) -> Codes | None:
    """Assign each item to a fold; None if there are too few items to hold some out."""
    units = items.cluster if items.cluster is not None else items.group
    n_units = items.n if units is None else int(units.max(initial=-1)) + 1
    folds = min(folds, items.n // 2, n_units if items.group is not None else n_units // 2)
    if folds < 2:
        return None
    dealt = np.arange(n_units) % folds
    rng.shuffle(dealt)
    return np.asarray(dealt if units is None else dealt[units])


def _cross_validated(
    items: ScoredItems, gains: _Gains, fold: Codes | None, options: IntervalOptions
) -> tuple[Estimate, tuple[float, ...]]:
    """Compute the accuracy within folds, each at the threshold chosen on the pairs of all other folds."""
    if fold is None:
        return Estimate.undefined(
            "too_few_units", n=items.n, method=f"{_NAME} (cross-validated)", n_missing=items.n_missing
        ), ()
    parts, epsilons = [], []
    for one in range(int(fold.max()) + 1):
        epsilon = _best(gains, (fold[gains.pairs.one] != one) & (fold[gains.pairs.other] != one))
        parts.append(_part(items, np.flatnonzero(fold == one), epsilon))
        epsilons.append(epsilon)
    note = f"cross-validated, {len(parts)} folds"
    return right_share(items, parts, _NAME, note, options), tuple(epsilons)
