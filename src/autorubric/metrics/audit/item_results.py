"""Results of `item_analysis`, and the weight of each criterion in an item's score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from autorubric.criteria.base import BaseCriterion
from autorubric.errors import ArgumentError
from autorubric.metrics.audit.resampled import FIGURE_COLUMNS, AuditFindings, figure_cells, said
from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.item_scores import LabelledDataset, OwnedRun, SupportsGradedRun
from autorubric.metrics.core.label_table import dataset_of
from autorubric.metrics.core.scales import Array
from autorubric.metrics.core.votes_table import VotesTable
from autorubric.scoring.policies import RubricGroup
from autorubric.support.blocks import Block, Cell, TableBlock, TextBlock

WEAK = 0.2
"""A criterion is reported as weak if its correlation with the others is below this level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionAnalysis:
    """The contribution of one criterion to its rubric.

    Attributes:
        name: Name of the criterion.
        level: Measurement level of the criterion.
        weight: Weight in the score, averaged over items; None if no rubric is available.
        mean: Pass rate of a binary criterion, or mean value of any other criterion.
        discrimination: Correlation with the mean of the item's other criteria (corrected item–total).
        upper_lower: Mean in the best 27% of the items minus mean in the worst 27%.
        alpha_without: Cronbach's alpha of the other criteria.
        tau_without: Kendall's tau-b between the items' scores with and without the criterion.
        dead: Reason why the criterion is uninformative: `no_values` (never answered) or `no_variance` (never
            varies); None otherwise.
    """

    name: str
    level: str
    weight: float | None
    mean: Estimate
    discrimination: Estimate
    upper_lower: Estimate
    alpha_without: Estimate
    tau_without: Estimate
    dead: Reason | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RedundantPair:
    """Two criteria whose values are strongly correlated.

    Attributes:
        first: One criterion.
        second: The other criterion.
        correlation: Pearson's r of their values.
    """

    first: str
    second: str
    correlation: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightSensitivity:
    """How strongly the ranking of the items depends on the weights.

    Attributes:
        spread: Standard deviation of the logarithm of the factor that multiplies each weight.
        tau: Mean of Kendall's tau-b between the scores and the scores under perturbed weights; the bounds are
            quantiles of the draws, not a confidence interval.
        top_kept: Fraction of draws in which an item that ranked first still does, with Wilson's interval.
        n_draws: Number of random weight sets.
    """

    spread: float
    tau: Estimate
    top_kept: Estimate
    n_draws: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemAnalysis(AuditFindings):
    """The result of `item_analysis`: an analysis of a rubric's criteria.

    Penalty values are reversed to 1 - value wherever criteria are summed or correlated.

    Attributes:
        rater: Rater whose values were used.
        n_items: Number of items that have a value.
        criteria: Analysis of each criterion.
        redundant: Pairs of criteria with |r| of at least `threshold`, sorted by decreasing |r|.
        threshold: Minimum |r| of a redundant pair.
        dead: Names of the criteria that were never answered or never vary.
        weights: How strongly the ranking of the items depends on the weights.
        alpha: Cronbach's alpha over equally weighted criteria, on items that have every value.
        weighted_alpha: Cronbach's alpha over criteria weighted as in the score.
        stratified_alpha: Alpha stratified by the rubric's groups.
        notes: Notes on how the results were computed.
    """

    rater: str
    n_items: int
    criteria: tuple[CriterionAnalysis, ...]
    redundant: tuple[RedundantPair, ...]
    threshold: float
    dead: tuple[str, ...]
    weights: WeightSensitivity
    alpha: Estimate
    weighted_alpha: Estimate
    stratified_alpha: Estimate
    notes: tuple[str, ...]

    def blocks(self) -> list[Block]:
        """Return the results as content blocks for the text, HTML and LaTeX renderers, main finding first."""
        figures: Mapping[str, Estimate] = {
            "Cronbach's alpha": self.alpha,
            "Cronbach's alpha, weighted": self.weighted_alpha,
            "stratified alpha": self.stratified_alpha,
            f"Kendall's tau under perturbed weights (spread {self.weights.spread:g})": self.weights.tau,
            "probability that the best item stays best": self.weights.top_kept,
        }
        pairs: tuple[tuple[Cell, ...], ...] = tuple(
            (one.first, one.second, *figure_cells(one.correlation)) for one in self.redundant
        )
        blocks: list[Block] = [
            TextBlock(text=rubric_sentence(self)),
            _criteria_table(self.criteria),
            TableBlock(
                title=f"Total score over {self.n_items} items (rater: {self.rater})",
                columns=("figure", *FIGURE_COLUMNS),
                rows=tuple((name, *figure_cells(one)) for name, one in figures.items()),
            ),
            TableBlock(
                title=f"Redundant pairs (|r| ≥ {self.threshold:g})",
                columns=("first", "second", *FIGURE_COLUMNS),
                rows=pairs,
            ),
        ]
        if self.notes:
            blocks.append(TextBlock(title="Notes", text="\n".join(f"- {note}" for note in self.notes)))
        return blocks


