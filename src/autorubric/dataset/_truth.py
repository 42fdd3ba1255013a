"""Labels of items: by name, checked against a rubric, and the majority of what raters said."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from autorubric._files import FilePath, nearest_key
from autorubric.criteria import BaseCriterion
from autorubric.dataset._item import DataItem, Labels
from autorubric.errors import ArgumentError, ReplyError
from autorubric.rubric import Rubric
from autorubric.values import Answer, Json, Submission


def stratum_labels(item: DataItem, rubric: Rubric | None) -> list[tuple[str, str]]:
    """The item's labels for stratifying: a criterion's name and the category, or the quarter of [0, 1]."""
    strata = []
    for name, label in (truth_of(item, rubric) or {}).items():
        answer = facing(rubric.by_name(name), item).parse_truth(label) if rubric else None
        if answer is not None and answer.index is None and answer.value is not None:
            strata.append((name, f"quarter {int(answer.value * 4)}"))
        else:
            strata.append((name, json.dumps(label if answer is None else _code(answer), sort_keys=True)))
    return strata


class LabelFault(NamedTuple):
    """A label that does not fit the rubric.

    Attributes:
        path: Where, from the item down.
        message: What is wrong.
    """

    path: FilePath
    message: str


def by_name(labels: Labels, rubric: Rubric | None) -> dict[str, Json]:
    """Labels by criterion name, without those that are None.

    Raises:
        ArgumentError: They are in a rubric's order and there is no rubric.
    """
    if isinstance(labels, Mapping):
        named = dict(labels)
    elif rubric is None:
        raise ArgumentError("labels in the order of a rubric need a rubric; give one, or give labels by name")
    else:
        named = dict(zip(rubric.names, labels, strict=True))
    return {name: label for name, label in named.items() if label is not None}


def truth_of(item: DataItem, rubric: Rubric | None) -> dict[str, Json] | None:
    """The item's labels by name, the majority of its ratings where `ground_truth` lacks one; None if none."""
    known = by_name(item.ground_truth, rubric) if item.ground_truth is not None else {}
    rated: dict[str, list[Json]] = {}
    for labels in item.ratings.values():
        for name, label in by_name(labels, rubric).items():
            rated.setdefault(name, []).append(label)
    for name, labels in rated.items():
        if name in known:
            continue
        agreed = majority(labels, facing(rubric.by_name(name), item) if rubric else None)
        if agreed is not None:
            known[name] = agreed
    if rubric is not None:
        known = {name: known[name] for name in rubric.names if name in known}
    return known or None


def majority(labels: Sequence[Json], criterion: BaseCriterion | None) -> Json:
    """The label that most raters gave; None where two are tied for it, or where nobody could assess.

    Labels are compared by what the criterion reads in them, so `yes` and `MET` are one. NA counts as a
    label; CANNOT_ASSESS is no vote. On an interval level, where equal numbers are chance, it is the mean
    of the ratings, or their lower median where the mean is no allowed answer. A criterion in parts has a
    label where each of its parts has one.
    """
    if criterion is None:
        return _mode(labels)
    answers = [answer for label in labels if (answer := criterion.parse_truth(label)) is not None]
    if criterion.part_fields:
        return _majority_by_part(criterion, [answer for answer in answers if not answer.abstains])
    codes = [_code(answer) for answer in answers if not answer.cannot_assess]
    if criterion.level == "interval" and codes and all(isinstance(code, (int, float)) for code in codes):
        return _centre(codes, criterion)
    return _mode(codes)


def _majority_by_part(criterion: BaseCriterion, answers: Sequence[Answer]) -> Json:
    rows = [criterion.part_answers(answer) for answer in answers]
    parts = criterion.part_fields.items()
    agreed = {
        name: _mode([answer.code for answer in column if answer is not None])
        for (name, _), column in zip(parts, zip(*rows, strict=True), strict=False)
    }
    return None if not agreed or None in agreed.values() else agreed


def _mode(labels: Sequence[Json]) -> Json:
    counts = Counter(json.dumps(label, sort_keys=True) for label in labels)
    ranked = counts.most_common(2)
    if not ranked or (len(ranked) == 2 and ranked[0][1] == ranked[1][1]):
        return None
    return json.loads(ranked[0][0])


def _centre(codes: Sequence[float], criterion: BaseCriterion) -> Json:
    mean = statistics.fmean(codes)
    try:
        criterion.parse_truth(mean)
    except ReplyError:
        return statistics.median_low(codes)
    return mean


def _code(answer: Answer) -> Json:
    return answer.label if answer.code is None else answer.code


def label_faults(item: DataItem, rubric: Rubric) -> Iterator[LabelFault]:
    """What in the item's ground truth, ratings and reasons does not fit its rubric."""
    if item.ground_truth is not None:
        yield from _faults_in(item, item.ground_truth, rubric, ("ground_truth",))
    for rater, labels in item.ratings.items():
        yield from _faults_in(item, labels, rubric, ("ratings", rater))
    for name in item.reasons:
        if name not in rubric.names:
            yield LabelFault(("reasons", name), f"no criterion {name!r}; {nearest_key(name, rubric.names)}")


def facing(criterion: BaseCriterion, item: DataItem) -> BaseCriterion:
    """The criterion as it faces the item, whose candidates its labels may name."""
    return criterion.facing(Submission.parse(item.submission))


def _faults_in(item: DataItem, labels: Labels, rubric: Rubric, at: FilePath) -> Iterator[LabelFault]:
    if isinstance(labels, list) and len(labels) != len(rubric):
        names = ", ".join(rubric.names)
        message = f"{len(labels)} labels for {len(rubric)} criteria; give one each, or null: {names}"
        yield LabelFault(at, message)
        return
    given: Iterable[tuple[int | str, Json]] = (
        labels.items() if isinstance(labels, dict) else enumerate(labels)
    )
    for key, label in given:
        name = key if isinstance(key, str) else rubric.names[key]
        if name not in rubric.names:
            yield LabelFault((*at, name), f"no criterion {name!r}; {nearest_key(name, rubric.names)}")
            continue
        try:
            facing(rubric.by_name(name), item).parse_truth(label)
        except ReplyError as error:
            yield LabelFault((*at, key), str(error))
