"""Runs made by hand: criteria, labels and decisions as reports."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from autorubric.criteria import BaseCriterion, BoundInt, Criterion, CriterionOption
from autorubric.datasets import RubricDataset
from autorubric.metrics import MetricsResult, compute_metrics
from autorubric.rubric import Rubric
from autorubric.scoring import Decision, EnsembleCriterionReport, EnsembleEvaluationReport, JudgeVote

FAILED = Decision(status="failed")


NOT_ASKED = Decision(status="not_asked")


NOT_APPLICABLE = Decision(status="not_applicable")


BINARY = Criterion(name="clear", requirement="It is clear.", weight=1.0)


ORDINAL = Criterion(
    name="depth",
    requirement="How deep is it?",
    weight=1.0,
    options=[
        CriterionOption(label="low", value=0.0),
        CriterionOption(label="some", value=0.4),
        CriterionOption(label="high", value=1.0),
        CriterionOption(label="n/a", value=0.0, na=True),
    ],
)


NOMINAL = Criterion(
    name="tone",
    requirement="Which tone?",
    weight=1.0,
    scale_type="nominal",
    options=[
        CriterionOption(label=label, value=value) for label, value in (("warm", 1), ("dry", 0.5), ("cold", 0))
    ],
)


class Stars(BaseCriterion):
    """A number of stars, from 1 to 5."""

    rating: BoundInt = BoundInt(min_val=1, max_val=5)


class Ordering(BaseCriterion):
    """A level without figures."""

    level = "ranking"
    place: BoundInt = BoundInt(min_val=1, max_val=5)


def decided(criterion: BaseCriterion, answer: Any) -> Decision:
    """The decision that a label stands for; a decision stands for itself."""
    if isinstance(answer, Decision):
        return answer
    read = criterion.parse_truth(answer)
    if read is None:
        return NOT_ASKED
    return Decision(status="abstained" if read.abstains else "answered", answer=read)


def report(
    criterion: BaseCriterion, panel: Any, judges: dict[str, Any] | None = None
) -> EnsembleCriterionReport:
    """One criterion's report with decisions from labels; a judge alone is the panel."""
    made = decided(criterion, panel)
    by_judge = {name: decided(criterion, answer) for name, answer in (judges or {"only": panel}).items()}
    votes = [
        JudgeVote(
            judge_id=name,
            status="failed" if one.status == "not_applicable" else one.status,
            answer=one.answer.code if one.answer else None,
            selected_label=one.answer.label if one.answer and criterion.level != "binary" else None,
            selected_index=one.answer.index if one.answer and criterion.level != "binary" else None,
            verdict=one.answer.label if one.answer and criterion.level == "binary" else None,  # type: ignore[arg-type]
            value=one.value,
            na=bool(one.answer and one.answer.na),
        )
        for name, one in by_judge.items()
    ]
    return EnsembleCriterionReport(
        criterion=criterion, decision=made, votes=votes, judge_decisions=by_judge, score_value=made.value
    )


def run(*reports: list[EnsembleCriterionReport] | None) -> Any:
    """A run with one report an item; None where grading raised."""
    return SimpleNamespace(
        item_results=[
            SimpleNamespace(
                item_idx=i,
                item=SimpleNamespace(id=None, submission=None),
                report=None if given is None else EnsembleEvaluationReport(score=0.5, report=given),
            )
            for i, given in enumerate(reports)
        ]
    )


def labelled(criteria: list[BaseCriterion], *truths: dict[str, Any] | None, **fields: Any) -> RubricDataset:
    """A dataset of these labels, under one rubric."""
    items = [{"submission": f"text {i}", "ground_truth": truth} for i, truth in enumerate(truths)]
    return RubricDataset(rubric=Rubric(criteria), items=items, **fields)


def binary_run(truth: list[Any], panel: list[Any], /, **judges: list[Any]) -> MetricsResult:
    """The figures of one binary criterion."""
    dataset = labelled([BINARY], *({"clear": label} if label else None for label in truth))
    reports = [
        [report(BINARY, answer, {name: given[i] for name, given in judges.items()} or None)]
        for i, answer in enumerate(panel)
    ]
    return compute_metrics(run(*reports), dataset, per_judge=True)


TRUTH = ["MET", "MET", "MET", "UNMET", "UNMET", "MET", "UNMET", "MET"]


PANEL = ["MET", "MET", "UNMET", "UNMET", "MET", "MET", "UNMET", "MET"]


class Pair(BaseCriterion):
    """Two numbers, which only have a value together."""

    first: BoundInt = BoundInt(min_val=1, max_val=5)
    second: BoundInt = BoundInt(min_val=1, max_val=5)


SAME_LABELS = {"low": 0.0, "some": 0.9, "high": 1.0}
