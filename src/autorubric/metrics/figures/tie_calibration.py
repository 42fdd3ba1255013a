"""Tie calibration: the threshold below which differences between a judge's scores count as ties."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Unpack

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.core.estimate import Estimate
from autorubric.metrics.core.resampling import IntervalArguments, IntervalOptions, check_number
from autorubric.metrics.core.scales import Array, Codes
from autorubric.metrics.figures.pairwise import PairPart, right_share
from autorubric.metrics.figures.ranks import (
    ItemPairs,
    ScoredItems,
    Ties,
    count_pairs,
    pairs_within,
    scored_items,
)

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
    _check_arguments(ties, epsilon, folds)
    options = IntervalOptions(**interval)
    return _calibrate(scored_items(gold, pred, groups, options.cluster), folds, options)


def _calibrate(items: ScoredItems, folds: int, options: IntervalOptions) -> TieCalibratedAccuracy:
    rng = options.generator()
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


def _check_arguments(ties: str, epsilon: float | None, folds: int) -> None:
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


def _part(items: ScoredItems, which: Codes, epsilon: float) -> PairPart:
    gold, pred, groups = items.gold[which], items.pred[which], items.groups[which]
    return PairPart(items=which, counts=count_pairs(gold, pred, groups, ties="credit", epsilon=epsilon))


class _Gains(NamedTuple):
    """Pairs sorted by increasing difference in pred, and the gain of a threshold that includes each.

    A pair tied in gold becomes right, one in the right order becomes wrong, and one in the wrong order stays
    wrong.
    """

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
