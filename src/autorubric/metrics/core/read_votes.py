"""Reports and labels as a votes table, and as one column per rater over cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.values import Answer, Submission
from autorubric.errors import ArgumentError
from autorubric.metrics.core.item_scores import (
    PANEL,
    TRUTH,
    IdentifiedItem,
    LabelledDataset,
    Rater,
    ScoredItem,
    SharedScores,
    SupportsGradedRun,
    item_scores,
    regroup,
)
from autorubric.metrics.core.scales import Array, Codes
from autorubric.metrics.core.votes_table import (
    ABSENT,
    ABSTAINED,
    ANSWERED,
    UNDECIDED,
    Cell,
    MeasuredCriterion,
    Outcome,
    TableRows,
    VotesTable,
)
from autorubric.scoring.policies import RubricGroup
from autorubric.scoring.reports import EnsembleCriterionReport
from autorubric.scoring.votes import Decision
from autorubric.support.objects import IdentityCache, fewer_gc_collections

if TYPE_CHECKING:
    import pandas as pd


def read_votes(result: SupportsGradedRun, dataset: LabelledDataset) -> VotesTable:
    """Return the votes table of a run together with the labels of its dataset.

    The table of a stored run with its own dataset is kept, read-only, as long as the run's results.
    Datasets only grow, so it is valid for the same number of items.
    """
    # The run itself may have got another dataset, for example with other labels.
    if getattr(result.item_results, "dataset", None) is not dataset:
        return _read_table(result, dataset)
    kept, size = _TABLES.of(result.item_results), len(dataset.items)
    if size not in kept:
        kept.clear()
        kept[size] = _read_table(result, dataset)
        kept[size].make_read_only()
    return kept[size]


_TABLES: Final = IdentityCache[Any, dict[int, VotesTable]](lambda results: {})


@fewer_gc_collections()
def _read_table(result: SupportsGradedRun, dataset: LabelledDataset) -> VotesTable:
    found, is_shared = _reports_by_item(result, dataset)
    rows = TableRows()
    reader = _ItemReader(dataset, rows, is_shared=is_shared)
    graded, scored, ids = next(found, None), [], []
    for i in range(len(dataset.items)):
        # Items of a stored run are read from its folder, except for the last one.
        ids.append(dataset.item_id(i))
        if graded is not None and graded[0] == i:
            scored.append(reader.read(i, graded[1], graded=True))
            graded = next(found, None)
        else:
            scored.append(reader.read(i, None, graded=False))
    return rows.table(tuple(ids), scores=_score_columns(scored))


def votes_table(result: SupportsGradedRun, dataset: LabelledDataset) -> pd.DataFrame:
    """Return the votes table as a DataFrame with one row per vote, decision, human rating or label.

    Rows that have a `sample` are votes; the other rows are decisions, ratings and labels.
    """
    return read_votes(result, dataset).to_frame()


def _reports_by_item(
    result: SupportsGradedRun, dataset: LabelledDataset
) -> tuple[Iterator[tuple[int, Sequence[EnsembleCriterionReport] | None]], bool]:
    """Return place (by id) and reports of each graded item in the dataset's order, and if they are shared."""
    stored: Any = result.item_results
    own = getattr(stored, "dataset", None)
    if own is not None and own.items is dataset.items and own.rubric is getattr(dataset, "rubric", None):
        return stored.criterion_reports(), True
    places = {dataset.item_id(i): i for i in range(len(dataset.items))}
    reports: dict[int, Sequence[EnsembleCriterionReport] | None] = {}
    is_shared = hasattr(stored, "criterion_reports")
    graded: Iterable[tuple[int, IdentifiedItem, Sequence[EnsembleCriterionReport] | None]] = (
        ((at, stored.dataset.items[at], found) for at, found in stored.criterion_reports())
        if is_shared
        else ((one.item_idx, one.item, one.report and one.report.report) for one in stored)
    )
    for position, item, found in graded:
        item_id = item.id or str(position)
        place = places.get(item_id)
        if place is None:
            raise ArgumentError(
                f"item {item_id!r} of the run is not in the dataset; pass the dataset that was graded"
            )
        if place in reports:
            raise ArgumentError(f"the run has two results for item {item_id!r}")
        texts = (item.submission, dataset.items[place].submission)
        if None not in texts and texts[0] != texts[1]:
            raise ArgumentError(
                f"the submission of item {item_id!r} in the dataset differs from the one graded; pass the "
                "dataset that was graded"
            )
        reports[place] = found
    return iter(sorted(reports.items(), key=lambda one: one[0])), is_shared


