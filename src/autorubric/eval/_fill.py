"""Filling in missing ground truth with a grader's decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from autorubric._sync import run_bounded, run_sync
from autorubric.aggregation import ballot_of
from autorubric.dataset import RubricDataset
from autorubric.errors import ReplyError
from autorubric.eval._standing import grading_task
from autorubric.types import CriterionReport
from autorubric.values import Json

if TYPE_CHECKING:
    from autorubric.graders import Grader

_WINDOW = 64


async def fill_ground_truth(dataset: RubricDataset, grader: Grader, *, force: bool = False) -> RubricDataset:
    """Return the dataset with missing ground-truth labels filled in from the grader's decisions.

    A criterion that the grader could not judge stays unlabelled. If a decision is a mean that is not a valid
    label, such as 3.5 on a scale of integers, the nearest answer of a judge becomes the label; if two answers
    are equally near, the label is the one with the lower score.

    Args:
        dataset: The dataset to label.
        grader: The grader whose decisions become labels.
        force: Whether to replace existing labels.

    Raises:
        ArgumentError: If an item has no rubric, or the grader names criteria that no rubric has.
    """
    grader.check_rubrics(dataset.rubrics())

    async def work(position: int) -> tuple[int, dict[str, Json]]:
        task = grading_task(dataset, position)
        report = grader.aggregate(task, await grader.judge(task))
        found = {one.name: _label(one) for one in report.report if not one.decision.assumed}
        return position, found

    wanted = [position for position in range(len(dataset.items)) if force or _lacks_truth(dataset, position)]
    items = list(dataset.items)
    try:
        async for position, labels in run_bounded(wanted, work, limit=_WINDOW):
            kept = {} if force else (dataset.item_truth(position) or {})
            known = {name: label for name, label in kept.items() if label is not None}
            items[position] = items[position].model_copy(update={"ground_truth": {**labels, **known}})
    finally:
        await grader.aclose()
    return dataset.with_items(items)


def _label(report: CriterionReport) -> Json:
    criterion, decided = report.criterion, report.decision.answer
    try:
        criterion.parse_truth(report.final_answer)
    except ReplyError:
        given = [ballot_of(criterion, vote).answer for vote in report.votes if vote.status == "answered"]
        sign = 1.0 if criterion.weight >= 0 else -1.0
        placed = [(a.value, a.code) for a in given if a is not None and a.value is not None]
        value = decided.value if decided is not None and decided.value is not None else 0.0
        # Rounded, so that 3 and 4 are equally near to their mean despite floating-point errors.
        nearest = sorted(placed, key=lambda one: (round(abs(one[0] - value), 9), sign * one[0]))
        return nearest[0][1] if nearest else None
    return report.final_answer


def _lacks_truth(dataset: RubricDataset, position: int) -> bool:
    truth = dataset.item_truth(position) or {}
    return any(truth.get(criterion.name or "") is None for criterion in dataset.get_item_rubric(position))


def fill_ground_truth_sync(dataset: RubricDataset, grader: Grader, **options: Any) -> RubricDataset:
    """Call `fill_ground_truth` from synchronous code, even if an event loop is running."""
    return run_sync(fill_ground_truth(dataset, grader, **options))
