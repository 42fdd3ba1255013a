"""Runs, and tables of labels from anywhere, as the one votes table that all figures are computed from."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from autorubric.criteria import BaseCriterion
from autorubric.errors import ArgumentError, ReplyError
from autorubric.metrics._item_scores import PANEL, TRUTH, Rater
from autorubric.metrics._label_rows import LabelRow, label_rows
from autorubric.metrics._read_votes import read_votes
from autorubric.metrics._run_protocols import GradedRun, LabelledDataset, OwnedRun
from autorubric.metrics._scales import Binary, Interval, Scale, infer_scale, is_missing
from autorubric.metrics._table_rows import Cell, TableRows
from autorubric.metrics._votes_table import DECIDED, MeasuredCriterion, VotesTable
from autorubric.values import Answer, Level, Submission

NO_ANSWER = {"NA": "abstained", "N/A": "abstained", "CANNOT_ASSESS": "abstained", "INVALID": "failed"}
"""Labels in upper case that are no answer where the scale does not have them, and what became of the vote."""


def table_of(
    result: Any,
    dataset: LabelledDataset | None = None,
    *,
    scales: Scale | Mapping[str, Scale] | None = None,
) -> VotesTable:
    """The votes table of a run, or of a long table of labels.

    To a long table is added what no row of it says: the truth (the dataset's labels, else what most people
    said), what each judge decides over its samples, and what the judges decide together. All three are the
    answer given most often, on an ordinal scale (but for the truth) the category nearest to the mean, on an
    interval the mean; where two lead there is none. Labels NA and CANNOT_ASSESS that are not on the scale are
    abstentions, INVALID a failure.

    Args:
        result: An `EvalResult`, or rows as in `LabelTable`.
        dataset: Where texts, rubrics and labels stand; the run's own by default, none for a long table.
        scales: Scales of a long table without a dataset: one for all criteria, or one for each by name.
            Where none is given they are inferred from the labels that occur.

    Raises:
        ArgumentError: It is neither, a label is on no scale, or rows and dataset do not belong together.
    """
    if isinstance(result, VotesTable):
        return result
    if isinstance(result, GradedRun):
        if scales is not None:
            raise ArgumentError("scales come from the criteria of a run; leave them out")
        return read_votes(result, dataset if dataset is not None else dataset_of(result))
    rows = label_rows(result)
    if dataset is None:
        homes, notes = _homes_on_scales(rows, scales)
        return _assemble(rows, homes, list(dict.fromkeys(r.item_id for r in rows)), notes)
    if scales is not None:
        raise ArgumentError("scales come from the dataset's criteria; leave them out")
    ids = [dataset.item_id(i) for i in range(len(dataset.items))]
    homes, labels = _homes_of(dataset, ids)
    _demand_known(rows, homes, ids)
    given = {(row.item_id, row.criterion) for row in rows if row.rater == TRUTH}
    return _assemble([*rows, *(row for row in labels if row[:2] not in given)], homes, ids)


def dataset_of(result: GradedRun) -> LabelledDataset:
    """The dataset that a run graded.

    Raises:
        ArgumentError: The run does not hold it.
    """
    if not isinstance(result, OwnedRun):
        raise ArgumentError("the run does not hold its dataset; give dataset")
    return result.dataset


class _Home(Protocol):
    """Where the answers to a criterion of an item stand, and how labels of it are read."""

    @property
    def level(self) -> Level: ...
    def read(self, rows: TableRows, row: LabelRow) -> Answer | None: ...
    def declared(self) -> Sequence[Answer]: ...
    def add(self, rows: TableRows, cell: _At, answer: Answer | None, status: str) -> None: ...


@dataclass(frozen=True, slots=True)
class _At:
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

    def add(self, rows: TableRows, cell: _At, answer: Answer | None, status: str) -> None:
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
                return _abstention(row.label) if code < 0 else self.measured.answers[code]
            number = float(row.label if row.number is None else row.number)
            return Answer(code=number, value=_on_unit(number, self.scale), label=str(row.label))
        except (ArgumentError, TypeError, ValueError) as error:
            raise ArgumentError(
                f"item {row.item_id!r}, criterion {row.criterion!r}, rater {row.rater[1]!r}: {error}"
            ) from None

    def declared(self) -> Sequence[Answer]:
        return self.measured.answers

    def add(self, rows: TableRows, cell: _At, answer: Answer | None, status: str) -> None:
        place = rows.criteria.setdefault(self.measured, len(rows.criteria))
        code = -1 if answer is None or answer.index is None else answer.index
        rows.add_answer(Cell(cell.item, place, cell.rater, cell.sample, cell.order), answer, status, code)


def _on_unit(number: float, scale: Interval) -> float | None:
    span = scale.span
    return None if span is None or scale.low is None else (number - scale.low) / span


def _homes_on_scales(
    rows: Sequence[LabelRow], scales: Scale | Mapping[str, Scale] | None
) -> tuple[dict[tuple[str, str], _Home], tuple[str, ...]]:
    """The scale of each row's criterion, and a note on those that were inferred."""
    labels: dict[str, list[Any]] = {}
    for row in rows:
        answers = labels.setdefault(row.criterion, [])
        if row.status in (None, "answered"):
            answers.append(row.label if row.number is None or row.label is not None else row.number)
    homes: dict[str, _Home] = {}
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
        raise ArgumentError(f"scales names {unknown!r}; the table's criteria are {list(labels)!r}")
    placed = {(row.item_id, row.criterion): homes[row.criterion] for row in rows if row.criterion in homes}
    return placed, tuple(_note(scale, names) for scale, names in inferred.items())