def _criteria_table(criteria: tuple[CriterionAnalysis, ...]) -> TableBlock:
    rows: list[tuple[Cell, ...]] = [
        (
            one.name,
            one.level,
            one.weight,
            one.mean.n,
            one.mean.value,
            one.discrimination.value,
            one.upper_lower.value,
            one.alpha_without.value,
            one.tau_without.value,
            one.dead or "",
        )
        for one in criteria
    ]
    return TableBlock(
        title="Criteria",
        columns=(
            "criterion",
            "level",
            "weight",
            "n",
            "mean",
            "discrimination",
            "upper − lower",
            "alpha without",
            "tau without",
            "uninformative",
        ),
        rows=tuple(rows),
    )


def rubric_sentence(found: ItemAnalysis) -> str:
    """Summarise the criterion that most needs attention."""
    if not found.n_items:
        return f"No item analysis is possible: the rater {found.rater!r} has no values."
    if found.dead:
        return f"First check the criteria that never vary or were never answered: {', '.join(found.dead)}."
    if found.redundant:
        pair = found.redundant[0]
        both = f"{pair.first} and {pair.second}"
        return f"Check {both} first: they are redundant, r = {said(pair.correlation)}."
    known = [one for one in found.criteria if one.discrimination.value is not None]
    if not known:
        return "No criterion can be compared with others: there is only one, or there are too few items."
    weakest = min(known, key=lambda one: float(one.discrimination))
    figure = f"r = {said(weakest.discrimination)}"
    if float(weakest.discrimination) < WEAK:
        return f"Check {weakest.name} first: it has the weakest correlation with the rest, {figure}."
    return f"Every criterion correlates with the rest; {weakest.name} correlates least, {figure}."


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricWeights:
    """Weights of the criteria in a votes table.

    Attributes:
        by_item: Weight of each criterion in each item's score, shape `(n_items, n_criteria)`; 1 without a
            rubric.
        group: Top-level group of each criterion in its rubric; the criterion itself if it has none.
        known: Whether the weights come from a rubric.
        simplified: Whether a rubric has gates, conditions or bonuses, which weights cannot express.
    """

    by_item: Array
    group: Mapping[int, str] = field(default_factory=dict)
    known: bool
    simplified: bool

    @property
    def of_criterion(self) -> Array:
        """Mean weight of each criterion, shape `(n_criteria,)`."""
        return np.asarray(self.by_item.mean(0)) if len(self.by_item) else np.ones(self.by_item.shape[1])


def weights_of(result: Any, dataset: LabelledDataset | None, table: VotesTable) -> RubricWeights:
    """Return the weights from the rubrics of `dataset`, or of the run's own dataset if it is None."""
    shape = (table.n_items, len(table.criteria))
    source = dataset
    if source is None and isinstance(result, SupportsGradedRun) and isinstance(result, OwnedRun):
        source = dataset_of(result)
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
    """Compute item scores with each criterion's weight multiplied, shape `(n_items, n_draws)`.

    A score is Σ w v / Σ positive w over criteria with a value, clamped to [0, 1], or 1 + Σ w v / Σ |w| if
    there are only penalties. It is NaN if an item has no value.

    Args:
        values: Values, shape `(n_items, n_criteria)`; NaN if missing.
        weights: Weights, shape `(n_items, n_criteria)`.
        multipliers: Non-negative factors, shape `(n_criteria, n_draws)`.
    """
    there = ~np.isnan(values)
    given = np.where(there, weights, 0.0)
    earned = (given * np.where(there, values, 0.0)) @ multipliers
    positive, total = np.maximum(given, 0.0) @ multipliers, np.abs(given) @ multipliers
    with_positive = positive > 0
    room = np.where(with_positive, positive, total)
    scores = np.where(with_positive, 0.0, 1.0) + earned / np.where(room > 0, room, 1.0)
    return np.where(room > 0, np.clip(scores, 0.0, 1.0), np.nan)
