"""From reports and labels to the votes table. Nothing else in this package reads reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from autorubric.criteria import BaseCriterion
from autorubric.errors import ArgumentError
from autorubric.metrics._item_scores import PANEL, TRUTH, Rater, ScoredItem, item_scores, regrouped
from autorubric.metrics._resampling import Array
from autorubric.metrics._votes_table import DECIDED, STATUSES, MeasuredCriterion, Outcome, VotesTable
from autorubric.rubric import Rubric
from autorubric.types import (
    Decision,
    EnsembleCriterionReport,
    EnsembleEvaluationReport,
    JudgeVote,
    RubricGroup,
)
from autorubric.values import Answer, Json, Submission

if TYPE_CHECKING:
    import pandas as pd


class IdentifiedItem(Protocol):
    """What tells an item from others."""

    @property
    def id(self) -> str | None:
        """Its id; None where its position stands for one."""
        ...

    @property
    def submission(self) -> Json:
        """What was graded."""
        ...


class GradedItem(Protocol):
    """What the table needs of an item's result."""

    @property
    def item_idx(self) -> int:
        """Position in the dataset that was graded."""
        ...

    @property
    def item(self) -> IdentifiedItem:
        """The item that was graded."""
        ...

    @property
    def report(self) -> EnsembleEvaluationReport | None:
        """The report; None where grading raised."""
        ...


class GradedRun(Protocol):
    """What the table needs of a run."""

    @property
    def item_results(self) -> Sequence[GradedItem]:
        """One result an item."""
        ...


class LabelledDataset(Protocol):
    """What the table needs of a dataset."""

    @property
    def items(self) -> Sequence[Any]:
        """The items, in order."""
        ...

    def item_id(self, i: int, /) -> str:
        """The item's id."""
        ...

    def get_item_rubric(self, i: int, /) -> Rubric:
        """The item's rubric."""
        ...

    def item_truth(self, i: int, /) -> Mapping[str, Json] | None:
        """The item's labels by criterion name."""
        ...

    def item_ratings(self, i: int, /) -> Mapping[str, Mapping[str, Json]]:
        """The item's labels by rater and criterion name."""
        ...


_NAN = float("nan")
_COLUMNS: dict[str, type] = {
    "item": np.int64,
    "criterion": np.int64,
    "rater": np.int64,
    "sample": np.int64,
    "order": object,
    "code": np.int64,
    "label": object,
    "value": float,
    "number": float,
    "na": bool,
    "status": np.int64,
}
_STATUS = {name: place for place, name in enumerate(STATUSES)}