_MOST_CATEGORIES = 20


def _inferred(labels: Sequence[Any]) -> Scale | None:
    """The scale of the labels that occur; numbers that are many, or no whole ones, are an interval."""
    answers = [label for label in labels if not _is_no_answer(label) and not is_missing(label)]
    numbers = [one for one in answers if isinstance(one, int | float) and not isinstance(one, bool)]
    if answers and len(numbers) == len(answers):
        whole = all(float(one).is_integer() for one in numbers)
        if not whole or len(set(numbers)) > _MOST_CATEGORIES:
            return Interval()
    return infer_scale(answers)


def _note(scale: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return (
        f"the scale of {', '.join(names[:3])}{more} was inferred from the labels that occur, {scale}: unused "
        "options and their order are not known; give scales="
    )


def _is_no_answer(label: Any) -> bool:
    return isinstance(label, str) and label.strip().upper() in NO_ANSWER


def _abstention(label: Any) -> Answer:
    """An abstention in the rater's words: NA where it says so or names what the scale does not."""
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


def _homes_of(
    dataset: LabelledDataset, ids: Sequence[str]
) -> tuple[dict[tuple[str, str], _Home], list[LabelRow]]:
    """The criteria of each item, and the dataset's labels and ratings as rows."""
    homes: dict[tuple[str, str], _Home] = {}
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


_Homes: TypeAlias = Mapping[tuple[str, str], _Home]
"""Homes by item id and criterion name."""


def _demand_known(
    rows: Iterable[LabelRow], homes: Mapping[tuple[str, str], _Home], ids: Sequence[str]
) -> None:
    known = set(ids)
    for row in rows:
        if row.item_id not in known:
            raise ArgumentError(
                f"the table has an item {row.item_id!r} that the dataset does not have; its items are "
                f"{list(ids[:3])!r} …"
            )
        if (row.item_id, row.criterion) not in homes:
            names = [name for item_id, name in homes if item_id == row.item_id]
            raise ArgumentError(f"item {row.item_id!r} has no criterion {row.criterion!r}; it has {names!r}")


_Said: TypeAlias = "list[tuple[LabelRow, Answer | None, str]]"
"""What one rater said on a criterion of an item: rows, the answers read and what became of them."""


def _assemble(
    rows: Sequence[LabelRow], homes: _Homes, ids: Sequence[str], notes: tuple[str, ...] = ()
) -> VotesTable:
    built = TableRows()
    said: dict[tuple[str, str], dict[Rater, _Said]] = {}
    for row in rows:
        home = homes.get((row.item_id, row.criterion))
        if home is None or (row.label is None and row.number is None and row.status is None):
            continue
        answer, status = _read(home, built, row)
        said.setdefault((row.item_id, row.criterion), {}).setdefault(row.rater, []).append(
            (row, answer, status)
        )
    places = {item_id: i for i, item_id in enumerate(ids)}
    for (item_id, name), by_rater in said.items():
        _add_cell(built, homes[item_id, name], places[item_id], by_rater)
    return built.table(tuple(ids), scores={}, notes=notes)


def _read(home: _Home, built: TableRows, row: LabelRow) -> tuple[Answer | None, str]:
    if row.status is not None and row.status not in ("answered", "abstained"):
        return None, row.status
    option = _declared(home, row.label)
    if row.status == "abstained":
        return option if option is not None and option.na else _abstention(row.label), "abstained"
    if option is None and _is_no_answer(row.label):
        became = NO_ANSWER[row.label.strip().upper()]
        return (_abstention(row.label) if became == "abstained" else None), became
    answer = home.read(built, row)
    return answer, "abstained" if answer is not None and answer.abstains else "answered"


def _declared(home: _Home, label: Any) -> Answer | None:
    """The declared answer that is called so; None where none is."""
    if not isinstance(label, str):
        return None
    folded = label.strip().casefold()
    return next((one for one in home.declared() if (one.label or "").strip().casefold() == folded), None)


def _add_cell(built: TableRows, home: _Home, item: int, by_rater: Mapping[Rater, _Said]) -> None:
    """Adds what all raters said on a criterion of an item, and what that comes to."""
    decided: dict[Rater, tuple[Answer | None, str]] = {}
    for rater, said in by_rater.items():
        _refuse_repeats(rater, said)
        decisions = [entry for entry in said if entry[0].sample is None]
        if rater[0] == "judge":
            for row, answer, status in said:
                if row.sample is not None or len(decisions) == len(said):
                    home.add(built, _At(item, rater, row.sample or 0, row.order), answer, status)
        chosen = decisions or said
        decided[rater] = _decision(home, [(a, s) for _, a, s in chosen], nearest=True)
    people = [found for (kind, _), found in decided.items() if kind == "human"]
    judges = [found for (kind, _), found in decided.items() if kind == "judge"]
    if TRUTH not in decided and people:
        decided[TRUTH] = _decision(home, people, nearest=False)
    if PANEL not in decided and judges:
        decided[PANEL] = _decision(home, judges, nearest=True)
    for rater, (answer, status) in decided.items():
        # A label that people do not agree on is none.
        if status != "undecided" or rater != TRUTH:
            home.add(built, _At(item, rater, DECIDED), answer, status)


def _refuse_repeats(rater: Rater, said: _Said) -> None:
    times = Counter((row.sample, row.order) for row, _, _ in said)
    repeated = next((at for at, count in times.items() if count > 1), None)
    if repeated is not None:
        row = said[0][0]
        raise ArgumentError(
            f"{rater[1]!r} has two labels of criterion {row.criterion!r} of item {row.item_id!r} at sample "
            f"{repeated[0]!r}; number repeated passes in a column 'sample'"
        )


def _decision(
    home: _Home, said: Sequence[tuple[Answer | None, str]], *, nearest: bool
) -> tuple[Answer | None, str]:
    """What several answers come to; `undecided` where two lead."""
    if len(said) == 1:
        return said[0]
    answers = [answer for answer, status in said if status == "answered" and answer is not None]
    if not answers:
        statuses = [status for _, status in said]
        lead = "abstained" if "abstained" in statuses else statuses[0]
        return next(entry for entry in said if entry[1] == lead)
    chosen = _together(home, answers, nearest=nearest)
    return (None, "undecided") if chosen is None else (chosen, "answered")


def _together(home: _Home, answers: Sequence[Answer], *, nearest: bool) -> Answer | None:
    if home.level == "interval" and all(isinstance(answer.code, int | float) for answer in answers):
        values = [answer.value for answer in answers if answer.value is not None]
        mean = statistics.fmean(answer.code for answer in answers)
        return Answer(code=mean, value=statistics.fmean(values) if values else None, label=str(mean))
    if home.level == "ordinal" and nearest and all(answer.value is not None for answer in answers):
        mean = statistics.fmean(answer.value for answer in answers if answer.value is not None)
        away = sorted(
            (abs((one.value or 0.0) - mean), i)
            for i, one in enumerate(home.declared())
            if one.value is not None
        )
        tied = len(away) > 1 and away[1][0] - away[0][0] <= 1e-12
        return None if tied else home.declared()[away[0][1]]
    counts = Counter(repr(answer.code) for answer in answers).most_common(2)
    if len(counts) == 2 and counts[0][1] == counts[1][1]:
        return None
    return next(answer for answer in answers if repr(answer.code) == counts[0][0])
