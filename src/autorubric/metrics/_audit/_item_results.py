"""Results of `item_analysis`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autorubric._blocks import Block, Cell, TableBlock, TextBlock
from autorubric.metrics._audit._findings import FIGURE_COLUMNS, Findings, figure_cells, said
from autorubric.metrics._estimate import Estimate, Reason

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
class ItemAnalysis(Findings):
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