@dataclass(slots=True)
class _Builder:
    """Rows as they are read."""

    criteria: dict[MeasuredCriterion, int] = field(default_factory=dict)
    known: dict[int, tuple[BaseCriterion, int]] = field(default_factory=dict)
    raters: dict[Rater, int] = field(default_factory=dict)
    read: dict[tuple[int, Any], Answer | None] = field(default_factory=dict)
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    outcomes: dict[int, dict[Outcome, int]] = field(default_factory=dict)

    def place(self, criterion: BaseCriterion) -> int:
        """Position of the criterion among those that occur."""
        found = self.known.get(id(criterion))
        if found is None:
            # Comparisons on different candidates are one criterion: its outcomes name none.
            declared = () if criterion.level == "ranking" else criterion.answers()
            plain = tuple(_bare(answer) for answer in declared)
            measured = MeasuredCriterion(criterion.name or "", criterion.level, plain)
            # The criterion is kept beside its number, or a later one could take over its id.
            found = (criterion, self.criteria.setdefault(measured, len(self.criteria)))
            self.known[id(criterion)] = found
        return found[1]

    def number(self, rater: Rater) -> int:
        """Position of the rater among those that occur."""
        return self.raters.setdefault(rater, len(self.raters))

    def code(self, criterion: BaseCriterion, answer: Answer) -> int:
        """Position of the answer among those declared, or of what it compares to among the outcomes."""
        standing = criterion.standing(answer)
        if standing:
            known = self.outcomes.setdefault(self.place(criterion), {})
            above = tuple(sum(other > own for other in standing) for own in standing)
            return known.setdefault(above, len(known))
        return -1 if answer.index is None or answer.cannot_assess else answer.index

    def parse(self, criterion: BaseCriterion, raw: Json) -> Answer | None:
        """The answer of a label; labels repeat, so each is read once."""
        if criterion.level == "ranking" or not isinstance(raw, str | int | float | bool):
            return criterion.parse_truth(raw)
        key = (self.place(criterion), (type(raw), raw))
        if key not in self.read:
            self.read[key] = criterion.parse_truth(raw)
        return self.read[key]

    def add(
        self,
        item: int,
        criterion: BaseCriterion,
        rater: Rater,
        answer: Answer | None,
        status: str,
        *,
        sample: int = DECIDED,
    ) -> None:
        """Adds a decision or a label, and what it says on each part of the criterion."""
        self._add_row(item, criterion, rater, answer, status, sample)
        self.add_parts(item, criterion, rater, answer, status, sample=sample)

    def add_parts(
        self,
        item: int,
        criterion: BaseCriterion,
        rater: Rater,
        answer: Answer | None,
        status: str,
        *,
        sample: int = DECIDED,
    ) -> None:
        """Adds what an answer says on each part of its criterion; of one on the whole alone, nothing."""
        for part, said in zip(criterion.part_fields.values(), _on_parts(criterion, answer), strict=False):
            if said is not None or answer is None:
                self._add_row(item, part, rater, said, status, sample)

    def _add_row(
        self,
        item: int,
        criterion: BaseCriterion,
        rater: Rater,
        answer: Answer | None,
        status: str,
        sample: int,
        order: str | None = None,
    ) -> None:
        who, became = self.number(rater), _STATUS[status]
        place = self.place(criterion)
        if answer is None or status not in ("answered", "abstained"):
            self.rows.append((item, place, who, sample, order, -1, None, _NAN, _NAN, False, became))
            return
        code = self.code(criterion, answer)
        value = _NAN if answer.value is None or status != "answered" else answer.value
        number = _as_number(answer.code) if status == "answered" else _NAN
        label = _words(answer)
        self.rows.append((item, place, who, sample, order, code, label, value, number, answer.na, became))

    def add_vote(self, item: int, criterion: BaseCriterion, vote: JudgeVote) -> None:
        """Adds a single vote, and what it says on each part of the criterion."""
        rater: Rater = ("judge", vote.judge_id)
        if criterion.level == "ranking":
            order = None if vote.order is None else ", ".join(vote.order)
            answer = criterion.parse_truth(vote.answer)
            self._add_row(item, criterion, rater, answer, vote.status, vote.sample, order)
            return
        answered = vote.status == "answered"
        code = vote.selected_index if vote.selected_index is not None else -1
        if vote.verdict is not None:
            code = {"UNMET": 0, "MET": 1}.get(str(vote.verdict), -1)
        given = vote.status in ("answered", "abstained")
        label = vote.selected_label or (None if vote.answer is None else str(vote.answer))
        self.rows.append(
            (
                item,
                self.place(criterion),
                self.number(rater),
                vote.sample,
                None,
                code if given else -1,
                label if given else None,
                _NAN if vote.value is None or not answered else vote.value,
                _as_number(vote.answer) if answered else _NAN,
                vote.na,
                _STATUS[vote.status],
            )
        )
        if criterion.part_fields:
            answer = criterion.parse_truth(vote.answer)
            self.add_parts(item, criterion, rater, answer, vote.status, sample=vote.sample)


def _on_parts(criterion: BaseCriterion, answer: Answer | None) -> tuple[Answer | None, ...]:
    """What an answer says on each part; an abstention abstains on all of them."""
    if answer is None or answer.abstains:
        return (answer,) * len(criterion.part_fields)
    return criterion.part_answers(answer)


def _bare(answer: Answer) -> Answer:
    """A declared answer without what does not tell scales apart."""
    return Answer(code=answer.code, value=answer.value, label=answer.label, index=answer.index, na=answer.na)


def _as_number(code: Json) -> float:
    return float(code) if isinstance(code, int | float) and not isinstance(code, bool) else _NAN


def _words(answer: Answer) -> str | None:
    if answer.label is not None:
        return answer.label
    if answer.cannot_assess:
        return "CANNOT_ASSESS"
    return None if answer.code is None else str(answer.code)


def read_votes(result: GradedRun, dataset: LabelledDataset) -> VotesTable:
    """The votes table of a run and the labels of its dataset.

    Raises:
        ArgumentError: The run has an item that the dataset has not, by id, or has with another text; or the
            same item twice.
    """
    reports = _reports_by_item(result, dataset)
    rows = _Builder()
    scored = [_read_item(i, reports.get(i), dataset, rows, i in reports) for i in range(len(dataset.items))]
    columns: list[Iterable[Any]] = list(zip(*rows.rows, strict=True)) or [()] * len(_COLUMNS)
    arrays: dict[str, Array] = {
        name: np.array(column, dtype=kind)
        for (name, kind), column in zip(_COLUMNS.items(), columns, strict=True)
    }
    return VotesTable(
        criteria=tuple(rows.criteria),
        raters=tuple(rows.raters),
        item_ids=tuple(dataset.item_id(i) for i in range(len(dataset.items))),
        scores=_score_columns(scored),
        outcomes={place: tuple(known) for place, known in rows.outcomes.items()},
        **arrays,
    )


