"""Long tables of labels with one row per label, and the scales on which they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, get_args

import numpy as np

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.values import Answer, Level, Submission, VoteStatus
from autorubric.errors import ArgumentError, ReplyError
from autorubric.metrics.core.item_scores import PANEL, TRUTH, LabelledDataset, Rater, RaterKind
from autorubric.metrics.core.scales import Array, Binary, Interval, Ordinal, Scale, infer_scale, is_missing
from autorubric.metrics.core.votes_table import Cell, MeasuredCriterion, TableRows
from autorubric.support.frames import as_pandas, is_frame
from autorubric.support.names import fold_name, match_name, merge_names

if TYPE_CHECKING:
    import pandas as pd


_KINDS: Mapping[str, RaterKind] = {
    "human": "human", "judge": "judge", "llm": "judge", "panel": "panel", "truth": "truth", "gold": "truth",
}  # fmt: skip
NEEDED = ("item_id", "criterion", "rater")
"""Required columns of a long table."""

_READ = (
    *NEEDED, "label", "value", "rater_kind", "rater_type", "sample", "order", "number", "status",
)  # fmt: skip


class LabelRow(NamedTuple):
    item_id: str
    criterion: str
    rater: Rater
    sample: int | None  # index of the rater's pass; None for a decision, or if the table does not specify it
    order: str | None  # order in which the candidates were shown
    label: Any  # raw label from the table
    number: float | None  # the label as a number, if the table has a separate column for it
    status: str | None  # status of the vote; None if the table does not specify it


class Column(NamedTuple):
    """A column in which cells share their values."""

    codes: Array  # position of each cell's value
    values: list[Any]  # distinct values, in order of appearance

    def read(self, read: Callable[[Any], Any]) -> Column:
        """Return the column with `read` applied to each value."""
        return Column(self.codes, [read(value) for value in self.values])

    def cells(self) -> list[Any]:
        """Return the value of each cell."""
        return [self.values[code] for code in self.codes.tolist()]


def distinct_codes(keys: Array) -> tuple[Array, Array]:
    """Return codes of integers in order of appearance, and the position at which each code first appears."""
    import pandas as pd  # imported here so that pandas is loaded only when needed

    codes, distinct = pd.factorize(keys)
    first = np.empty(len(distinct), dtype=np.int64)
    # Of several assignments to a place, the last one counts.
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return codes, first


def join_columns(columns: Sequence[Column]) -> Column:
    """Return a column whose values are tuples of the columns' values."""
    codes, first = distinct_codes(columns[0].codes)
    for column in columns[1:]:
        if len(column.values) > 1:
            codes, first = distinct_codes(codes * len(column.values) + column.codes)
    parts = (Column(column.codes[first], column.values).cells() for column in columns)
    return Column(codes, list(zip(*parts, strict=True)))


def column_of(cells: Iterable[Any]) -> Column:
    """Return cells as a column; cells of different types are different values, such as 1 and True."""
    known: dict[Any, int] = {}
    codes = [known.setdefault((cell.__class__, cell), len(known)) for cell in cells]
    return Column(np.array(codes, dtype=np.int64), [cell for _, cell in known])


class LabelRows(NamedTuple):
    item: Column
    criterion: Column
    vote: Column  # the other fields of each `LabelRow`

    @classmethod
    def of(cls, rows: Sequence[LabelRow]) -> LabelRows:
        # A label that cannot be hashed is a value of its own.
        keys = [
            (row.label.__class__, *row[2:]) if isinstance(row.label, str | int | float | None) else at
            for at, row in enumerate(rows)
        ]
        codes, first = distinct_codes(column_of(keys).codes)
        votes = Column(codes, [rows[at][2:] for at in first.tolist()])
        return cls(column_of(row.item_id for row in rows), column_of(row.criterion for row in rows), votes)

    def rows(self) -> list[LabelRow]:
        cells = zip(self.item.cells(), self.criterion.cells(), self.vote.cells(), strict=True)
        return [LabelRow(item, criterion, *vote) for item, criterion, vote in cells]


def label_rows(table: Any) -> LabelRows:
    """Return the rows of a long table; raters and criteria with names that fold equally are merged."""
    table = as_pandas(table)
    rows = _frame_rows(table) if is_frame(table) else None
    if rows is None:
        rows = LabelRows.of([_row(number, row) for number, row in enumerate(_rows_of(table))])
    criteria = merge_names(rows.criterion.values, "criteria")
    raters = merge_names((one[0][1] for one in rows.vote.values), "raters")
    vote = rows.vote.read(lambda one: ((one[0][0], raters[one[0][1]]), *one[1:]))
    return LabelRows(rows.item, _names(rows.criterion.read(criteria.__getitem__)), vote)


