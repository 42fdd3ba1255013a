"""The weight of each criterion in an item's score, and the effect of weights on the ranking of items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.core.contingency import divide
from autorubric.metrics.core.estimate import Estimate
from autorubric.metrics.core.intervals import wilson
from autorubric.metrics.core.item_scores import LabelledDataset, OwnedRun, SupportsGradedRun
from autorubric.metrics.core.label_table import dataset_of
from autorubric.metrics.core.resampling import Resampling, interval_of
from autorubric.metrics.core.scales import Array
from autorubric.metrics.core.votes_table import VotesTable
from autorubric.metrics.figures.correlation import kendall_tau_b
from autorubric.scoring.policies import RubricGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricWeights:
    by_item: Array  # shape `(n_items, n_criteria)`; 1 without a rubric
    group: Mapping[int, str] = field(default_factory=dict)  # top-level group of each criterion in its rubric
    known: bool  # whether the weights come from a rubric
    simplified: bool  # whether a rubric has gates, conditions or bonuses, which weights cannot express

    @property
    def of_criterion(self) -> Array:
        """Mean weight of each criterion, shape `(n_criteria,)`."""
        return np.asarray(self.by_item.mean(0)) if len(self.by_item) else np.ones(self.by_item.shape[1])


def dataset_or_own(result: Any, dataset: Any) -> Any:
    """Return the dataset or, if it is None, the run's own dataset; None without either."""
    if dataset is None and isinstance(result, SupportsGradedRun) and isinstance(result, OwnedRun):
        return dataset_of(result)
    return dataset


def weights_of(result: Any, dataset: LabelledDataset | None, table: VotesTable) -> RubricWeights:
    """Return the weights from the rubrics of `dataset`, or of the run's own dataset if it is None."""
    shape = (table.n_items, len(table.criteria))
    source = dataset_or_own(result, dataset)
    if source is None:
        return RubricWeights(by_item=np.ones(shape), known=False, simplified=False)
    weights, groups = np.ones(shape), {}
    places: dict[str, list[int]] = {}
    for at, criterion in enumerate(table.criteria):
        places.setdefault(criterion.name, []).append(at)
    simplified = False
    read: dict[int, tuple[RubricGroup, dict[str, float], dict[str, str], bool]] = {}
    shared: RubricGroup | None = None
    # Items of a file are read in turn, which is faster than one at a time.
    for i, item in zip(range(table.n_items), source.items, strict=False):
        has_own = getattr(item, "rubric", True) is not None
        try:
            root = source.get_item_rubric(i).root if has_own or shared is None else shared
        except ArgumentError:
            continue
        shared = shared if has_own else root
        # Items may share a rubric, and each is read once. It is stored, because another could reuse its id.
        if id(root) not in read:
            special = any(bool(leaf.gate or leaf.bonus or leaf.when) for leaf in root.leaves)
            read[id(root)] = (root, _effective_weights(root), _top_groups(root), special)
        _, shares, tops, special = read[id(root)]
        simplified |= special
        for name, share in shares.items():
            for at in places.get(name, ()):
                weights[i, at] = share
                groups[at] = tops[name]
    return RubricWeights(by_item=weights, group=groups, known=True, simplified=simplified)


def _effective_weights(group: RubricGroup, scale: float = 1.0) -> dict[str, float]:
    """Return each criterion's weight × (weight / attainable total) of each enclosing group."""
    found: dict[str, float] = {}
    for one in group.criteria:
        if isinstance(one, RubricGroup):
            counted = (part for part in one.criteria if isinstance(part, RubricGroup) or not part.bonus)
            attainable = sum(max(part.weight, 0.0) for part in counted)
            found |= _effective_weights(one, scale * one.weight / (attainable or 1.0))
        else:
            found[one.name or ""] = scale * one.weight
    return found


def _top_groups(root: RubricGroup) -> dict[str, str]:
    tops: dict[str, str] = {}
    for one in root.criteria:
        leaves = one.leaves if isinstance(one, RubricGroup) else (one,)
        tops |= {leaf.name or "": one.name or "" for leaf in leaves}
    return tops