_SharedRubric: TypeAlias = tuple[RubricGroup, Mapping[str, BaseCriterion]]
"""The tree and the criteria of a rubric, if they are the same for all of its items."""


class _ItemReader:
    """Adds the rows of items to a table; rows of equal votes and labels are created once."""

    def __init__(self, dataset: LabelledDataset, rows: TableRows, *, is_shared: bool) -> None:
        self._dataset = dataset
        self._rows = rows
        # Whether equal votes have the same report as object.
        self._is_shared = is_shared
        self._rubrics: dict[tuple[int, ...], tuple[Any, _SharedRubric | None]] = {}
        self._scores = SharedScores()

    def read(
        self, i: int, reports: Sequence[EnsembleCriterionReport] | None, *, graded: bool
    ) -> Mapping[Rater, float | None]:
        """Add the rows of an item and return its scores."""
        shared = self._shared_rubric(i, reports or ()) if self._is_shared else None
        by_name = {one.name: one for one in reports} if reports is not None else {}
        root = shared[0] if shared else _root_of(i, self._dataset, by_name)
        criteria = shared[1] if shared else self._bind(i, root)
        truth = {
            name: self._rows.parse(criteria[name], raw)
            for name, raw in (self._dataset.item_truth(i) or {}).items()
            if name in criteria
        }
        absent = "" if not graded else "failed" if reports is None else "not_asked"
        for name, criterion in criteria.items():
            report, answer = by_name.get(name), truth.get(name)
            key: Any = (id(criterion), id(answer), id(report), absent) if shared else None
            add = partial(_read_cell, i, criterion, answer, report, absent, self._rows)
            self._rows.repeat(i, key, (answer, report), add)
            if report is not None and report.decision.tie:
                self._rows.mark_tie(i, criterion)
        for rater, labels in self._dataset.item_ratings(i).items():
            for name, raw in labels.items():
                if name in criteria and (answer := self._rows.parse(criteria[name], raw)) is not None:
                    cell, criterion = Cell(i, ("human", rater)), criteria[name]
                    key = (id(criterion), rater, id(answer)) if shared else None
                    add = partial(self._rows.add, cell, criterion, answer, _label_status(answer))
                    self._rows.repeat(i, key, (answer,), add)
        if root is None:
            return {}
        return item_scores(ScoredItem(root, truth, by_name), self._scores if shared else None)

    def _shared_rubric(self, i: int, reports: Sequence[EnsembleCriterionReport]) -> _SharedRubric | None:
        try:
            rubric = self._dataset.get_item_rubric(i)
        except ArgumentError:
            return None
        key = (id(rubric), *[id(one.criterion) for one in reports])
        known = self._rubrics.get(key)
        if known is None:
            root = _root_of(i, self._dataset, {one.name: one for one in reports})
            shared = None
            if root is not None and not any(one.level == "ranking" for one in root.leaves):
                self._place(root.leaves)
                shared = root, {one.name or "": one for one in root.leaves}
            # These objects are stored, because others could reuse their ids if they were deleted.
            known = self._rubrics[key] = (rubric, [one.criterion for one in reports]), shared
        return known[1]

    def _bind(self, i: int, root: RubricGroup | None) -> Mapping[str, BaseCriterion]:
        submission = Submission.parse(self._dataset.items[i].submission)
        criteria = [one.bind(submission) for one in root.leaves] if root is not None else []
        self._place(criteria)
        return {one.name or "": one for one in criteria}

    def _place(self, criteria: Iterable[BaseCriterion]) -> None:
        # Criteria are registered in rubric order, regardless of the order in which answers are read.
        for criterion in criteria:
            for one in (criterion, *criterion.part_fields.values()):
                self._rows.place(one)


def _read_cell(
    i: int,
    criterion: BaseCriterion,
    truth: Answer | None,
    report: EnsembleCriterionReport | None,
    absent: str,
    rows: TableRows,
) -> None:
    """Add the rows of an item on one criterion; `absent` is the panel's status if there is no report."""
    if truth is not None:
        rows.add(Cell(i, TRUTH), criterion, truth, _label_status(truth))
    if report is None:
        if absent:
            rows.add(Cell(i, PANEL), criterion, None, absent)
        return
    for vote in report.votes:
        rows.add_vote(i, criterion, vote)
    decisions: list[tuple[Rater, Decision]] = [
        (("judge", judge), decision) for judge, decision in report.judge_decisions.items()
    ]
    for rater, decision in (*decisions, (PANEL, report.decision)):
        status = "failed" if decision.assumed or decision.swayed else decision.status
        soft = None if decision.probabilities is None else decision
        rows.add(Cell(i, rater), criterion, decision.answer, status, soft)