def _frame_rows(frame: Any) -> LabelRows | None:
    """Read a DataFrame by column, parsing each distinct value once; None if it must be read by row."""
    names = list(frame.columns)
    if not {*NEEDED}.issubset(names) or len(set(names)) != len(names) or not {"label", "value"} & set(names):
        return None
    nothing = Column(np.zeros(len(frame), dtype=np.int64), [None])
    try:
        columns = {name: _frame_column(frame[name]) for name in names if name in _READ}
        kinds = columns.get("rater_kind", columns.get("rater_type", nothing))
        labels = columns["label" if "label" in columns else "value"]
        numbers = nothing
        if "label" in columns:
            given = [columns.get(name, nothing) for name in ("number", "value")]
            numbers = join_columns([labels.read(is_missing), *given]).read(lambda one: _number(*one))
        votes = (
            join_columns([columns["rater"].read(_name), kinds]).read(lambda pair: _rater(0, *pair)),
            columns.get("sample", nothing).read(lambda sample: _whole(0, sample)),
            columns.get("order", nothing).read(lambda order: None if is_missing(order) else str(order)),
            labels.read(lambda label: None if is_missing(label) else label),
            numbers,
            columns.get("status", nothing).read(lambda status: _status(0, status)),
        )
        item, criterion = _names(columns["item_id"]), _names(columns["criterion"])
        return LabelRows(item, criterion, join_columns(votes))
    except (ArgumentError, TypeError, ValueError):
        # Reading by row reports where an error is, and also accepts values that cannot be hashed.
        return None


def _frame_column(column: pd.Series) -> Column:
    import pandas as pd

    plain = isinstance(column.dtype, np.dtype) and column.dtype.kind in "iufb"
    if plain or pd.api.types.infer_dtype(column, skipna=False) == "string":
        codes, values = pd.factorize(column.to_numpy(), use_na_sentinel=False)
        return Column(codes, values.tolist())
    return column_of(column.tolist())


def _names(column: Column) -> Column:
    """Return a column as names; values of different types may have the same name."""
    named = column_of(map(_name, column.values))
    return Column(named.codes[column.codes], named.values)


def _name(value: Any) -> str:
    if is_missing(value):
        raise ValueError("no name")
    return str(value)


def _rows_of(table: Any) -> Iterator[Mapping[str, Any]]:
    records = getattr(table, "to_dict", None)
    rows = records("records") if callable(records) and hasattr(table, "columns") else table
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise ArgumentError(
            "result must be an EvalResult or a table of labels (a DataFrame or rows with item_id, criterion, "
            f"rater and label); got {type(table).__name__}"
        )
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise ArgumentError(
                f"row {number} of the label table must be a mapping with item_id, criterion, rater and "
                f"label; got {type(row).__name__}"
            )
        yield row


def _row(number: int, row: Mapping[str, Any]) -> LabelRow:
    missing = [name for name in NEEDED if is_missing(row.get(name))]
    if not ("label" in row or "value" in row):
        missing.append("label")
    if missing:
        raise ArgumentError(
            f"row {number} of the label table has no {', '.join(missing)}; columns: {list(row)!r}. "
            "Required columns: item_id, criterion, rater and label (or value)"
        )
    label = row["label"] if "label" in row else row["value"]
    return LabelRow(
        item_id=str(row["item_id"]),
        criterion=str(row["criterion"]),
        rater=_rater(number, str(row["rater"]), row.get("rater_kind", row.get("rater_type"))),
        sample=_whole(number, row.get("sample")),
        order=None if is_missing(row.get("order")) else str(row["order"]),
        label=None if is_missing(label) else label,
        number=_number(is_missing(label), row.get("number"), row.get("value")) if "label" in row else None,
        status=_status(number, row.get("status")),
    )


def _number(unlabelled: bool, number: Any, value: Any) -> float | None:
    """Return the row's number or, if it has neither a label nor a number, its value in [0, 1]."""
    for given in (number, value) if unlabelled else (number,):
        if not is_missing(given):
            return float(given)
    return None


def _status(number: int, status: Any) -> str | None:
    if is_missing(status):
        return None
    if status not in (*get_args(VoteStatus), "not_applicable"):
        raise ArgumentError(f"row {number} of the label table has an unknown status {status!r}")
    return str(status)


def _rater(number: int, name: str, given: Any) -> Rater:
    if is_missing(given):
        return {"truth": TRUTH, "panel": PANEL}.get(name, ("judge", name))
    kind = _KINDS.get(str(given).lower())
    if kind is None:
        raise ArgumentError(
            f"row {number} of the label table: rater kind must be one of {list(_KINDS)}; got {given!r}"
        )
    return {"panel": PANEL, "truth": TRUTH}.get(kind, (kind, name))


def _whole(number: int, sample: Any) -> int | None:
    if is_missing(sample):
        return None
    try:
        return int(sample)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"row {number} of the label table: sample must be an integer; got {sample!r}"
        ) from None


NO_ANSWER = {"NA": "abstained", "N/A": "abstained", "CANNOT_ASSESS": "abstained", "INVALID": "failed"}
"""Upper-case labels that are not answers (unless they are on the scale), with the status of their votes."""

