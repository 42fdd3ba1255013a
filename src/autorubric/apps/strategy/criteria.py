"""What verifies or scores candidates: plain-language criteria, or a rubric with a threshold."""

from __future__ import annotations

import asyncio
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from autorubric.apps.strategy.result import Hint, current_trace, total_cost, total_usage
from autorubric.apps.strategy.sampling import (
    Extract,
    SampledCriteria,
    SampledEvaluation,
    check_count,
    context_text,
    gate,
    rating,
    submission_of,
)
from autorubric.criteria.base import BaseCriterion
from autorubric.errors import ArgumentError, JudgeError, TokenUsage
from autorubric.grading.base import Grader, GradingTask
from autorubric.grading.grader import criterion_grader
from autorubric.judges.panel import JudgeLike
from autorubric.rubric.rubric import Rubric, SupportsGrade
from autorubric.scoring.reports import EnsembleCriterionReport, EnsembleEvaluationReport
from autorubric.scoring.votes import JudgeVote
from autorubric.support.concurrency import sync_method
from autorubric.support.objects import Json
from autorubric.support.reading_errors import short_repr

SampleAggregation: TypeAlias = Literal["avg", "med", "min", "max"]
"""Aggregation of the scores of several samples: mean, median, minimum or maximum."""

_AGGREGATIONS: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "avg": statistics.fmean,
    "med": statistics.median,
    "min": min,
    "max": max,
}


class QualitativeCriteria(SampledCriteria[bool]):
    """A pass/fail criterion that is decided by sampling one judge.

    Subclasses can add attributes and override `verify`.

    Args:
        expression: The condition for passing, in plain language.
        llm: The judge: any value accepted by `CriterionGrader(judges=[…])`, such as a model name, an
            `LLMConfig` (`LLM("name")`), a `JudgeSpec`, a judge, or a function that takes a `JudgeRequest`.
        num_samples: Number of samples to request concurrently. Each sample has its own index and is cached
            separately.
        min_samples_for_aggregation: Minimum number of valid samples. If there are fewer, the candidate does
            not pass and `fallback_used` is set on the evaluation.
        min_pass: Minimum number of samples that must pass.
        extract: Part of the candidate to judge: None for all of it, `"code"` for its first fenced code block,
            or a function that takes the text and returns the part.

    Raises:
        ArgumentError: If an argument is invalid or the arguments contradict each other.
    """

    def __init__(
        self,
        expression: str,
        llm: JudgeLike,
        num_samples: int = 1,
        min_samples_for_aggregation: int = 1,
        min_pass: int = 1,
        *,
        extract: Extract = None,
    ) -> None:
        super().__init__(expression, llm, num_samples, min_samples_for_aggregation, extract)
        check_count("min_pass", min_pass, most=num_samples)
        self.min_pass = min_pass

    async def verify(self, candidate: Any, context: Any = None) -> bool:
        """Return whether the candidate passes: the `value` of the evaluation returned by `evaluate`."""
        return (await self.evaluate(candidate, context)).value

    verify_sync = sync_method(verify)
    """Call `verify` from synchronous code, even inside a running event loop."""

    def _criterion(self) -> BaseCriterion:
        return gate(self.expression)

    def _decide(self, votes: tuple[JudgeVote, ...]) -> SampledEvaluation[bool]:
        answers = [vote.answer if vote.status == "answered" else None for vote in votes]
        samples = tuple(answer if isinstance(answer, bool) else None for answer in answers)
        valid = [one for one in samples if one is not None]
        enough = self._enough(len(valid), len(votes))
        # If the number of fresh votes differs from num_samples, the same proportion must pass.
        needed = math.ceil(self.min_pass * len(votes) / self.num_samples)
        return SampledEvaluation(
            expression=self.expression,
            value=enough and sum(valid) >= needed,
            samples=samples,
            votes=votes,
            fallback_used=not enough,
            needed=needed,
        )


