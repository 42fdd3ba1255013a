"""Items that a person should decide, and labels filled in with a grader's decisions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, get_args

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.values import Answer, Submission
from autorubric.datasets.dataset import RubricDataset
from autorubric.datasets.item import DataItem
from autorubric.datasets.labels import DISPUTED
from autorubric.errors import ArgumentError, ReplyError
from autorubric.runs.item_results import grading_task
from autorubric.runs.items import ItemResult, Mark, SplitKind
from autorubric.runs.result import EvalResult
from autorubric.scoring.decisions import counted_vote
from autorubric.scoring.reports import CriterionReport, EnsembleEvaluationReport
from autorubric.support.concurrency import run_bounded, sync_twin
from autorubric.support.objects import Json, is_number
from autorubric.support.reading_errors import nearest_key

if TYPE_CHECKING:
    from autorubric.grading.base import Grader


_MARKS: Final[Mapping[Mark, str]] = {
    "wrong": "wrong",
    "split": "split",
    "abstained": "abstained",
    "lost": "failed",
}
"""Names of the marks in a report, by their names in this module."""


def disputed_items(
    source: EvalResult | RubricDataset,
    *,
    split: SplitKind = "any",
    tolerance: float = 0.0,
    where: Mark | Collection[Mark] | None = None,
) -> RubricDataset:
    """Return the items on which annotators or judges disagree, without labels, for a human decision.

    A criterion is disputed if the answers of two annotators, or the decisions of two judges, differ.
    Abstentions and failures are ignored, and text answers are never disputed. Each returned item's `disputed`
    metadata contains the annotators' answers (`people`) and the judges' decisions (`judges`) by criterion and
    name; ground truth, ratings and other metadata are omitted. `annotation_page` asks only about the disputed
    criteria and hides these answers; `merge_labels(…, disputed=…)` merges the new decisions.

    With `where`, the items and criteria of a run are selected by their marks in the report: `wrong` (the
    answer differs from the label), `split` (votes differ), `abstained` (a vote or the panel abstained) or
    `lost` (a vote failed or could not be read, or there is no score). The `disputed` metadata then also
    contains the `label`, the `panel`'s answer and the `marks`.

    Args:
        source: A run, whose dataset can contain ratings, or a dataset.
        split: Whose answers must differ: `people`, `judges`, or `any` for either group.
        tolerance: Maximum difference between values in [0, 1] at which answers count as equal; used only for
            ordinal and interval criteria.
        where: Marks that select items and criteria, instead of `split` and `tolerance`.

    Raises:
        ArgumentError: If `split` or a mark is unknown, the tolerance is not in [0, 1], judges or marks are
            requested for a dataset, or `where` is combined with `split` or `tolerance`.
    """
    if where is not None:
        if split != "any" or tolerance:
            raise ArgumentError("where= cannot be combined with split= or tolerance=; omit them")
        return _marked_items(source, [where] if isinstance(where, str) else list(where))
    if split not in get_args(SplitKind):
        raise ArgumentError(f"unknown split {split!r}; {nearest_key(str(split), get_args(SplitKind))}")
    if not is_number(tolerance) or not 0.0 <= tolerance <= 1.0:
        raise ArgumentError(f"tolerance must be a number from 0 to 1; got {tolerance!r}")
    run = source if isinstance(source, EvalResult) else None
    if split == "judges" and run is None:
        raise ArgumentError("split='judges' requires a run, since a dataset contains only human labels")
    dataset = source.dataset if isinstance(source, EvalResult) else source
    said = {
        one.item_idx: _disagreements(dataset, one.item_idx, one.report, split, tolerance)
        for one in (run.item_results if run is not None else ())
    }
    items = []
    for place in range(len(dataset)):
        found = said[place] if place in said else _disagreements(dataset, place, None, split, tolerance)
        if found:
            items.append(_without_labels(dataset, place, found))
    return dataset.with_items(items)


def _marked_items(source: EvalResult | RubricDataset, where: Sequence[Mark]) -> RubricDataset:
    """Return the items that have one of these marks."""
    for mark in where:
        if mark not in _MARKS:
            raise ArgumentError(f"unknown mark {mark!r}; {nearest_key(str(mark), _MARKS)}")
    if not isinstance(source, EvalResult):
        raise ArgumentError("selecting items by marks requires a run, since a dataset has no judges")
    # Imported late, since reports load numpy, which opening a run does not need.
    from autorubric.reports.items import marks_of

    marks = marks_of(source)
    found = {}
    for one in source.item_results:
        on: dict[str, list[str]] = {}
        for mark in where:
            if one.item_idx in marks.items[_MARKS[mark]]:
                for name in _marked_criteria(source.dataset, one, marks.cells[_MARKS[mark]]):
                    on.setdefault(name, []).append(mark)
        if on:
            found[one.item_idx] = _answers_on(source.dataset, one, on)
    dataset = source.dataset
    return dataset.with_items(
        [_without_labels(dataset, place, said) for place, said in sorted(found.items())]
    )


def _marked_criteria(
    dataset: RubricDataset, one: ItemResult, cells: Collection[tuple[int, str]]
) -> list[str]:
    """Return an item's criteria with the mark; if the whole item has it, the unanswered ones or all."""
    rubric = dataset.get_item_rubric(one.item_idx)
    marked = [
        criterion.name or ""
        for criterion in rubric
        if any((one.item_idx, part.name) in cells for part in (criterion, *criterion.part_fields.values()))
    ]
    reports = one.report.report if one.report is not None else ()
    return marked or [each.name for each in reports if each.status != "answered"] or list(rubric.names)


