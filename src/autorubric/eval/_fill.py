"""Ground truth from a grader, for items that have none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from autorubric._sync import run_sync
from autorubric.aggregation import ballot_of
from autorubric.dataset import RubricDataset
from autorubric.errors import ReplyError
from autorubric.eval._executor import run_bounded
from autorubric.eval._standing import grading_task
from autorubric.types import CriterionReport
from autorubric.values import Json

if TYPE_CHECKING:
    from autorubric.graders import Grader

_WINDOW = 64


async def fill_ground_truth(dataset: RubricDataset, grader: Grader, *, force: bool = False) -> RubricDataset:
    """Return the dataset with ground truth from the grader's decisions.

    Labels that are there stay; a criterion that the grader could not judge stays without one. Where the
    decision is a mean that no rater may give, as 3.5 of whole numbers, the label is the answer given that is
    nearest to it, the one that helps the score less of two equally near.

    Args:
        dataset: The items to label.
        grader: The grader that labels.
        force: Whether labels that are there are replaced.

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
        # Rounded: 3 and 4 are equally near to their mean, whatever the last digits say.
        nearest = sorted(placed, key=lambda one: (round(abs(one[0] - value), 9), sign * one[0]))
        return nearest[0][1] if nearest else None
    return report.final_answer


def _lacks_truth(dataset: RubricDataset, position: int) -> bool:
    truth = dataset.item_truth(position) or {}
    return any(truth.get(criterion.name or "") is None for criterion in dataset.get_item_rubric(position))


def fill_ground_truth_sync(dataset: RubricDataset, grader: Grader, **options: Any) -> RubricDataset:
    """`fill_ground_truth`, for synchronous code; safe inside a running event loop."""
    return run_sync(fill_ground_truth(dataset, grader, **options))
