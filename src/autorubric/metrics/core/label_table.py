"""Conversion of runs and label tables to the votes table, from which all metrics are computed."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from autorubric.criteria.values import Answer, Level
from autorubric.datasets.item import TruthRule, truth_answer, truth_number
from autorubric.errors import ArgumentError
from autorubric.metrics.core.item_scores import (
    PANEL,
    TRUTH,
    LabelledDataset,
    OwnedRun,
    Rater,
    SupportsGradedRun,
    with_truth_rule,
)
from autorubric.metrics.core.label_rows import (
    NO_ANSWER,
    Column,
    LabelledCriterion,
    LabelRow,
    LabelRows,
    abstention,
    column_of,
    criteria_of_dataset,
    criteria_on_scales,
    declared_answer,
    distinct_codes,
    is_no_answer,
    join_columns,
    label_rows,
)
from autorubric.metrics.core.read_votes import read_votes
from autorubric.metrics.core.resampling import check_choice
from autorubric.metrics.core.scales import Array, Scale
from autorubric.metrics.core.votes_table import DECIDED, Cell, TableRows, VotesTable
from autorubric.support.names import fold_name


def table_of(
    result: Any,
    dataset: LabelledDataset | None = None,
    *,
    scales: Scale | Mapping[str, Scale] | None = None,
    truth: TruthRule | None = None,
) -> VotesTable:
    """Return the votes table of a run or of a long table of labels.

    Three kinds of rows are added to a long table if they are missing: the truth (the dataset's labels, or
    people's labels combined by `truth`), the decision of each judge over its samples, and the joint decision
    of all judges. A decision is the most frequent answer, the category nearest to the mean on an ordinal
    scale, or the mean on an interval scale. A tie gives no decision. Labels NA and CANNOT_ASSESS that are not
    on the scale are abstentions, and INVALID is a failure.
    """
    if isinstance(result, VotesTable):
        return result
    check_choice("truth", truth, TruthRule, or_none=True)
    if isinstance(result, SupportsGradedRun):
        if scales is not None:
            raise ArgumentError("the criteria of a run define the scales; omit scales")
        return read_votes(result, with_truth_rule(dataset_of(result, dataset), truth))
    rows = label_rows(result)
    if dataset is None:
        criteria, notes = criteria_on_scales(rows, scales)
        return _assemble(rows, lambda item_id, name: criteria.get(name), rows.item.values, truth, notes)
    if scales is not None:
        raise ArgumentError("the criteria of the dataset define the scales; omit scales")
    dataset = with_truth_rule(_check_dataset(dataset), truth)
    ids = [dataset.item_id(i) for i in range(len(dataset.items))]
    placed, labels = criteria_of_dataset(dataset, ids)
    given = rows.rows()
    known = set(ids)
    for row in given:
        if row.item_id not in known:
            raise ArgumentError(
                f"item {row.item_id!r} of the table is not in the dataset, which has {list(ids[:3])!r} …"
            )
        if (row.item_id, row.criterion) not in placed:
            names = [name for item_id, name in placed if item_id == row.item_id]
            raise ArgumentError(
                f"item {row.item_id!r} has no criterion {row.criterion!r}; available: {names!r}"
            )
    labelled = {row[:2] for row in given if row.rater == TRUTH}
    rows = LabelRows.of([*given, *(row for row in labels if row[:2] not in labelled)])
    return _assemble(rows, lambda *at: placed.get(at), ids, truth)


def dataset_of(result: SupportsGradedRun, dataset: LabelledDataset | None = None) -> LabelledDataset:
    """Return the dataset that has a run's labels: `dataset` if set, otherwise the run's own dataset."""
    if dataset is not None:
        return _check_dataset(dataset)
    if not isinstance(result, OwnedRun):
        raise ArgumentError("the run does not contain its dataset; pass dataset")
    return result.dataset


def _check_dataset(dataset: Any) -> LabelledDataset:
    if not isinstance(dataset, LabelledDataset):
        raise ArgumentError(
            "dataset must be a RubricDataset, for example from RubricDataset.from_file, or None; "
            f"got {type(dataset).__name__} {dataset!r:.60}"
        )
    return dataset


_Vote: TypeAlias = "tuple[Answer | None, str]"
"""An answer and its status."""

_RaterVotes: TypeAlias = "list[tuple[LabelRow, Answer | None, str]]"
"""One rater's labels on a criterion of an item: rows with their parsed answers and statuses."""


def _assemble(
    rows: LabelRows,
    find: Callable[[str, str], LabelledCriterion | None],
    ids: Sequence[str],
    truth: TruthRule | None,
    notes: tuple[str, ...] = (),
) -> VotesTable:
    built = TableRows()
    reader = _LabelReader(built, truth)
    is_given = [any(one is not None for one in vote[3:]) for vote in rows.vote.values]
    kept = np.flatnonzero(np.array(is_given, dtype=bool)[rows.vote.codes])
    item, name, vote = (Column(column.codes[kept], column.values) for column in rows)
    cells = join_columns([item, name])
    found = [find(*at) for at in cells.values]
    on = column_of(map(id, found))
    # Each distinct vote on a criterion is read once, in the order of the rows.
    reads = join_columns([Column(on.codes[cells.codes], on.values), vote])
    _, first = distinct_codes(reads.codes)
    votes: list[_Vote | None] = []
    for cell, (_, given) in zip(cells.codes[first].tolist(), reads.values, strict=True):
        criterion = found[cell]
        row = LabelRow(*cells.values[cell], *given)
        votes.append(None if criterion is None else _read(criterion, built, row))
    places = {item_id: i for i, item_id in enumerate(ids)}
    order = np.argsort(cells.codes, kind="stable")
    in_order, sizes = reads.codes[order], np.bincount(cells.codes, minlength=len(found))
    starts = np.cumsum(sizes) - sizes
    spans = []
    # Cells with the same votes have the same rows.
    kinds, first = _kinds(in_order, starts, sizes)
    for cell in first.tolist():
        start, criterion, end = len(built.rows), found[cell], starts[cell] + sizes[cell]
        if criterion is not None:
            by_rater: dict[Rater, _RaterVotes] = {}
            for code in in_order[starts[cell] : end].tolist():
                row, read = LabelRow(*cells.values[cell], *reads.values[code][1]), votes[code]
                assert read is not None
                by_rater.setdefault(row.rater, []).append((row, *read))
            _add_cell(reader, criterion, places[cells.values[cell][0]], by_rater)
        spans.append((start, len(built.rows)))
    items = np.array([places[item_id] for item_id, _ in cells.values], dtype=np.int64)
    repeated = items, np.array(spans, dtype=np.int64).reshape(-1, 2)[kinds]
    return built.table(tuple(ids), scores={}, notes=notes, repeated=repeated)


def _kinds(codes: Array, starts: Array, sizes: Array) -> tuple[Array, Array]:
    """Return codes of cells, equal if their spans of `codes` are, and the first cell of each code."""
    kinds, first = np.zeros(len(sizes), dtype=np.int64), np.zeros(min(len(sizes), 1), dtype=np.int64)
    base = int(codes.max(initial=-1)) + 2
    for place in range(int(sizes.max(initial=0))):
        there = np.flatnonzero(sizes > place)
        kinds = kinds * base
        kinds[there] += codes[starts[there] + place] + 1
        kinds, first = distinct_codes(kinds)
    return kinds, first


@dataclass(frozen=True, slots=True)
class _LabelReader:
    """A reader that combines answers; those of equal votes are combined once."""

    built: TableRows
    rule: TruthRule | None
    decisions: dict[Any, tuple[Any, _Vote]] = field(default_factory=dict)

    def decide(
        self, criterion: LabelledCriterion, votes: Sequence[_Vote], people_on: str | None = None
    ) -> _Vote:
        """Return the decision over samples or judges or, on a criterion, people; `undecided` in a tie."""
        if len(votes) == 1:
            return votes[0]
        key: Any = None
        if criterion.level != "interval":
            key = (id(criterion), people_on, *((id(answer), status) for answer, status in votes))
            if key in self.decisions:
                return self.decisions[key][1]
        made = (
            _decision(criterion, votes)
            if people_on is None
            else _truth(criterion, votes, self.rule, people_on)
        )
        if key is not None:
            # Answers are kept next to their decision, or new objects could reuse their ids.
            self.decisions[key] = (tuple(votes), made)
        return made


def _read(criterion: LabelledCriterion, built: TableRows, row: LabelRow) -> _Vote:
    if row.status is not None and row.status not in ("answered", "abstained"):
        return None, row.status
    option = declared_answer(criterion, row.label)
    if row.status == "abstained":
        return option if option is not None and option.na else abstention(row.label), "abstained"
    if option is None and is_no_answer(row.label):
        became = NO_ANSWER[fold_name(row.label).upper()]
        return (abstention(row.label) if became == "abstained" else None), became
    answer = criterion.read(built, row)
    return answer, "abstained" if answer is not None and answer.abstains else "answered"


def _add_cell(
    reader: _LabelReader, criterion: LabelledCriterion, item: int, by_rater: Mapping[Rater, _RaterVotes]
) -> None:
    """Add all raters' labels on a criterion of an item, and the decisions that follow from them."""
    built = reader.built
    decided: dict[Rater, _Vote] = {}
    for rater, votes in by_rater.items():
        if len(votes) > 1:
            _check_repeats(rater, votes)
        decisions = [entry for entry in votes if entry[0].sample is None]
        if rater[0] == "judge":
            for row, answer, status in votes:
                if row.sample is not None or len(decisions) == len(votes):
                    criterion.add(built, Cell(item, rater, row.sample or 0, row.order), answer, status)
        chosen = decisions or votes
        decided[rater] = reader.decide(criterion, [(a, s) for _, a, s in chosen])
    people = [found for (kind, _), found in decided.items() if kind == "human"]
    judges = [found for (kind, _), found in decided.items() if kind == "judge"]
    if TRUTH not in decided and people:
        decided[TRUTH] = reader.decide(criterion, people, next(iter(by_rater.values()))[0][0].criterion)
    if PANEL not in decided and judges:
        decided[PANEL] = reader.decide(criterion, judges)
    for rater, (answer, status) in decided.items():
        # A tie among people does not give a label.
        if status != "undecided" or rater != TRUTH:
            criterion.add(built, Cell(item, rater, DECIDED), answer, status)


def _check_repeats(rater: Rater, votes: _RaterVotes) -> None:
    times = Counter((row.sample, row.order) for row, _, _ in votes)
    repeated = next((at for at, count in times.items() if count > 1), None)
    if repeated is not None:
        row = votes[0][0]
        raise ArgumentError(
            f"rater {rater[1]!r} has several labels for criterion {row.criterion!r} of item {row.item_id!r} "
            f"in sample {repeated[0]!r}; number repeated passes in a 'sample' column"
        )


def _truth(criterion: LabelledCriterion, votes: Sequence[_Vote], rule: TruthRule | None, name: str) -> _Vote:
    answers = [answer for answer, _ in votes if answer is not None and not answer.cannot_assess]
    if not answers:
        return _decision(criterion, votes)
    numbers = [
        one.code for one in answers if isinstance(one.code, int | float) and not isinstance(one.code, bool)
    ]
    if criterion.level == "interval" and len(numbers) == len(answers):
        number = truth_number(numbers, rule)
        values = [answer.value for answer in answers if answer.value is not None]
        if number is None:
            return None, "undecided"
        value = truth_number(values, rule) if len(values) == len(answers) else None
        return Answer(code=number, value=value, label=str(number)), "answered"
    level: Level = "nominal" if criterion.level == "interval" else criterion.level
    chosen = truth_answer(answers, level, criterion.declared(), rule, name)
    if chosen is None:
        return None, "undecided"
    return chosen, "abstained" if chosen.abstains else "answered"


def _decision(criterion: LabelledCriterion, votes: Sequence[_Vote]) -> _Vote:
    answers = [answer for answer, status in votes if status == "answered" and answer is not None]
    if not answers:
        statuses = [status for _, status in votes]
        lead = "abstained" if "abstained" in statuses else statuses[0]
        return next(entry for entry in votes if entry[1] == lead)
    chosen = _combine(criterion, answers)
    return (None, "undecided") if chosen is None else (chosen, "answered")


def _combine(criterion: LabelledCriterion, answers: Sequence[Answer]) -> Answer | None:
    if criterion.level == "interval" and all(isinstance(answer.code, int | float) for answer in answers):
        values = [answer.value for answer in answers if answer.value is not None]
        mean = statistics.fmean(answer.code for answer in answers)
        return Answer(code=mean, value=statistics.fmean(values) if values else None, label=str(mean))
    if criterion.level == "ordinal" and all(answer.value is not None for answer in answers):
        mean = statistics.fmean(answer.value for answer in answers if answer.value is not None)
        away = sorted(
            (abs((one.value or 0.0) - mean), i)
            for i, one in enumerate(criterion.declared())
            if one.value is not None
        )
        tied = len(away) > 1 and away[1][0] - away[0][0] <= 1e-12
        return None if tied else criterion.declared()[away[0][1]]
    counts = Counter(repr(answer.code) for answer in answers).most_common(2)
    if len(counts) == 2 and counts[0][1] == counts[1][1]:
        return None
    return next(answer for answer in answers if repr(answer.code) == counts[0][0])