def _root_of(
    i: int, dataset: LabelledDataset, by_name: Mapping[str, EnsembleCriterionReport]
) -> RubricGroup | None:
    """Return the item's criteria, from reports if graded, in the dataset's groups; None if there are none."""
    graded = {name: report.criterion for name, report in by_name.items()}
    try:
        return regroup(dataset.get_item_rubric(i).root, graded)
    except ArgumentError:
        return RubricGroup("", tuple(graded.values())) if graded else None


def _label_status(answer: Answer | None) -> str:
    return "abstained" if answer is not None and answer.abstains else "answered"


def _score_columns(scored: Sequence[Mapping[Rater, float | None]]) -> dict[Rater, Array]:
    raters = dict.fromkeys(rater for scores in scored for rater in scores)
    return {
        rater: np.array([np.nan if (s := scores.get(rater)) is None else s for scores in scored], dtype=float)
        for rater in raters
    }


CannotAssessMode: TypeAlias = Literal["exclude", "as_unmet", "as_category"]
NaMode: TypeAlias = Literal["exclude", "as_worst", "as_category"]


@dataclass(frozen=True, slots=True)
class Modes:
    # whether CANNOT_ASSESS is excluded, counts as the worst answer or is its own category
    cannot_assess: CannotAssessMode = "exclude"
    # whether NA options are excluded, count as the worst answer or are their own category
    na: NaMode = "exclude"

    @property
    def has_category(self) -> bool:
        return "as_category" in (self.cannot_assess, self.na)


@dataclass(frozen=True, slots=True)
class Column:
    """One rater's answers over the cells, as arrays of shape `(n_cells,)`."""

    status: Codes  # position of the vote's status in `STATUSES`
    # Position of the answer among the criterion's categories, not counting NA options. Abstentions that count
    # as a category have the position after the last one; -1 means no answer.
    code: Codes
    value: Array  # value of the answer in [0, 1]; NaN if it has no value
    number: Array  # the answer in its own units if it is a number; otherwise NaN

    def take(self, cells: slice) -> Column:
        return Column(self.status[cells], self.code[cells], self.value[cells], self.number[cells])

    @property
    def arrays(self) -> tuple[Array, ...]:
        return self.status, self.code, self.value, self.number

    @property
    def answered(self) -> Array:
        """Mask of the cells with an answer that counts, shape `(n_cells,)`."""
        return (self.code >= 0) | ~np.isnan(self.value) | ~np.isnan(self.number)

    def only(self, which: Array) -> Column:
        """Return the column with all cells outside the mask `which`, of shape `(n_cells,)`, emptied."""
        return Column(
            np.where(which, self.status, ABSENT),
            np.where(which, self.code, -1),
            np.where(which, self.value, np.nan),
            np.where(which, self.number, np.nan),
        )


def count_unanswered(truth: Column, rater: Column) -> dict[str, int]:
    """Split the labelled cells without a pair: whether the label or only the rater has no answer that counts.

    `answered_na` counts the cells without an answer in the label that the rater answered.
    """
    without = (truth.status > 0) & ~truth.answered
    return {
        "label_unanswered": int(np.count_nonzero(without)),
        "judge_unanswered": int(np.count_nonzero(truth.answered & ~rater.answered)),
        "answered_na": int(np.count_nonzero(without & rater.answered)),
    }


@dataclass(frozen=True, slots=True)
class Cells:
    """All cells, sorted by criterion and item."""

    criteria: tuple[MeasuredCriterion, ...]
    spans: tuple[slice, ...]  # slice of the cells of each criterion
    item: Codes  # position of each cell's item, shape `(n_cells,)`
    n_items: int
    truth: Column
    raters: dict[Rater, Column]  # decisions of the panel and of each judge, by rater
    scores: dict[Rater, Array]  # item scores by rater; see `VotesTable`
    # outcomes of comparisons, by position of the criterion; see `VotesTable`
    outcomes: Mapping[int, tuple[Outcome, ...]]
    # by rater, the samples in which a judge answered in two orders of the candidates, shape `(n_samples, 3)`:
    # position of the criterion, position of the item, and 1 if both answers agree
    positions: dict[Rater, Codes]
    # mask of the cells on which the judges' votes tie, whether or not the panel gives an answer; shape
    # `(n_cells,)`
    tied: Array

    @property
    def criterion(self) -> Codes:
        """Position of each cell's criterion, shape `(n_cells,)`."""
        return np.repeat(np.arange(len(self.criteria)), [span.stop - span.start for span in self.spans])

    def size(self, place: int, modes: Modes) -> int:
        """Return the number of codes at `place`: categories (plus one if abstentions count), or outcomes."""
        if self.criteria[place].level == "ranking":
            return len(self.outcomes.get(place, ()))
        n_categories = len(self.criteria[place].categories)
        return n_categories + modes.has_category if n_categories else 0


