"""Criteria of label tables, declared by a dataset or by scales, and the parsing of their labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

from autorubric.criteria import BaseCriterion
from autorubric.errors import ArgumentError, ReplyError
from autorubric.metrics._item_scores import TRUTH, Rater
from autorubric.metrics._label_rows import LabelRow
from autorubric.metrics._run_protocols import LabelledDataset
from autorubric.metrics._scales import Binary, Interval, Scale, infer_scale, is_missing
from autorubric.metrics._table_rows import Cell, TableRows
from autorubric.metrics._votes_table import MeasuredCriterion
from autorubric.values import Answer, Level, Submission

NO_ANSWER = {"NA": "abstained", "N/A": "abstained", "CANNOT_ASSESS": "abstained", "INVALID": "failed"}
"""Upper-case labels that are not answers (unless they are on the scale), with the status of their votes."""

ABSTENTION = "CANNOT_ASSESS"
"""Label of abstentions that count as a category."""


class Home(Protocol):
    """A criterion of an item, with methods that parse labels and add answers to the table."""

    @property
    def level(self) -> Level: ...
    def read(self, rows: TableRows, row: LabelRow) -> Answer | None: ...
    def declared(self) -> Sequence[Answer]: ...
    def add(self, rows: TableRows, cell: At, answer: Answer | None, status: str) -> None: ...


class At(NamedTuple):
    item: int
    rater: Rater
    sample: int
    order: str | None = None


@dataclass(frozen=True, slots=True)
class _OnCriterion:
    criterion: BaseCriterion

    @property
    def level(self) -> Level:
        return self.criterion.level

    def read(self, rows: TableRows, row: LabelRow) -> Answer | None:
        raw = row.number if row.number is not None and self.level == "interval" else row.label
        try:
            return rows.parse(self.criterion, raw)
        except ReplyError as error:
            raise ArgumentError(f"item {row.item_id!r}, rater {row.rater[1]!r}: {error}") from None

    def declared(self) -> Sequence[Answer]:
        return self.criterion.answers()

    def add(self, rows: TableRows, cell: At, answer: Answer | None, status: str) -> None:
        rows.add(cell.item, self.criterion, cell.rater, answer, status, sample=cell.sample, order=cell.order)


@dataclass(frozen=True, slots=True)
class _OnScale:
    measured: MeasuredCriterion
    scale: Scale

    @property
    def level(self) -> Level:
        return self.measured.level

    def read(self, rows: TableRows, row: LabelRow) -> Answer | None:
        try:
            if not isinstance(self.scale, Interval):
                code = self.scale.code(row.label)
                return abstention(row.label) if code < 0 else self.measured.answers[code]
            number = float(row.label if row.number is None else row.number)
            return Answer(code=number, value=_on_unit(number, self.scale), label=str(row.label))
        except (ArgumentError, TypeError, ValueError) as error:
            raise ArgumentError(
                f"item {row.item_id!r}, criterion {row.criterion!r}, rater {row.rater[1]!r}: {error}"
            ) from None

    def declared(self) -> Sequence[Answer]:
        return self.measured.answers

    def add(self, rows: TableRows, cell: At, answer: Answer | None, status: str) -> None:
        place = rows.place_of(self.measured)
        code = -1 if answer is None or answer.index is None else answer.index
        rows.add_answer(Cell(cell.item, place, cell.rater, cell.sample, cell.order), answer, status, code)


def _on_unit(number: float, scale: Interval) -> float | None:
    span = scale.span
    return None if span is None or scale.low is None else (number - scale.low) / span


def homes_on_scales(
    rows: Sequence[LabelRow], scales: Scale | Mapping[str, Scale] | None
) -> tuple[dict[tuple[str, str], Home], tuple[str, ...]]:
    """Return the `Home` of each row's criterion, and notes on inferred scales."""
    labels: dict[str, list[Any]] = {}
    for row in rows:
        answers = labels.setdefault(row.criterion, [])
        if row.status in (None, "answered"):
            answers.append(row.label if row.number is None or row.label is not None else row.number)
    homes: dict[str, Home] = {}
    inferred: dict[str, list[str]] = {}
    for name, seen in labels.items():
        scale = scales.get(name) if isinstance(scales, Mapping) else scales
        if scale is None:
            scale = _inferred(seen)
            if not isinstance(scale, Binary | None):
                inferred.setdefault(repr(scale), []).append(name)
        if scale is not None:
            homes[name] = _OnScale(_measured(name, scale), scale)
    if isinstance(scales, Mapping) and (unknown := [name for name in scales if name not in labels]):
        raise ArgumentError(f"unknown criteria {unknown!r} in scales; the table has {list(labels)!r}")
    placed = {(row.item_id, row.criterion): homes[row.criterion] for row in rows if row.criterion in homes}
    return placed, tuple(_note(scale, names) for scale, names in inferred.items())


