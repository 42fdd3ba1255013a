"""Scores of an item by its truth, its panel and each judge alone, on common ground."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from autorubric.criteria import BaseCriterion
from autorubric.scoring import score_values
from autorubric.types import Decision, EnsembleCriterionReport
from autorubric.values import Answer

RaterKind: TypeAlias = Literal["judge", "panel", "human", "truth"]
Rater: TypeAlias = tuple[RaterKind, str]
"""Kind and name; a judge may be called `panel`."""

PANEL: Rater = ("panel", "panel")
TRUTH: Rater = ("truth", "truth")


@dataclass(frozen=True, slots=True)
class ScoredItem:
    """An item with its labels and reports.

    Attributes:
        criteria: Its criteria, in order.
        truth: Labels by criterion name.
        reports: Criterion reports by name.
    """

    criteria: tuple[BaseCriterion, ...]
    truth: Mapping[str, Answer | None]
    reports: Mapping[str, EnsembleCriterionReport]


def item_scores(item: ScoredItem) -> dict[Rater, float | None]:
    """Normalised scores of the truth, the panel and each judge; None where nothing is left to score.

    Only criteria with a label count, on every side, so that all scores have the same ground; a label of NA or
    CANNOT_ASSESS leaves the score of the truth. A judge without a single answer has no score.
    """
    labelled = [c for c in item.criteria if item.truth.get(c.name or "") is not None]
    if not labelled:
        return {}
    reports = [item.reports.get(c.name or "") for c in labelled]
    scores: dict[Rater, float | None] = {
        TRUTH: _score(labelled, [_label_value(item.truth[c.name or ""]) for c in labelled])
    }
    judges = dict.fromkeys(judge for report in reports if report for judge in report.judge_decisions)
    for judge in judges:
        decisions = [report.judge_decisions.get(judge) if report else None for report in reports]
        values = [_judge_value(made, report) for made, report in zip(decisions, reports, strict=True)]
        scores["judge", judge] = _score(labelled, values) if _any_judged(decisions) else None
    entering = [report.score_value if report else None for report in reports]
    panel = [report.decision if report else None for report in reports]
    scores[PANEL] = _score(labelled, entering) if _any_judged(panel) else None
    return scores


def _score(criteria: list[BaseCriterion], values: list[float | None]) -> float | None:
    return score_values(criteria, values).score


def _label_value(answer: Answer | None) -> float | None:
    return None if answer is None or answer.abstains else answer.value


def _any_judged(decisions: list[Decision | None]) -> bool:
    return any(d is not None and d.status in ("answered", "abstained") and not d.assumed for d in decisions)


def _judge_value(decision: Decision | None, report: EnsembleCriterionReport | None) -> float | None:
    """The value with which a judge's decision enters its own score.

    What an abstention is worth is the grader's policy, which the panel's value shows where it abstained too.
    """
    if decision is None or report is None:
        return None
    if decision.status == "answered":
        return decision.value
    return report.score_value if decision.status == report.status == "abstained" else None