def cells_of(table: VotesTable, modes: Modes) -> Cells:
    """Return the decisions and labels of a votes table by cell, with abstentions treated as in `modes`."""
    keys = table.criterion * table.n_items + table.item
    rows = {rater: table.rows_of(rater) for rater in table.raters if rater[0] != "human"}
    seen = np.unique(np.concatenate([keys[:0], *(keys[mine] for mine in rows.values())]))
    where = {rater: np.searchsorted(seen, keys[mine]) for rater, mine in rows.items()}
    criterion, item = (seen // table.n_items, seen % table.n_items) if len(seen) else (seen, seen)
    ends = np.searchsorted(criterion, np.arange(len(table.criteria) + 1))
    spans = tuple(slice(int(a), int(b)) for a, b in pairwise(ends))

    def column(rater: Rater) -> Column:
        none = np.zeros(0, dtype=np.int64)
        return _column(table, rows.get(rater, none), where.get(rater, none), spans, modes)

    judges: list[Rater] = [("judge", judge) for judge in table.judges]
    panel = column(PANEL)
    tied_keys = table.tied[:, 1] * table.n_items + table.tied[:, 0]
    return Cells(
        criteria=table.criteria,
        spans=spans,
        item=item,
        n_items=table.n_items,
        truth=column(TRUTH),
        raters={PANEL: panel, **{rater: column(rater) for rater in judges}},
        scores={TRUTH: np.full(table.n_items, np.nan), **table.scores},
        outcomes=table.outcomes,
        positions=_positions(table),
        tied=np.isin(seen, tied_keys) | (panel.status == UNDECIDED),
    )


def _positions(table: VotesTable) -> dict[Rater, Codes]:
    """Return `Cells.positions`; the panel has the samples of all judges."""
    found: dict[Rater, list[tuple[int, int, int]]] = {rater: [] for rater in (PANEL, *table.raters)}
    first: dict[tuple[int, int, int, int], tuple[str, int]] = {}
    ranked = [place for place, criterion in enumerate(table.criteria) if criterion.level == "ranking"]
    answered = np.isin(table.criterion, ranked) & (table.status == ANSWERED)
    for row in np.flatnonzero(answered) if ranked else ():
        if table.order[row] is None:
            continue
        place, who = int(table.criterion[row]), int(table.rater[row])
        key = (int(table.item[row]), place, who, int(table.sample[row]))
        order, code = first.setdefault(key, (table.order[row], int(table.code[row])))
        if order != table.order[row]:
            sample = (place, int(table.item[row]), int(code == table.code[row]))
            found[table.raters[who]].append(sample)
            found[PANEL].append(sample)
    return {rater: np.array(mine, dtype=np.int64).reshape(-1, 3) for rater, mine in found.items()}


def _column(table: VotesTable, rows: Codes, where: Codes, spans: Sequence[slice], modes: Modes) -> Column:
    """Return a rater's answers by cell: `rows` of the table go to the cells `where`."""
    n = spans[-1].stop if spans else 0
    status, code = np.zeros(n, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    value, number = np.full(n, np.nan), np.full(n, np.nan)
    na = np.zeros(n, dtype=bool)
    status[where] = table.status[rows]
    code[where], value[where], number[where] = table.code[rows], table.value[rows], table.number[rows]
    na[where] = table.na[rows]
    both_modes = ((True, modes.na), (False, modes.cannot_assess))
    counted = [(is_na, mode) for is_na, mode in both_modes if mode != "exclude"]
    for measured, mine in zip(table.criteria, spans, strict=True):
        code[mine] = _categories(measured, code[mine])
        for is_na, mode in counted:
            abstained = (status[mine] == ABSTAINED) & (na[mine] == is_na)
            places, answers = mine.start + np.flatnonzero(abstained), measured.categories
            if answers and mode == "as_category":
                code[places] = len(answers)
            elif answers:
                worst = min(range(len(answers)), key=lambda at: answers[at].value or 0.0)
                code[places] = worst
                if (lowest := answers[worst].value) is not None:
                    value[places] = lowest
    return Column(status, code, value, number)


def _categories(measured: MeasuredCriterion, code: Codes) -> Codes:
    """Convert positions among all declared answers to positions among the categories."""
    if measured.level == "ranking" or measured.answers == measured.categories != ():
        return code
    places, count = [], 0
    for answer in measured.answers:
        places.append(-1 if answer.na else count)
        count += not answer.na
    return np.array([*places, -1], dtype=np.int64)[code]