class QuantitativeCriteria(SampledCriteria[float]):
    """A numeric criterion that is scored by sampling one judge.

    Subclasses can add attributes and override `compute`.

    Args:
        expression: The quality to score and what the lowest and highest scores mean, in plain language.
        llm: The judge: any value that `CriterionGrader(judges=[…])` accepts.
        min: The lowest score.
        max: The highest score. Samples whose score is outside the range are ignored.
        agg: How to aggregate the samples: `"avg"` (mean), `"med"` (median), `"min"` or `"max"`.
        num_samples: Number of samples to request concurrently.
        min_samples_for_aggregation: Minimum number of valid samples. If there are fewer, the score is the
            midpoint of the range and `fallback_used` is set on the evaluation.
        extract: Part of the candidate to judge: None, `"code"` or a function (see `QualitativeCriteria`).

    Raises:
        ArgumentError: If an argument is invalid or the arguments contradict each other.
    """

    def __init__(  # noqa: PLR0913 - the public constructor
        self,
        expression: str,
        llm: JudgeLike,
        min: float = 0.0,
        max: float = 10.0,
        agg: SampleAggregation = "avg",
        num_samples: int = 1,
        min_samples_for_aggregation: int = 1,
        *,
        extract: Extract = None,
    ) -> None:
        super().__init__(expression, llm, num_samples, min_samples_for_aggregation, extract)
        _check_range(min, max)
        if agg not in _AGGREGATIONS:
            raise ArgumentError(f"agg must be one of {', '.join(_AGGREGATIONS)}; got {agg!r}")
        self.min = min
        self.max = max
        self.agg = agg

    async def compute(self, candidate: Any, context: Any = None) -> float:
        """Return the candidate's score: the `value` of the evaluation returned by `evaluate`."""
        return (await self.evaluate(candidate, context)).value

    compute_sync = sync_method(compute)
    """Call `compute` from synchronous code, even inside a running event loop."""

    def _criterion(self) -> BaseCriterion:
        return rating(self.expression, self.min, self.max)

    def _decide(self, votes: tuple[JudgeVote, ...]) -> SampledEvaluation[float]:
        samples = tuple(self._score(vote) for vote in votes)
        valid = [one for one in samples if one is not None]
        enough = self._enough(len(valid), len(votes))
        value = _AGGREGATIONS[self.agg](valid) if enough else self.min / 2 + self.max / 2
        return SampledEvaluation(
            expression=self.expression,
            # Rounding can move a mean out of the range.
            value=sorted((float(self.min), float(value), float(self.max)))[1],
            samples=samples,
            votes=votes,
            fallback_used=not enough,
        )

    def _score(self, vote: JudgeVote) -> float | None:
        if vote.status != "answered" or not _is_number(vote.answer):
            return None
        return float(vote.answer) if self.min <= vote.answer <= self.max else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _check_range(low: float, high: float) -> None:
    for name, value in (("min", low), ("max", high)):
        if not _is_number(value):
            raise ArgumentError(f"{name} must be a finite number; got {value!r}")
    if low >= high:
        raise ArgumentError(f"min must be less than max; got min={low!r} and max={high!r}")
    if not math.isfinite(high - low):
        raise ArgumentError(
            f"the range from min={low!r} to max={high!r} is too large for a float; pass a smaller range"
        )


_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricEvaluation:
    """The evaluation of one candidate on a rubric."""

    # The evaluation reports: one, or for a reevaluation one per fresh grading.
    reports: tuple[EnsembleEvaluationReport, ...]
    min_score: float  # the minimum score for passing

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
        return total_usage(report.token_usage for report in self.reports)

    @property
    def cost(self) -> float | None:
        """Return the total known cost of the votes in US dollars, or None if no cost is known."""
        return total_cost(report.completion_cost for report in self.reports)

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
        return (whole, *(_hint(one, candidate, reasons) for one in self.reports[0].report if _is_lost(one)))


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
            raise ArgumentError(f"rubric must be a Rubric; got {short_repr(self.rubric)}")
        if not callable(getattr(self.grader, "grade", None)):
            raise ArgumentError(f"grader must be a CriterionGrader; got {short_repr(self.grader)}")
        if isinstance(self.grader, Grader):
            self.grader.check_rubrics([self.rubric])
        score = self.min_score
        if not _is_number(score):
            raise ArgumentError(f"min_score must be a finite number; got {score!r}")
        inner = criterion_grader(self.grader)
        if inner is not None and inner.policy.normalize and not 0 <= score <= 1:
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
        trace = current_trace()
        place = trace.reserve()
        rounds = range(1, trace.fresh + 1) if trace.fresh else range(1)
        gradings = (self._grade(candidate, context, one) for one in rounds)
        # All gradings finish before an error is raised, so that none is left running.
        graded = await asyncio.gather(*gradings, return_exceptions=True)
        for one in graded:
            if isinstance(one, BaseException):
                raise one
        reports = tuple(one for one in graded if isinstance(one, EnsembleEvaluationReport))
        evaluation = RubricEvaluation(reports=reports, min_score=self.min_score)
        trace.enter(place, evaluation)
        return evaluation

    async def _grade(self, candidate: Any, context: Any, fresh: int) -> EnsembleEvaluationReport:
        submission, query = submission_of(candidate), context_text(context)
        inner = criterion_grader(self.grader)
        if inner is None or not isinstance(self.grader, Grader):
            return await self.grader.grade(submission, self.rubric, query=query)
        most = max(member.samples for member in inner.members)
        task = GradingTask(submission=submission, rubric=self.rubric, query=query, first_sample=fresh * most)
        return self.grader.aggregate(task, await self.grader.judge(task))

    def _score(self, evaluation: RubricEvaluation) -> float:
        if evaluation.score is None:
            raise JudgeError(f"the candidate could not be judged: {evaluation.reports[0].error}")
        return evaluation.score


def _is_lost(report: EnsembleCriterionReport) -> bool:
    value = report.score_value
    if value is None or report.decision.assumed:
        return False
    return value < 1 if report.criterion.weight >= 0 else value > 0


def _hint(report: EnsembleCriterionReport, candidate: int, reasons: bool) -> Hint:
    best = 1.0 if report.criterion.weight >= 0 else 0.0
    answered = [vote for vote in report.votes if vote.status == "answered"]
    return Hint(
        candidate=candidate,
        criterion=report.name,
        passed=sum(vote.value == best for vote in answered),
        samples=len(report.votes),
        reasons=tuple(vote.reason for vote in answered if vote.reason) if reasons else (),
    )