def votes_table(result: GradedRun, dataset: LabelledDataset) -> pd.DataFrame:
    """The votes table as a DataFrame: one row a vote, a decision, a person's rating, or a label.

    Rows with a `sample` are single votes; those without are decisions and labels.
    """
    return read_votes(result, dataset).to_frame()


def _reports_by_item(
    result: GradedRun, dataset: LabelledDataset
) -> dict[int, EnsembleEvaluationReport | None]:
    """Reports by the position of their item in the dataset; items are matched by id, never by position."""
    places = {dataset.item_id(i): i for i in range(len(dataset.items))}
    reports: dict[int, EnsembleEvaluationReport | None] = {}
    for one in result.item_results:
        item_id = one.item.id or str(one.item_idx)
        place = places.get(item_id)
        if place is None:
            raise ArgumentError(
                f"the run graded an item {item_id!r} that the dataset does not have; give the dataset that "
                "was graded"
            )
        if place in reports:
            raise ArgumentError(f"the run has two results for the item {item_id!r}")
        texts = (one.item.submission, dataset.items[place].submission)
        if None not in texts and texts[0] != texts[1]:
            raise ArgumentError(
                f"item {item_id!r} of the dataset has another text than the one graded; give the dataset "
                "that was graded"
            )
        reports[place] = one.report
    return reports


def _read_item(
    i: int, report: EnsembleEvaluationReport | None, dataset: LabelledDataset, rows: _Builder, graded: bool
) -> Mapping[Rater, float | None]:
    by_name = {one.name: one for one in report.report} if report is not None else {}
    root = _root_of(i, dataset, by_name)
    submission = Submission.parse(dataset.items[i].submission)
    leaves = root.leaves if root is not None else ()
    criteria = {criterion.name or "": criterion.facing(submission) for criterion in leaves}
    for criterion in criteria.values():
        # In the rubric's order, whatever the order in which answers are read.
        for one in (criterion, *criterion.part_fields.values()):
            rows.place(one)
    truth = {
        name: rows.parse(criteria[name], raw)
        for name, raw in (dataset.item_truth(i) or {}).items()
        if name in criteria
    }
    for name, criterion in criteria.items():
        if truth.get(name) is not None:
            rows.add(i, criterion, TRUTH, truth[name], _label_status(truth[name]))
        if name in by_name:
            _read_criterion(i, criterion, by_name[name], rows)
        elif graded:
            # Grading raised, or the report lacks the criterion: it was to be judged and is not.
            rows.add(i, criterion, PANEL, None, "failed" if report is None else "not_asked")
    for rater, labels in dataset.item_ratings(i).items():
        for name, raw in labels.items():
            if name in criteria and (answer := rows.parse(criteria[name], raw)) is not None:
                rows.add(i, criteria[name], ("human", rater), answer, _label_status(answer))
    return item_scores(ScoredItem(root, truth, by_name)) if root is not None else {}


def _root_of(
    i: int, dataset: LabelledDataset, by_name: Mapping[str, EnsembleCriterionReport]
) -> RubricGroup | None:
    """The item's criteria: those that were graded as they were graded, the dataset's for the rest.

    Their groups are the dataset's. None where there is no criterion.
    """
    graded = {name: report.criterion for name, report in by_name.items()}
    try:
        return regrouped(dataset.get_item_rubric(i).root, graded)
    except ArgumentError:
        return RubricGroup("", tuple(graded.values())) if graded else None


def _label_status(answer: Answer | None) -> str:
    return "abstained" if answer is not None and answer.abstains else "answered"


def _read_criterion(
    i: int, criterion: BaseCriterion, report: EnsembleCriterionReport, rows: _Builder
) -> None:
    for vote in report.votes:
        rows.add_vote(i, criterion, vote)
    for judge, decision in report.judge_decisions.items():
        rows.add(i, criterion, ("judge", judge), decision.answer, _decision_status(decision))
    rows.add(i, criterion, PANEL, report.decision.answer, _decision_status(report.decision))


def _decision_status(decision: Decision) -> str:
    return "failed" if decision.assumed or decision.swayed else decision.status


def _score_columns(scored: Sequence[Mapping[Rater, float | None]]) -> dict[Rater, Array]:
    raters = dict.fromkeys(rater for scores in scored for rater in scores)
    return {
        rater: np.array([_NAN if (s := scores.get(rater)) is None else s for scores in scored], dtype=float)
        for rater in raters
    }