def weighted_score(earned: Array, positive: Array, total: Array) -> Array:
    """Compute Σ w v / Σ positive w or, with penalties alone, 1 + Σ w v / Σ |w|, clamped to [0, 1]."""
    start = np.where(positive > 0, 0.0, 1.0)
    return np.asarray(np.clip(start + divide(earned, np.where(positive > 0, positive, total)), 0.0, 1.0))


def item_scores_under(values: Array, weights: Array, multipliers: Array) -> Array:
    """Compute item scores, `(n_items, n_draws)`, with weights multiplied by `(n_criteria, n_draws)`."""
    there = ~np.isnan(values)
    counted = np.where(there, weights, 0.0)
    earned = (counted * np.where(there, values, 0.0)) @ multipliers
    return weighted_score(earned, np.maximum(counted, 0.0) @ multipliers, np.abs(counted) @ multipliers)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightSensitivity:
    """How strongly the ranking of the items depends on the weights."""

    spread: float  # standard deviation of the logarithm of the factor that multiplies each weight
    tau: Estimate  # mean tau-b with scores under perturbed weights; bounds are quantiles, no interval
    top_kept: Estimate  # fraction of draws in which an item that ranked first still does (Wilson's interval)
    n_draws: int  # number of random weight sets


_TAU = "Kendall's tau-b between scores with original and perturbed weights"
_TIED = 1e-12


def weight_sensitivity(
    values: Array, weights: Array, spread: float, n_draws: int, resampling: Resampling
) -> WeightSensitivity:
    """Compare item scores with those under weights multiplied by e^(spread z), with z standard normal."""
    size = values.shape[1]
    scores = item_scores_under(values, weights, np.ones((size, 1)))[:, 0]
    drawn = np.exp(spread * resampling.generator().standard_normal((size, n_draws)))
    perturbed = item_scores_under(values, weights, drawn)
    taus = np.array([_tau(scores, column).value for column in perturbed.T], dtype=float)
    tau = _tau_estimate(taus, scores, resampling)
    return WeightSensitivity(spread=spread, tau=tau, top_kept=_top_kept(scores, perturbed), n_draws=n_draws)


def _tau_estimate(taus: Array, scores: Array, resampling: Resampling) -> Estimate:
    method = f"{_TAU}; quantiles over random weight sets, {resampling.confidence_level:.0%}"
    n, defined = int(np.count_nonzero(~np.isnan(scores))), taus[~np.isnan(taus)]
    if not len(defined):
        return Estimate.undefined("too_few_units" if n < 2 else "no_variance", n=n, method=method)
    low, high, _ = interval_of(defined, resampling)[0]
    return Estimate(float(defined.mean()), low, high, None, n, method)


def _top_kept(scores: Array, perturbed: Array) -> Estimate:
    there = ~np.isnan(scores)
    if np.count_nonzero(there) < 2 or not perturbed.shape[1]:
        return Estimate.undefined(
            "too_few_units", n=int(np.count_nonzero(there)), method="weight sets that keep the best item"
        )
    first = scores[there] >= scores[there].max() - _TIED
    still = perturbed[there] >= perturbed[there].max(0) - _TIED
    return wilson(int((still & first[:, None]).any(0).sum()), perturbed.shape[1])


def tau_without(values: Array, weights: Array, criterion: int) -> Estimate:
    """Compute Kendall's tau-b between the item scores with and without one criterion."""
    keep = np.ones((values.shape[1], 2))
    keep[criterion, 1] = 0.0
    scores = item_scores_under(values, weights, keep)
    return _tau(scores[:, 0], scores[:, 1])


def _tau(scores: Array, others: Array) -> Estimate:
    # Rounding makes scores equal that differ only by the order of summation.
    return kendall_tau_b(np.round(scores, 12), np.round(others, 12), ci=None)
