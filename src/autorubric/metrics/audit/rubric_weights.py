"""The weight of each criterion in an item's score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from autorubric.criteria.base import BaseCriterion
from autorubric.errors import ArgumentError
from autorubric.metrics.core.item_scores import LabelledDataset, OwnedRun, SupportsGradedRun
from autorubric.metrics.core.label_table import dataset_of
from autorubric.metrics.core.scales import Array
from autorubric.metrics.core.votes_table import VotesTable
from autorubric.scoring.policies import RubricGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricWeights:
    """Weights of the criteria in a votes table."""

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
    read: dict[int, tuple[dict[str, float], dict[str, str], bool]] = {}
    for i in range(table.n_items):
        try:
            root = source.get_item_rubric(i).root
        except ArgumentError:
            continue
        # Items may share a rubric, and each rubric is read once.
        if id(root) not in read:
            read[id(root)] = (_shares(root), _tops(root), any(map(_is_special, root.leaves)))
        shares, tops, special = read[id(root)]
        simplified |= special
        for name, share in shares.items():
            for at in places.get(name, ()):
                weights[i, at] = share
                groups[at] = tops[name]
    return RubricWeights(by_item=weights, group=groups, known=True, simplified=simplified)


def _is_special(criterion: BaseCriterion) -> bool:
    return bool(criterion.gate or criterion.bonus or criterion.when)


def _shares(group: RubricGroup, scale: float = 1.0) -> dict[str, float]:
    """Return each criterion's weight × (weight / attainable total) of each enclosing group."""
    found: dict[str, float] = {}
    for one in group.criteria:
        if isinstance(one, RubricGroup):
            found |= _shares(one, scale * one.weight / (_earned(one) or 1.0))
        else:
            found[one.name or ""] = scale * one.weight
    return found


def _earned(group: RubricGroup) -> float:
    """Return the largest total that a group's members can earn, without bonuses."""
    counted = (one for one in group.criteria if isinstance(one, RubricGroup) or not one.bonus)
    return sum(max(one.weight, 0.0) for one in counted)


def _tops(root: RubricGroup) -> dict[str, str]:
    tops: dict[str, str] = {}
    for one in root.criteria:
        leaves = one.leaves if isinstance(one, RubricGroup) else (one,)
        tops |= {leaf.name or "": one.name or "" for leaf in leaves}
    return tops


def item_scores_under(values: Array, weights: Array, multipliers: Array) -> Array:
    """Compute item scores with each criterion's weight multiplied, shape `(n_items, n_draws)`."""
    there = ~np.isnan(values)
    given = np.where(there, weights, 0.0)
    earned = (given * np.where(there, values, 0.0)) @ multipliers
    positive, total = np.maximum(given, 0.0) @ multipliers, np.abs(given) @ multipliers
    with_positive = positive > 0
    room = np.where(with_positive, positive, total)
    scores = np.where(with_positive, 0.0, 1.0) + earned / np.where(room > 0, room, 1.0)
    return np.where(room > 0, np.clip(scores, 0.0, 1.0), np.nan)