def _answers_on(
    dataset: RubricDataset, one: ItemResult, on: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, Json]]:
    """Return the answers and marks on these criteria of an item, by criterion."""
    truth = dataset.item_truth(one.item_idx) or {}
    ratings = dataset.item_ratings(one.item_idx)
    by_name = {each.name: each for each in one.report.report} if one.report is not None else {}
    found: dict[str, dict[str, Json]] = {}
    for name, marks in on.items():
        report = by_name.get(name)
        decisions = report.judge_decisions if report is not None else {}
        judges = {who: made.answer for who, made in decisions.items() if made.answer is not None}
        found[name] = {"marks": list(marks)}
        if people := {rater: labels[name] for rater, labels in ratings.items() if name in labels}:
            found[name]["people"] = people
        if judges:
            found[name]["judges"] = dict(_answer_rows(judges))
        if report is not None:
            found[name]["panel"] = report.final_answer
        if name in truth:
            found[name]["label"] = truth[name]
    return found


def _without_labels(dataset: RubricDataset, place: int, said: Mapping[str, Json]) -> DataItem:
    """Return the item without labels, with the disputed answers as metadata."""
    item = dataset.items[place]
    return DataItem(
        id=dataset.item_id(place),
        submission=item.submission,
        description=item.description,
        rubric=item.rubric,
        prompt=item.prompt,
        reference_submission=item.reference_submission,
        metadata={DISPUTED: said},
    )


def _disagreements(
    dataset: RubricDataset,
    place: int,
    report: EnsembleEvaluationReport | None,
    split: SplitKind,
    tolerance: float,
) -> dict[str, Json]:
    submission = Submission.parse(dataset.items[place].submission)
    ratings = dataset.item_ratings(place)
    by_name = {one.name: one for one in report.report} if report is not None else {}
    found: dict[str, Json] = {}
    for declared in dataset.get_item_rubric(place):
        criterion, name = declared.bind(submission), declared.name or ""
        if criterion.level == "text":
            continue
        people = {
            rater: answer
            for rater, labels in ratings.items()
            if (answer := criterion.parse_truth(labels.get(name))) is not None
        }
        decisions = by_name[name].judge_decisions if name in by_name else {}
        judges = {
            judge: made.answer
            for judge, made in decisions.items()
            if made.status == "answered" and not made.assumed and made.answer is not None
        }
        asked = {"people": people if split != "judges" else {}, "judges": judges if split != "people" else {}}
        if any(_differ(criterion, answers.values(), tolerance) for answers in asked.values()):
            said = {"people": people, "judges": judges}
            found[name] = {who: dict(_answer_rows(answers)) for who, answers in said.items() if answers}
    return found


def _answer_rows(answers: Mapping[str, Answer]) -> Iterator[tuple[str, Json]]:
    for who, answer in answers.items():
        yield who, "CANNOT_ASSESS" if answer.cannot_assess else answer.code


def _differ(criterion: BaseCriterion, answers: Iterable[Answer], tolerance: float) -> bool:
    given = [answer for answer in answers if not answer.cannot_assess]
    if all(answer.code == given[0].code for answer in given):
        return False
    values = [answer.value for answer in given if answer.value is not None]
    near = tolerance and criterion.level in ("ordinal", "interval") and len(values) == len(given)
    return not near or max(values) - min(values) > tolerance


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


fill_ground_truth_sync = sync_twin(fill_ground_truth)
"""Call `fill_ground_truth` from synchronous code, even inside a running event loop."""


def _label(report: CriterionReport) -> Json:
    criterion, decided = report.criterion, report.decision.answer
    try:
        criterion.parse_truth(report.final_answer)
    except ReplyError:
        given = [counted_vote(criterion, vote).answer for vote in report.votes if vote.status == "answered"]
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
