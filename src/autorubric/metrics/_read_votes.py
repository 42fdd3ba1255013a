"""Conversion of reports and labels to the votes table. No other module of the package reads reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from autorubric.criteria import BaseCriterion
from autorubric.errors import ArgumentError
from autorubric.metrics._item_scores import PANEL, TRUTH, Rater, ScoredItem, item_scores, regrouped
from autorubric.metrics._resampling import Array
from autorubric.metrics._run_protocols import GradedRun, LabelledDataset
from autorubric.metrics._table_rows import TableRows
from autorubric.metrics._votes_table import VotesTable
from autorubric.types import Decision, EnsembleCriterionReport, EnsembleEvaluationReport, RubricGroup
from autorubric.values import Answer, Submission

if TYPE_CHECKING:
    import pandas as pd


def read_votes(result: GradedRun, dataset: LabelledDataset) -> VotesTable:
    """Return the votes table of a run together with the labels of its dataset.

    Raises:
        ArgumentError: If a graded item's id is not in the dataset or occurs twice in the run, or if its
            submission differs from the dataset's.
    """
    reports = _reports_by_item(result, dataset)
    rows = TableRows()
    scored = [_read_item(i, reports.get(i), dataset, rows, i in reports) for i in range(len(dataset.items))]
    return rows.table(
        tuple(dataset.item_id(i) for i in range(len(dataset.items))), scores=_score_columns(scored)
    )


def votes_table(result: GradedRun, dataset: LabelledDataset) -> pd.DataFrame:
    """Return the votes table as a DataFrame with one row per vote, decision, human rating or label.

    Rows that have a `sample` are votes; the other rows are decisions, ratings and labels.
    """
    return read_votes(result, dataset).to_frame()


def _reports_by_item(
    result: GradedRun, dataset: LabelledDataset
) -> dict[int, EnsembleEvaluationReport | None]:
    """Return the reports keyed by the item's position in the dataset. Items are matched by id."""
    places = {dataset.item_id(i): i for i in range(len(dataset.items))}
    reports: dict[int, EnsembleEvaluationReport | None] = {}
    for one in result.item_results:
        item_id = one.item.id or str(one.item_idx)
        place = places.get(item_id)
        if place is None:
            raise ArgumentError(
                f"item {item_id!r} of the run is not in the dataset; pass the dataset that was graded"
            )
        if place in reports:
            raise ArgumentError(f"the run has two results for item {item_id!r}")
        texts = (one.item.submission, dataset.items[place].submission)
        if None not in texts and texts[0] != texts[1]:
            raise ArgumentError(
                f"the submission of item {item_id!r} in the dataset differs from the one graded; pass the "
                "dataset that was graded"
            )
        reports[place] = one.report
    return reports


def _read_item(
    i: int, report: EnsembleEvaluationReport | None, dataset: LabelledDataset, rows: TableRows, graded: bool
) -> Mapping[Rater, float | None]:
    by_name = {one.name: one for one in report.report} if report is not None else {}
    root = _root_of(i, dataset, by_name)
    submission = Submission.parse(dataset.items[i].submission)
    leaves = root.leaves if root is not None else ()
    criteria = {criterion.name or "": criterion.facing(submission) for criterion in leaves}
    for criterion in criteria.values():
        # Criteria are registered in rubric order, regardless of the order in which answers are read.
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
            # Grading raised an error, or the report lacks the criterion: it should have been judged.
            rows.add(i, criterion, PANEL, None, "failed" if report is None else "not_asked")
    for rater, labels in dataset.item_ratings(i).items():
        for name, raw in labels.items():
            if name in criteria and (answer := rows.parse(criteria[name], raw)) is not None:
                rows.add(i, criteria[name], ("human", rater), answer, _label_status(answer))
    return item_scores(ScoredItem(root, truth, by_name)) if root is not None else {}


def _root_of(
    i: int, dataset: LabelledDataset, by_name: Mapping[str, EnsembleCriterionReport]
) -> RubricGroup | None:
    """Return the item's criteria in the dataset's groups; None if there are no criteria.

    Graded criteria are taken from the reports, and all others from the dataset.
    """
    graded = {name: report.criterion for name, report in by_name.items()}
    try:
        return regrouped(dataset.get_item_rubric(i).root, graded)
    except ArgumentError:
        return RubricGroup("", tuple(graded.values())) if graded else None


def _label_status(answer: Answer | None) -> str:
    return "abstained" if answer is not None and answer.abstains else "answered"


def _read_criterion(
    i: int, criterion: BaseCriterion, report: EnsembleCriterionReport, rows: TableRows
) -> None:
    for vote in report.votes:
        rows.add_vote(i, criterion, vote)
    for judge, decision in report.judge_decisions.items():
        rows.add(i, criterion, ("judge", judge), decision.answer, _decision_status(decision))
    rows.add(i, criterion, PANEL, report.decision.answer, _decision_status(report.decision))
    if report.decision.tie:
        rows.mark_tie(i, criterion)


def _decision_status(decision: Decision) -> str:
    return "failed" if decision.assumed or decision.swayed else decision.status


def _score_columns(scored: Sequence[Mapping[Rater, float | None]]) -> dict[Rater, Array]:
    raters = dict.fromkeys(rater for scores in scored for rater in scores)
    return {
        rater: np.array([np.nan if (s := scores.get(rater)) is None else s for scores in scored], dtype=float)
        for rater in raters
    }
