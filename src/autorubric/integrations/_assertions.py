"""Assertions that a text meets a rubric, for pytest, unittest, or any other code."""

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

    Works in any test, including inside a running event loop, which it blocks; use
    `await assert_rubric_async(…)` to avoid blocking.

    Args:
        text: The text to judge; any value accepted by `Rubric.grade`.
        rubric: A rubric, its file, a mapping or list as `Rubric.from_dict` reads it, or that as JSON.
        min_score: The lowest score that passes; None for that of the test's `rubric` marker.
        max_lost: Largest share of the verdicts, on [0, 1], that may be lost or assumed; None for that of the
            test's marker, or 0.05. A criterion without a readable answer from any judge is always an error.
        grader: The grader; None for the pytest run's grader (`--rubric-judge`), which is the offline
            `LexicalJudge` by default and always outside of pytest.
        query: The question that the text answers.
        reference_submission: A good answer to compare with.
        item_id: The text's id, used to look up recorded votes.

    Raises:
        AssertionError: If the score is lower; the message lists criteria, votes and reasons.
        NotJudgedError: If there is no score, all judges of a criterion failed, or more verdicts than
            `max_lost` were lost or assumed; this is a test error, not a failure.
        ArgumentError: If `min_score` is missing or not a number, `max_lost` is not a share, or `text` or
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
    """Assert as `assert_rubric` does, in asynchronous tests."""
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
            raise NotJudgedError(f"{shown(told, 2000)}; more than max_lost={self.max_lost:g} of the verdicts")
        if report.score < self.min_score:
            raise AssertionError(failure_message(report, self.min_score, self.task.submission.text or ""))
        return report


def _least(min_score: float | None) -> float:
    if min_score is None:
        test = current_test()
        min_score = None if test is None else test.marked.get("min_score")
    if min_score is None:
        raise ArgumentError(
            "there is no min_score; give it to assert_rubric, or mark the test: "
            "@pytest.mark.rubric(min_score=0.7)"
        )
    if isinstance(min_score, bool) or not isinstance(min_score, int | float) or not math.isfinite(min_score):
        raise ArgumentError(
            f"min_score={min_score!r} is not a score; give a number, on [0, 1] where normalised"
        )
    return float(min_score)


def _most(max_lost: float | None) -> float:
    test = current_test()
    if max_lost is None:
        max_lost = None if test is None else test.marked.get("max_lost")
    if max_lost is None:
        return MAX_LOST
    if isinstance(max_lost, bool) or not isinstance(max_lost, int | float) or not 0 <= max_lost <= 1:
        raise ArgumentError(f"max_lost={max_lost!r} is not a share; give a number from 0 to 1")
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
    """Warn once per process that texts are compared by their words."""
    warnings.warn(
        "assert_rubric got no grader and compares words (LexicalJudge), a baseline and not a judge; give "
        "grader=CriterionGrader(…), or pytest --rubric-judge MODEL",
        UserWarning,
        stacklevel=5,
    )


def _samples(grader: Grader) -> int:
    """Return the number of samples after which a judge gives fresh ones; 0 if all judges are offline."""
    if not isinstance(grader, CriterionGrader):
        return 1
    return max((seat.samples for seat in grader.seats if not seat.is_offline), default=0)