_MOST_CATEGORIES = 20


def _inferred(labels: Sequence[Any]) -> Scale | None:
    """Infer the scale from the labels: an `Interval` for non-integers or many distinct numbers."""
    answers = [label for label in labels if not is_no_answer(label) and not is_missing(label)]
    numbers = [one for one in answers if isinstance(one, int | float) and not isinstance(one, bool)]
    if answers and len(numbers) == len(answers):
        whole = all(float(one).is_integer() for one in numbers)
        if not whole or len(set(numbers)) > _MOST_CATEGORIES:
            return Interval()
    return infer_scale(answers)


def _note(scale: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return (
        f"the scale of {', '.join(names[:3])}{more} was inferred from the observed labels as {scale}; unused "
        "options and the order are unknown. Pass scales= to declare them"
    )


def is_no_answer(label: Any) -> bool:
    return isinstance(label, str) and label.strip().upper() in NO_ANSWER


def abstention(label: Any) -> Answer:
    """Return an abstention with the rater's label: CANNOT_ASSESS if it is that or None, otherwise NA."""
    said = None if label is None else str(label)
    cannot = said is None or said.strip().upper() == "CANNOT_ASSESS"
    return Answer(code=said, label=said, na=not cannot, cannot_assess=cannot)


def _measured(name: str, scale: Scale) -> MeasuredCriterion:
    if isinstance(scale, Interval):
        return MeasuredCriterion(name, "interval", ())
    level: Level = {"Binary": "binary", "Nominal": "nominal"}.get(type(scale).__name__, "ordinal")  # type: ignore[assignment]
    places = scale.positions
    values: list[float | None] = [None] * scale.size
    if places is not None and scale.size > 1:
        values = [float((place - places.min()) / (places.max() - places.min())) for place in places]
    answers = (
        Answer(code=label, value=value, label=str(label), index=index)
        for index, (label, value) in enumerate(zip(scale.labels, values, strict=True))
    )
    return MeasuredCriterion(name, level, tuple(answers))


def homes_of(
    dataset: LabelledDataset, ids: Sequence[str]
) -> tuple[dict[tuple[str, str], Home], list[LabelRow]]:
    """Return the criteria of each item, and the dataset's labels and ratings as rows."""
    homes: dict[tuple[str, str], Home] = {}
    rows: list[LabelRow] = []
    for i, item_id in enumerate(ids):
        submission = Submission.parse(dataset.items[i].submission)
        for criterion in dataset.get_item_rubric(i):
            homes[item_id, criterion.name or ""] = _OnCriterion(criterion.facing(submission))
        said = [(TRUTH, dataset.item_truth(i) or {})]
        said += [(("human", rater), labels) for rater, labels in dataset.item_ratings(i).items()]
        for rater, labels in said:
            rows += [LabelRow(item_id, n, rater, None, None, raw, None, None) for n, raw in labels.items()]
    return homes, rows


Homes: TypeAlias = Mapping[tuple[str, str], Home]
"""A mapping from (item id, criterion name) to `Home`."""


def declared_answer(home: Home, label: Any) -> Answer | None:
    """Return the declared answer with this label, ignoring case; None if no answer matches."""
    if not isinstance(label, str):
        return None
    folded = label.strip().casefold()
    return next((one for one in home.declared() if (one.label or "").strip().casefold() == folded), None)
