"""A rubric with a threshold, for verifying or choosing candidates."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from autorubric._files import shortened
from autorubric.errors import ArgumentError, JudgeError
from autorubric.graders import CriterionGrader, Grader, GradingTask
from autorubric.rubric import Rubric, SupportsGrade
from autorubric.strategy._hints import Hint
from autorubric.strategy._ledger import current_ledger
from autorubric.strategy._sampling import context_text, submission_of
from autorubric.types import EnsembleCriterionReport, EnsembleEvaluationReport
from autorubric.values import Json, TokenUsage

_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricEvaluation:
    """A rubric's evaluation of one candidate.

    Attributes:
        reports: The report; for a reevaluation, one for each fresh grading.
        min_score: The score required.
    """

    reports: tuple[EnsembleEvaluationReport, ...]
    min_score: float

    @property
    def score(self) -> float | None:
        """Return the mean score of the reports that have one; None if none has."""
        scores = [report.score for report in self.reports if report.score is not None]
        return math.fsum(scores) / len(scores) if scores else None

    @property
    def value(self) -> bool | None:
        """Whether the score is reached; None if there is no score."""
        return None if self.score is None else self.score >= self.min_score - _ROUNDING

    @property
    def fallback_used(self) -> bool:
        """Whether any criterion was not judged, and was left out of the score or assumed."""
        return any(
            one.status == "failed" or one.decision.assumed for report in self.reports for one in report.report
        )

    @property
    def usage(self) -> TokenUsage | None:
        """Return the tokens of all votes; None if none were counted."""
        counted = [report.token_usage for report in self.reports if report.token_usage is not None]
        return sum(counted, TokenUsage()) if counted else None

    @property
    def cost(self) -> float | None:
        """Return the US dollars of the votes whose cost is known; None if none is known."""
        known = [report.completion_cost for report in self.reports if report.completion_cost is not None]
        return sum(known) if known else None

    def to_dict(self) -> dict[str, Json]:
        """Return the record as JSON data."""
        return {
            "score": self.score,
            "min_score": self.min_score,
            "value": self.value,
            "fallback_used": self.fallback_used,
            "reports": [report.to_dict() for report in self.reports],
        }

    def hints(self, candidate: int, *, reasons: bool) -> tuple[Hint, ...]:
        """Return the score and the criteria that lowered it; empty if the required score is reached."""
        if self.value is not False:
            return ()
        whole = Hint(candidate=candidate, criterion="rubric", score=self.score, min_score=self.min_score)
        lost = [one for one in self.reports[0].report if _lost(one)]
        return (whole, *(_hint(one, candidate, reasons) for one in lost))


@dataclass(frozen=True, slots=True)
class RubricThreshold:
    """A rubric with which a `Strategy` verifies or chooses candidates.

    As `verify`, a candidate passes with a score of at least `min_score`; as `cost`, its cost is 1 - score. If
    a candidate could not be judged, the error is recorded with that candidate.

    Attributes:
        rubric: The rubric.
        grader: The grader.
        min_score: The lowest score that passes.

    Raises:
        ArgumentError: If the rubric or grader is missing, the score cannot be reached, or the grader names
            criteria that are not in the rubric.
    """

    rubric: Rubric
    grader: SupportsGrade
    min_score: float

    def __post_init__(self) -> None:
        if not isinstance(self.rubric, Rubric):
            raise ArgumentError(f"rubric is {shortened(self.rubric)}; give a Rubric")
        if not callable(getattr(self.grader, "grade", None)):
            raise ArgumentError(f"grader is {shortened(self.grader)}; give a CriterionGrader")
        if isinstance(self.grader, Grader):
            self.grader.check_rubrics([self.rubric])
        score = self.min_score
        if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
            raise ArgumentError(f"min_score is {score!r}; give a number")
        normalised = isinstance(self.grader, CriterionGrader) and self.grader.policy.normalize
        if normalised and not 0 <= score <= 1:
            raise ArgumentError(f"min_score is {score!r}; the grader gives scores from 0 to 1")

    async def verify(self, candidate: Any, context: Any = None) -> bool:
        """Return whether the candidate's score is at least `min_score`.

        Raises:
            JudgeError: If the candidate could not be judged.
        """
        return self._score(await self.evaluate(candidate, context)) >= self.min_score - _ROUNDING

    async def compute(self, candidate: Any, context: Any = None) -> float:
        """Return 1 - score.

        Raises:
            JudgeError: If the candidate could not be judged.
        """
        return 1.0 - self._score(await self.evaluate(candidate, context))

    async def evaluate(self, candidate: Any, context: Any = None) -> RubricEvaluation:
        """Return the full record of a candidate's evaluation.

        Args:
            candidate: A text, `{"thinking", "output"}`, or other data, which is judged as JSON.
            context: The question that the candidate answers; a text or data.
        """
        ledger = current_ledger()
        place = ledger.reserve()
        rounds = range(1, ledger.fresh + 1) if ledger.fresh else range(1)
        gradings = (self._grade(candidate, context, one) for one in rounds)
        # All come to an end before one that raised is told, so that none is left running.
        graded = await asyncio.gather(*gradings, return_exceptions=True)
        evaluation = RubricEvaluation(reports=tuple(map(_report, graded)), min_score=self.min_score)
        ledger.enter(place, evaluation)
        return evaluation

    async def _grade(self, candidate: Any, context: Any, fresh: int) -> EnsembleEvaluationReport:
        submission, query = submission_of(candidate), context_text(context)
        if not isinstance(self.grader, CriterionGrader):
            return await self.grader.grade(submission, self.rubric, query=query)
        most = max(seat.samples for seat in self.grader.seats)
        task = GradingTask(submission=submission, rubric=self.rubric, query=query, first_sample=fresh * most)
        return self.grader.aggregate(task, await self.grader.judge(task))

    def _score(self, evaluation: RubricEvaluation) -> float:
        if evaluation.score is None:
            raise JudgeError(f"the candidate could not be judged: {evaluation.reports[0].error}")
        return evaluation.score


def _report(graded: EnsembleEvaluationReport | BaseException) -> EnsembleEvaluationReport:
    if isinstance(graded, BaseException):
        raise graded
    return graded


def _lost(report: EnsembleCriterionReport) -> bool:
    value = report.score_value
    if value is None or report.decision.assumed:
        return False
    return value < 1 if report.criterion.weight >= 0 else value > 0


def _hint(report: EnsembleCriterionReport, candidate: int, reasons: bool) -> Hint:
    best = 1.0 if report.criterion.weight >= 0 else 0.0
    written: Sequence[str] = [
        vote.reason for vote in report.votes if vote.status == "answered" and vote.reason
    ]
    return Hint(
        candidate=candidate,
        criterion=report.name,
        passed=sum(1 for vote in report.votes if vote.status == "answered" and vote.value == best),
        samples=len(report.votes),
        reasons=tuple(written) if reasons else (),
    )
