"""What a cascade with these thresholds would have come to."""

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
    """What a cascade comes to under one threshold, or one a criterion.

    Attributes:
        threshold: The threshold where criteria have none of their own.
        cells: Criteria of items that were judged.
        escalated: How many of them go to the strong panel.
        votes: Votes of both panels.
        cost: US dollars of both panels; None where a vote has tokens and no price, or none states a cost.
        full_cost: What the strong panel alone costs on everything; None likewise.
        accuracy: Share of decisions that are true, where truth and a decision are known; items are the units
            that vary. Undefined without truth; numbers and texts are left aside, being more or less right.
        fidelity: Share of decisions that are those of the strong panel, where both decided; likewise.
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
        """Share of criteria that go to the strong panel, on [0, 1]; None where nothing was judged."""
        return self.escalated / self.cells if self.cells else None

    def blocks(self) -> list[Block]:
        """The figures, for any renderer."""
        figures = (
            ("threshold", self.threshold),
            ("criteria judged", self.cells),
            ("escalated", self.escalated),
            ("votes", self.votes),
            ("US dollars", self.cost),
            ("US dollars of the strong panel alone", self.full_cost),
            ("accuracy", self.accuracy.value),
            ("… from", self.accuracy.low),
            ("… to", self.accuracy.high),
            ("same as the strong panel", self.fidelity.value),
        )
        return [ScalarBlock(title="Cascade", figures=figures)]

    def summary(self) -> str:
        """The figures in plain text."""
        return render_text(self.blocks())


def replay_escalation(
    result: EvalResult, config: EscalationConfig, *, dataset: RubricDataset | None = None
) -> EscalationPoint:
    """What a cascade would have come to on a stored run, without a call.

    Args:
        result: A run in which the judges of both panels voted on everything.
        config: The cascade; its judges, by their ids, are those of the run, and all others grade first.
        dataset: Where the truth stands; the graded dataset by default.

    Raises:
        ArgumentError: The run lacks a judge or a criterion of the cascade, or has no judge that grades first,
            or left out votes.
    """
    check_per_criterion(config.per_criterion, result.dataset.rubrics())
    strong = {seat.judge_id for seat in seat_judges(config.judges)}
    cells = cells_of(result, strong, dataset)
    own = config.per_criterion
    return point(cells, config.threshold, lambda cell: own.get(cell.criterion, config.threshold))


def point(cells: Sequence[Cell], threshold: float, of: Threshold | None = None) -> EscalationPoint:
    """What the cascade comes to on cells, under a threshold or one for each cell."""
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
    """Share of cells where both are there and equal; items are the units that vary."""
    both = [
        (cell.item_id, a, b)
        for cell, a, b in zip(cells, one, other, strict=True)
        if a is not None and b is not None
    ]
    return accuracy([a for _, a, _ in both], [b for _, _, b in both], cluster=[item for item, _, _ in both])


def _sum(costs: Sequence[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None
