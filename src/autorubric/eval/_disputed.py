"""The items of a run or dataset on which people disagree or judges split, ready for somebody to decide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, TypeAlias, get_args

from autorubric._files import nearest_key
from autorubric.criteria import BaseCriterion
from autorubric.dataset import DISPUTED, DataItem, RubricDataset
from autorubric.errors import ArgumentError
from autorubric.eval._result import EvalResult
from autorubric.types import EnsembleEvaluationReport
from autorubric.values import Answer, Json, Submission

SplitKind: TypeAlias = Literal["any", "people", "judges"]


def disputed_items(
    source: EvalResult | RubricDataset, *, split: SplitKind = "any", tolerance: float = 0.0
) -> RubricDataset:
    """The items on which people disagree or judges split, without labels, for somebody to decide.

    People disagree on a criterion where two of them rated it and their answers differ; judges are split where
    the decisions of two of them do. Abstentions and failures are no answers, and texts are never in dispute.
    An item's metadata holds, under `disputed` and by criterion, what the `people` and the `judges` said by
    name; its truth, ratings and other metadata are left out. `annotation_page` asks for the criteria in
    dispute alone and shows none of this; `merge_labels(…, disputed=…)` brings the decisions back.

    Args:
        source: A run, whose dataset may hold ratings, or a dataset.
        split: Who is to differ: people, judges, or either.
        tolerance: On ordinal and interval levels, answers whose values on [0, 1] are no further apart than
            this do not differ.

    Raises:
        ArgumentError: There is no such kind, the tolerance is not on [0, 1], or judges are asked for of a
            dataset.
    """
    if split not in get_args(SplitKind):
        raise ArgumentError(f"split {split!r}: {nearest_key(str(split), get_args(SplitKind))}")
    if not 0.0 <= tolerance <= 1.0:
        raise ArgumentError(f"tolerance={tolerance!r}; give a number from 0 to 1")
    run = source if isinstance(source, EvalResult) else None
    if split == "judges" and run is None:
        raise ArgumentError("judges are split in a run; a dataset holds what people said alone: give a run")
    dataset = source.dataset if isinstance(source, EvalResult) else source
    said = {
        one.item_idx: _disputed(dataset, one.item_idx, one.report, split, tolerance)
        for one in (run.item_results if run is not None else ())
    }
    items = []
    for place in range(len(dataset)):
        found = said[place] if place in said else _disputed(dataset, place, None, split, tolerance)
        if found:
            items.append(_handed_out(dataset, place, found))
    return dataset.with_items(items)


def _handed_out(dataset: RubricDataset, place: int, said: Mapping[str, Json]) -> DataItem:
    """The item as judges see it, with what was said."""
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


def _disputed(
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
        criterion, name = declared.facing(submission), declared.name or ""
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
            found[name] = {who: dict(_told(answers)) for who, answers in said.items() if answers}
    return found


def _told(answers: Mapping[str, Answer]) -> Iterator[tuple[str, Json]]:
    for who, answer in answers.items():
        yield who, "CANNOT_ASSESS" if answer.cannot_assess else answer.code


def _differ(criterion: BaseCriterion, answers: Iterable[Answer], tolerance: float) -> bool:
    given = [answer for answer in answers if not answer.cannot_assess]
    if all(answer.code == given[0].code for answer in given):
        return False
    values = [answer.value for answer in given if answer.value is not None]
    near = tolerance and criterion.level in ("ordinal", "interval") and len(values) == len(given)
    return not near or max(values) - min(values) > tolerance
