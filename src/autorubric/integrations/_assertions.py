"""Assertions that a text meets a rubric, for pytest, unittest and other code."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from autorubric._sync import run_sync
from autorubric.errors import ArgumentError, NotJudgedError
from autorubric.graders import CriterionGrader, Grader
from autorubric.integrations._failure_message import failure_message, shown
from autorubric.integrations._rubrics import RubricLike, rubric_from, why_not_judged
from autorubric.integrations._test_in_progress import current_test
from autorubric.judges import LexicalJudge
from autorubric.reporting import GradingTask
from autorubric.types import EnsembleEvaluationReport
from autorubric.values import MAX_LOST, Submission


def assert_rubric(  # noqa: PLR0913 - a test says all of it in one call
    text: Any,
    rubric: RubricLike | Path | str,
    min_score: float | None = None,
    *,
    max_lost: float | None = None,
    grader: Grader | None = None,
    query: str | None = None,
    reference_submission: str | None = None,
    item_id: str | None = None,
) -> EnsembleEvaluationReport:
    """Assert that a text scores at least `min_score`, and return its report.

    The function works in any test. Inside a running event loop it blocks the loop; use
    `await assert_rubric_async(…)` to avoid this.

    Args:
        text: The text to judge: any value accepted by `Rubric.grade`.
        rubric: A rubric, the path of a rubric file, data accepted by `Rubric.from_dict`, or a JSON string.
        min_score: The lowest passing score; None to use the value from the test's `rubric` marker.
        max_lost: Maximum fraction of verdicts, in [0, 1], that can be lost or assumed; None to use the
            `rubric` marker's value or, by default, 0.05. A criterion on which every judge fails is an error.
        grader: The grader. None uses the grader of the pytest run (`--rubric-judge`) or, outside pytest or if
            no judge is configured, the offline `LexicalJudge`.
        query: The question that the text answers.
        reference_submission: A good answer for comparison.
        item_id: Id of the text, used to look up recorded votes.

    Raises:
        AssertionError: If the score is too low. The message lists criteria, votes and reasons.
        NotJudgedError: If there is no score, all judges of a criterion failed, or too many verdicts were lost
            or assumed. Pytest reports this as an error, not a failure.
        ArgumentError: If `min_score` is missing or not a number, `max_lost` is not in [0, 1], or `text` or
            `rubric` is invalid.
    """
    __tracebackhide__ = True
    asked = _Asked.of(text, rubric, (min_score, max_lost), grader, query, reference_submission, item_id)
    return asked.passed(run_sync(asked.report()))


async def assert_rubric_async(  # noqa: PLR0913 - as above
    text: Any,
    rubric: RubricLike | Path | str,
    min_score: float | None = None,
    *,
    max_lost: float | None = None,
    grader: Grader | None = None,
    query: str | None = None,
    reference_submission: str | None = None,
    item_id: str | None = None,
) -> EnsembleEvaluationReport:
    """Assert that a text scores at least `min_score`; the asynchronous version of `assert_rubric`."""
    __tracebackhide__ = True
    asked = _Asked.of(text, rubric, (min_score, max_lost), grader, query, reference_submission, item_id)
    return asked.passed(await asked.report())


@dataclass(frozen=True, slots=True)
class _Asked:
    task: GradingTask
    min_score: float
    max_lost: float
    grader: Grader

    @classmethod
    def of(
        cls,
        text: Any,
        rubric: RubricLike | Path | str,
        bounds: tuple[float | None, float | None],
        grader: Grader | None,
        query: str | None,
        reference_submission: str | None,
        item_id: str | None,
    ) -> _Asked:
        test = current_test()
        least, max_lost = _least(bounds[0]), _most(bounds[1])
        grader = _grader(grader)
        task = GradingTask(
            submission=Submission.parse(text),
            rubric=rubric_from(rubric),
            query=query,
            reference_submission=reference_submission,
            item_id=item_id or "",
            first_sample=test.attempt * _samples(grader) if test is not None else 0,
        )
        return cls(task, least, max_lost, grader)

    async def report(self) -> EnsembleEvaluationReport:
        report = self.grader.aggregate(self.task, await self.grader.judge(self.task))
        test = current_test()
        if test is not None:
            test.graded(report)
        return report

    def passed(self, report: EnsembleEvaluationReport) -> EnsembleEvaluationReport:
        __tracebackhide__ = True
        why = why_not_judged(report)
        if why is not None or report.score is None:
            raise NotJudgedError(f"the text could not be judged: {shown(why or '', 2000)}")
        if report.verdicts.exceeds(self.max_lost):
            told = "; ".join(report.verdicts.messages())
            raise NotJudgedError(f"{shown(told, 2000)}; this exceeds the limit max_lost={self.max_lost:g}")
        if report.score < self.min_score:
            raise AssertionError(failure_message(report, self.min_score, self.task.submission.text or ""))
        return report


def _least(min_score: float | None) -> float:
    if min_score is None:
        test = current_test()
        min_score = None if test is None else test.marked.get("min_score")
    if min_score is None:
        raise ArgumentError(
            "min_score is missing; pass it to assert_rubric or mark the test with "
            "@pytest.mark.rubric(min_score=0.7)"
        )
    if isinstance(min_score, bool) or not isinstance(min_score, int | float) or not math.isfinite(min_score):
        raise ArgumentError(
            f"min_score must be a finite number, in [0, 1] for normalized scores; got {min_score!r}"
        )
    return float(min_score)


def _most(max_lost: float | None) -> float:
    test = current_test()
    if max_lost is None:
        max_lost = None if test is None else test.marked.get("max_lost")
    if max_lost is None:
        return MAX_LOST
    if isinstance(max_lost, bool) or not isinstance(max_lost, int | float) or not 0 <= max_lost <= 1:
        raise ArgumentError(f"max_lost must be a number from 0 to 1; got {max_lost!r}")
    return float(max_lost)


def _grader(given: Grader | None) -> Grader:
    test = current_test()
    if given is None and (test is None or test.panel().is_default):
        _warn_of_word_matching()
    if test is None:
        return given or CriterionGrader(judges=[LexicalJudge()])
    if given is None:
        return test.panel().grader()
    test.panel().demand_leave(given)
    return given


@cache
def _warn_of_word_matching() -> None:
    """Warn once per process that texts are graded by comparing words."""
    warnings.warn(
        "assert_rubric has no grader and uses LexicalJudge, a baseline that only compares words; pass "
        "grader=CriterionGrader(…) or run pytest --rubric-judge MODEL",
        UserWarning,
        stacklevel=5,
    )


def _samples(grader: Grader) -> int:
    """Return the number of sample indices that one repeat uses; 0 if all judges are offline."""
    if not isinstance(grader, CriterionGrader):
        return 1
    return max((seat.samples for seat in grader.seats if not seat.is_offline), default=0)