ABSTENTION = "CANNOT_ASSESS"
"""Label of abstentions that count as a category."""


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

    def add(self, rows: TableRows, cell: Cell, answer: Answer | None, status: str) -> None:
        rows.add(cell, self.criterion, answer, status)


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
            span, low = self.scale.span, self.scale.low
            value = None if span is None or low is None else (number - low) / span
            return Answer(code=number, value=value, label=str(row.label))
        except (ArgumentError, TypeError, ValueError) as error:
            raise ArgumentError(
                f"item {row.item_id!r}, criterion {row.criterion!r}, rater {row.rater[1]!r}: {error}"
            ) from None

    def declared(self) -> Sequence[Answer]:
        return self.measured.answers

    def add(self, rows: TableRows, cell: Cell, answer: Answer | None, status: str) -> None:
        code = -1 if answer is None or answer.index is None else answer.index
        rows.add_answer(cell, rows.place(self.measured), answer, status, code)


LabelledCriterion: TypeAlias = _OnCriterion | _OnScale
"""A criterion of an item, with methods that parse labels and add answers to the table."""


def criteria_on_scales(
    rows: LabelRows, scales: Scale | Mapping[str, Scale] | None
) -> tuple[dict[str, LabelledCriterion], tuple[str, ...]]:
    """Return the `LabelledCriterion` of each criterion, and notes on inferred scales."""
    labels: dict[str, dict[Rater, list[Any]]] = {}
    for name, (rater, _, _, label, number, status) in join_columns([rows.criterion, rows.vote]).values:
        answers = labels.setdefault(name, {})
        if status in (None, "answered"):
            answers.setdefault(rater, []).append(label if number is None or label is not None else number)
    criteria: dict[str, LabelledCriterion] = {}
    inferred: dict[str, list[str]] = {}
    for name, seen in labels.items():
        scale = scales.get(name) if isinstance(scales, Mapping) else scales
        if scale is None:
            scale = _infer_scale(name, seen.values())
            if not isinstance(scale, Binary | None):
                inferred.setdefault(repr(scale), []).append(name)
        if scale is not None:
            criteria[name] = _OnScale(_measured_criterion(name, scale), scale)
    if isinstance(scales, Mapping) and (unknown := [name for name in scales if name not in labels]):
        raise ArgumentError(f"unknown criteria {unknown!r} in scales; the table has {list(labels)!r}")
    return criteria, tuple(_note(scale, names) for scale, names in inferred.items())


_MOST_CATEGORIES = 20


def _infer_scale(name: str, columns: Iterable[Sequence[Any]]) -> Scale | None:
    """Infer the scale from each rater's labels: an `Interval` for non-integers or many distinct numbers."""
    try:
        scale = infer_scale(*([one for one in labels if not is_no_answer(one)] for labels in columns))
    except ArgumentError as error:
        raise ArgumentError(f"criterion {name!r}: {error}") from None
    numbers = scale.labels if isinstance(scale, Ordinal) else ()
    many = len(numbers) > _MOST_CATEGORIES or not all(float(one).is_integer() for one in numbers)
    return Interval() if many else scale


def _note(scale: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return (
        f"the scale of {', '.join(names[:3])}{more} was inferred from the observed labels as {scale}; unused "
        "options and the order are unknown. Pass scales= to declare them"
    )


def is_no_answer(label: Any) -> bool:
    return isinstance(label, str) and fold_name(label).upper() in NO_ANSWER


def abstention(label: Any) -> Answer:
    """Return an abstention with the rater's label: CANNOT_ASSESS if it is that or None, otherwise NA."""
    text = None if label is None else str(label)
    cannot = text is None or text.strip().upper() == "CANNOT_ASSESS"
    return Answer(code=text, label=text, na=not cannot, cannot_assess=cannot)


def _measured_criterion(name: str, scale: Scale) -> MeasuredCriterion:
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


def criteria_of_dataset(
    dataset: LabelledDataset, ids: Sequence[str]
) -> tuple[dict[tuple[str, str], LabelledCriterion], list[LabelRow]]:
    """Return the criteria of each item, and the dataset's labels and ratings as rows."""
    criteria: dict[tuple[str, str], LabelledCriterion] = {}
    known: dict[int, _OnCriterion] = {}
    rows: list[LabelRow] = []
    for i, item_id in enumerate(ids):
        submission = Submission.parse(dataset.items[i].submission)
        for criterion in dataset.get_item_rubric(i):
            bound = criterion.bind(submission)
            criteria[item_id, criterion.name or ""] = known.setdefault(id(bound), _OnCriterion(bound))
        by_rater = [(TRUTH, dataset.item_truth(i) or {})]
        by_rater += [(("human", rater), labels) for rater, labels in dataset.item_ratings(i).items()]
        for rater, labels in by_rater:
            rows += [LabelRow(item_id, n, rater, None, None, raw, None, None) for n, raw in labels.items()]
    return criteria, rows


def declared_answer(criterion: LabelledCriterion, label: Any) -> Answer | None:
    """Return the declared answer with this label, as `match_name` compares; None if no answer matches."""
    if not isinstance(label, str):
        return None
    named = {one.label: one for one in reversed(criterion.declared()) if one.label is not None}
    name = match_name(label, named)
    return None if name is None else named[name]
