"""The mean score of a HealthBench run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Protocol

from autorubric._blocks import Block, ScalarBlock, render_text
from autorubric.dataset import RubricDataset
from autorubric.eval._items import ItemResult


class GradedRun(Protocol):
    """The parts of a run that `healthbench_score` needs."""

    @property
    def dataset(self) -> RubricDataset:
        """The graded dataset."""
        ...

    @property
    def item_results(self) -> Sequence[ItemResult]:
        """One result per item."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthBenchScore:
    """The HealthBench score of a run.

    Attributes:
        score: Mean of `items`, clipped to [0, 1]; None if no item has a score.
        items: Unclipped score by item id: points met ÷ positive points, which is negative if penalties
            outweigh the points. None if the item was not judged or has no positive points.
        n: Number of items with a score.
        n_missing: Number of items without a score.
    """

    score: float | None
    items: Mapping[str, float | None]
    n: int
    n_missing: int

    def blocks(self) -> list[Block]:
        """Return the figures as blocks for renderers."""
        figures = (("score", self.score), ("items", self.n), ("items without a score", self.n_missing))
        return [ScalarBlock(title="HealthBench score", figures=figures)]

    def summary(self) -> str:
        """Return the figures as plain text."""
        return render_text(self.blocks())


def healthbench_score(result: GradedRun) -> HealthBenchScore:
    """Compute the HealthBench score of a run over a dataset from `from_healthbench`.

    An item's score is the sum of the points of its met criteria, divided by the sum of its positive points.
    The run's score is the mean of the item scores, clipped to [0, 1] (Arora et al. 2025, "HealthBench:
    Evaluating Large Language Models Towards Improved Human Health"). Only the mean is clipped, so it can
    differ from the mean of the items' `score`. Criteria that could not be judged count as not met.

    Args:
        result: The run.
    """
    found: dict[str, float | None] = {}
    for one in result.item_results:
        positive = result.dataset.get_item_rubric(one.item_idx).total_positive_weight
        points = one.report.raw_score if one.report is not None else None
        found[one.item.id or str(one.item_idx)] = (
            points / positive if positive and points is not None else None
        )
    known = [figure for figure in found.values() if figure is not None]
    score = min(max(fsum(known) / len(known), 0.0), 1.0) if known else None
    return HealthBenchScore(score=score, items=found, n=len(known), n_missing=len(found) - len(known))
