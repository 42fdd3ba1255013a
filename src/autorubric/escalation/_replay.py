"""Replaying a cascade on a stored run with chosen thresholds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from autorubric._blocks import Block, ScalarBlock, render_text
from autorubric.dataset import RubricDataset
from autorubric.escalation._cells import Cell, cells_of
from autorubric.eval import EvalResult
from autorubric.graders import EscalationConfig, check_per_criterion
from autorubric.judges import seat_judges
from autorubric.metrics import Estimate, accuracy

Threshold = Callable[[Cell], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class EscalationPoint:
    """The results of a cascade at one threshold, or at one threshold per criterion.

    Attributes:
        threshold: Threshold of all criteria without a separate threshold.
        cells: Number of judged criteria over all items.
        escalated: Number of these that are escalated to the strong panel.
        votes: Number of votes of both panels.
        cost: Cost of both panels in US dollars; None if a vote has tokens but no price, or no vote has costs.
        full_cost: Cost in US dollars of the strong panel judging everything; None in the same cases.
        accuracy: Proportion of correct decisions, with an interval clustered by item; undefined without
            ground truth. Number and text answers, which are not simply right or wrong, are excluded.
        fidelity: Proportion of decisions that equal the strong panel's, if both panels decided, with the same
            exclusions.
    """

    threshold: float
    cells: int
    escalated: int
    votes: int
    cost: float | None
    full_cost: float | None
    accuracy: Estimate
    fidelity: Estimate

    @property
    def escalated_share(self) -> float | None:
        """Proportion of criteria escalated to the strong panel, on [0, 1]; None if nothing was judged."""
        return self.escalated / self.cells if self.cells else None

    def blocks(self) -> list[Block]:
        """Return the figures as blocks for renderers."""
        figures = (
            ("threshold", self.threshold),
            ("criteria judged", self.cells),
            ("escalated", self.escalated),
            ("votes", self.votes),
            ("US dollars", self.cost),
            ("US dollars of the strong panel only", self.full_cost),
            ("accuracy", self.accuracy.value),
            ("… from", self.accuracy.low),
            ("… to", self.accuracy.high),
            ("same as the strong panel", self.fidelity.value),
        )
        return [ScalarBlock(title="Cascade", figures=figures)]

    def summary(self) -> str:
        """Return the figures as plain text."""
        return render_text(self.blocks())


def replay_escalation(
    result: EvalResult, config: EscalationConfig, *, dataset: RubricDataset | None = None
) -> EscalationPoint:
    """Compute the results of a cascade from a stored run, without model calls.

    Args:
        result: A run in which the judges of both panels voted on everything.
        config: The cascade. Its judges must be judges of the run; all other judges form the first panel.
        dataset: The dataset with ground truth; None for the graded dataset.

    Raises:
        ArgumentError: If the run lacks a judge or a criterion of the cascade, has no first panel, or has
            skipped votes.
    """
    check_per_criterion(config.per_criterion, result.dataset.rubrics())
    strong = {seat.judge_id for seat in seat_judges(config.judges)}
    cells = cells_of(result, strong, dataset)
    own = config.per_criterion
    return point(cells, config.threshold, lambda cell: own.get(cell.criterion, config.threshold))


def point(cells: Sequence[Cell], threshold: float, of: Threshold | None = None) -> EscalationPoint:
    """Compute the results of the cascade, at one threshold or with a separate threshold for each cell."""
    bounds = [threshold if of is None else of(cell) for cell in cells]
    up = [cell.is_escalated(bound) for cell, bound in zip(cells, bounds, strict=True)]
    made = [cell.decided(bound) for cell, bound in zip(cells, bounds, strict=True)]
    costs = [cell.first_cost for cell in cells]
    costs += [cell.strong_cost for cell, escalated in zip(cells, up, strict=True) if escalated]
    stated = any(cell.states_cost for cell in cells)
    votes = sum(cell.first_votes + cell.strong_votes * gone for cell, gone in zip(cells, up, strict=True))
    return EscalationPoint(
        threshold=threshold,
        cells=len(cells),
        escalated=sum(up),
        votes=votes,
        cost=_sum(costs) if stated else None,
        full_cost=_sum([cell.strong_cost for cell in cells]) if stated else None,
        accuracy=share_equal(cells, [cell.truth for cell in cells], made),
        fidelity=share_equal(cells, [cell.strong for cell in cells], made),
    )


def share_equal(cells: Sequence[Cell], one: Sequence[str | None], other: Sequence[str | None]) -> Estimate:
    """Estimate the proportion of equal pairs among complete pairs of values, clustered by item."""
    both = [
        (cell.item_id, a, b)
        for cell, a, b in zip(cells, one, other, strict=True)
        if a is not None and b is not None
    ]
    return accuracy([a for _, a, _ in both], [b for _, _, b in both], cluster=[item for item, _, _ in both])


def _sum(costs: Sequence[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None
