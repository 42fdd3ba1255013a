"""What `item_analysis` gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autorubric._blocks import Block, Cell, TableBlock, TextBlock
from autorubric.metrics._audit._findings import FIGURE_COLUMNS, Findings, figure_cells
from autorubric.metrics._audit._first_looks import rubric_sentence
from autorubric.metrics._estimate import Estimate, Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionAnalysis:
    """What a criterion does in its rubric.

    Attributes:
        name: Its name.
        level: Its measurement level.
        weight: Its weight in the score, the mean over items; None where no rubric says it.
        mean: Pass rate of a binary criterion, mean value of another.
        discrimination: Correlation of its values with the mean of the item's other criteria (corrected
            item–total correlation).
        upper_lower: Its mean in the best 27 % of the items minus that in the worst 27 %.
        alpha_without: Cronbach's alpha of the other criteria.
        tau_without: Kendall's tau-b of the items' scores with those without the criterion.
        dead: Why it tells nothing: `no_values` (never answered) or `no_variance`; None where it does.
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
    """Two criteria that go together.

    Attributes:
        first: A criterion.
        second: Another.
        correlation: Pearson's r of their values.
    """

    first: str
    second: str
    correlation: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightSensitivity:
    """How far the items' order hangs on the weights.

    Attributes:
        spread: Standard deviation of the logarithm of the factor on each weight.
        tau: Mean of Kendall's tau-b between the scores and those under perturbed weights; the ends are the
            quantiles of the draws, and no confidence interval.
        top_kept: Share of draws in which an item that was first still is, with Wilson's interval.
        n_draws: Draws of weights.
    """

    spread: float
    tau: Estimate
    top_kept: Estimate
    n_draws: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemAnalysis(Findings):
    """Whether the criteria of a rubric do their work.

    Values of penalties are turned round (1 - value) wherever criteria are added up or correlated.

    Attributes:
        rater: Whose values.
        n_items: Items with a value.
        criteria: What each criterion does.
        redundant: Pairs of criteria whose values correlate by `threshold` or more, the strongest first.
        threshold: See `redundant`.
        dead: Names of the criteria that tell nothing.
        weights: How far the items' order hangs on the weights.
        alpha: Cronbach's alpha over criteria, each counting alike; items that lack a value left out.
        weighted_alpha: The same with the rubric's weights, as they enter the score.
        stratified_alpha: With the rubric's groups as strata.
        notes: What the reader should know.
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
        """The figures, what to look at first coming first."""
        figures: Mapping[str, Estimate] = {
            "Cronbach's alpha": self.alpha,
            "Cronbach's alpha, weighted": self.weighted_alpha,
            "stratified alpha": self.stratified_alpha,
            f"Kendall's tau, weights perturbed (spread {self.weights.spread:g})": self.weights.tau,
            "first item stays first": self.weights.top_kept,
        }
        pairs: tuple[tuple[Cell, ...], ...] = tuple(
            (one.first, one.second, *figure_cells(one.correlation)) for one in self.redundant
        )
        blocks: list[Block] = [
            TextBlock(text=rubric_sentence(self)),
            _criteria_table(self.criteria),
            TableBlock(
                title=f"Total over {self.n_items} items, by the {self.rater}",
                columns=("figure", *FIGURE_COLUMNS),
                rows=tuple((name, *figure_cells(one)) for name, one in figures.items()),
            ),
            TableBlock(
                title=f"Redundant pairs (|r| of {self.threshold:g} or more)",
                columns=("criterion", "and", *FIGURE_COLUMNS),
                rows=pairs,
            ),
        ]
        if self.notes:
            blocks.append(TextBlock(title="Mind", text="\n".join(f"- {note}" for note in self.notes)))
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
            "dead",
        ),
        rows=tuple(rows),
    )
