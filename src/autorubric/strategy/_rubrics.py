"""A rubric with a score threshold, used to verify or choose candidates."""

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
from autorubric.strategy._calls import Hint, current_ledger
from autorubric.strategy._sampling import context_text, submission_of
from autorubric.types import EnsembleCriterionReport, EnsembleEvaluationReport
from autorubric.values import Json, TokenUsage

_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricEvaluation:
    """The evaluation of one candidate on a rubric.

    Attributes:
        reports: The evaluation reports: one, or for a reevaluation one per fresh grading.
        min_score: The minimum score for passing.
    """

    reports: tuple[EnsembleEvaluationReport, ...]
    min_score: float

    @property
    def score(self) -> float | None:
        """Return the mean score over the reports, or None if no report has a score."""
        scores = [report.score for report in self.reports if report.score is not None]
        return math.fsum(scores) / len(scores) if scores else None

    @property
    def value(self) -> bool | None:
        """Whether the score is at least `min_score`; None if there is no score."""
        return None if self.score is None else self.score >= self.min_score - _ROUNDING

    @property
    def fallback_used(self) -> bool:
        """Whether any criterion could not be judged and was therefore excluded from the score or assumed."""
        return any(
            one.status == "failed" or one.decision.assumed for report in self.reports for one in report.report
        )

    @property
    def usage(self) -> TokenUsage | None:
        """Return the total token usage of all votes, or None if no usage was reported."""
        counted = [report.token_usage for report in self.reports if report.token_usage is not None]
        return sum(counted, TokenUsage()) if counted else None

    @property
    def cost(self) -> float | None:
        """Return the total known cost of the votes in US dollars, or None if no cost is known."""
        known = [report.completion_cost for report in self.reports if report.completion_cost is not None]
        return sum(known) if known else None

    def to_dict(self) -> dict[str, Json]:
        """Return the evaluation as JSON-compatible data."""
        return {
            "score": self.score,
            "min_score": self.min_score,
            "value": self.value,
            "fallback_used": self.fallback_used,
            "reports": [report.to_dict() for report in self.reports],
        }

    def hints(self, candidate: int, *, reasons: bool) -> tuple[Hint, ...]:
        """Return the score and the criteria that lowered it as hints; empty if the candidate passes."""
        if self.value is not False:
            return ()
        whole = Hint(candidate=candidate, criterion="rubric", score=self.score, min_score=self.min_score)
        lost = [one for one in self.reports[0].report if _lost(one)]
        return (whole, *(_hint(one, candidate, reasons) for one in lost))


@dataclass(frozen=True, slots=True)
class RubricThreshold:
    """A rubric that a `Strategy` uses to verify candidates or to choose among them.

    As `verify`, it passes candidates whose score is at least `min_score`; as `cost`, it assigns the cost
    `1 - score`. If a candidate cannot be judged, the error is recorded with that candidate.

    Attributes:
        rubric: The rubric to grade candidates against.
        grader: The grader, usually a `CriterionGrader`.
        min_score: The lowest passing score.

    Raises:
        ArgumentError: If the rubric or grader is missing, `min_score` is not a possible score, or the grader
            refers to criteria that are not in the rubric.
    """

    rubric: Rubric
    grader: SupportsGrade
    min_score: float

    def __post_init__(self) -> None:
        if not isinstance(self.rubric, Rubric):
            raise ArgumentError(f"rubric must be a Rubric; got {shortened(self.rubric)}")
        if not callable(getattr(self.grader, "grade", None)):
            raise ArgumentError(f"grader must be a CriterionGrader; got {shortened(self.grader)}")
        if isinstance(self.grader, Grader):
            self.grader.check_rubrics([self.rubric])
        score = self.min_score
        if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
            raise ArgumentError(f"min_score must be a finite number; got {score!r}")
        normalised = isinstance(self.grader, CriterionGrader) and self.grader.policy.normalize
        if normalised and not 0 <= score <= 1:
            raise ArgumentError(f"min_score must be from 0 to 1 for a normalized score; got {score!r}")

    async def verify(self, candidate: Any, context: Any = None) -> bool:
        """Return whether the candidate's score is at least `min_score`.

        Raises:
            JudgeError: If the candidate cannot be judged.
        """
        return self._score(await self.evaluate(candidate, context)) >= self.min_score - _ROUNDING

    async def compute(self, candidate: Any, context: Any = None) -> float:
        """Return the candidate's cost, which is 1 - score.

        Raises:
            JudgeError: If the candidate cannot be judged.
        """
        return 1.0 - self._score(await self.evaluate(candidate, context))

    async def evaluate(self, candidate: Any, context: Any = None) -> RubricEvaluation:
        """Grade a candidate and return the full evaluation.

        Args:
            candidate: A string, `{"thinking": …, "output": …}`, or other data, which is converted to JSON.
            context: The question that the candidate answers, as a string or other data.
        """
        ledger = current_ledger()
        place = ledger.reserve()
        rounds = range(1, ledger.fresh + 1) if ledger.fresh else range(1)
        gradings = (self._grade(candidate, context, one) for one in rounds)
        # All gradings finish before an error is raised, so that none is left running.
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
