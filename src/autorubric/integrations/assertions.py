"""Assertions that a text meets a rubric, with failure messages of limited length."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

from autorubric.criteria.values import MAX_LOST, Submission
from autorubric.errors import ArgumentError, NotJudgedError, RubricError
from autorubric.grading.base import Grader, GradingTask
from autorubric.grading.grader import CriterionGrader, criterion_grader
from autorubric.integrations.test_in_progress import current_test
from autorubric.judges.lexical import LexicalJudge
from autorubric.rubric.rubric import Rubric
from autorubric.scoring.reports import EnsembleCriterionReport, EnsembleEvaluationReport, EvaluationReport
from autorubric.scoring.votes import JudgeVote
from autorubric.support.blocks import printable
from autorubric.support.concurrency import run_sync
from autorubric.support.objects import is_number
from autorubric.support.reading_errors import list_first

_LONGEST: Final = 6000
_VOTES: Final = 7
_REASON: Final = 240
_NAME: Final = 80
_TEXT: Final = 400


def failure_message(report: EvaluationReport, min_score: float, text: str) -> str:
    """Describe a low score: list criteria with votes and reasons, starting with the largest losses."""
    judges = dict.fromkeys(vote.judge_id for one in report.report for vote in one.votes)
    named = list_first([one_line(judge, _NAME) for judge in judges], _VOTES)
    score, least = _two_apart(report.score or 0.0, min_score)
    lines = [f"score {score} is below the minimum of {least}; judged by {named}"]
    if report.length_penalty:
        lines.append(f"the score includes a length penalty of {report.length_penalty:.3f}")
    ordered = sorted(report.report, key=_lost, reverse=True)
    for place, criterion in enumerate(ordered):
        if sum(map(len, lines)) > _LONGEST:
            lines.append(f"  … and {len(ordered) - place} more criteria with no greater effect on the score")
            break
        lines += _criterion_lines(criterion)
    lines.append(f"text: {one_line(text, _TEXT)}")
    return "\n".join(lines)


def one_line(text: str, most: int) -> str:
    """Return the text on one line, truncated to `most` characters, with control characters escaped."""
    line = " ".join(text[: 4 * most].split())
    safe = printable(line)
    return safe if len(safe) <= most and len(text) <= 4 * most else f"{safe[: most - 1]}…"


def _two_apart(score: float, least: float) -> tuple[str, str]:
    """Format two numbers with at least three decimals, and with as many as are needed to tell them apart."""
    for digits in range(3, 17):
        if f"{score:.{digits}f}" != f"{least:.{digits}f}":
            break
    return f"{score:.{digits}f}", f"{least:.{digits}f}"


def _lost(criterion: EnsembleCriterionReport) -> float:
    """Return the amount by which the criterion lowers the weighted sum."""
    weight = criterion.criterion.weight
    if criterion.score_value is None:
        return 0.0
    return weight * (1.0 - criterion.score_value) if weight > 0 else -weight * criterion.score_value


def _criterion_lines(criterion: EnsembleCriterionReport) -> list[str]:
    answer = criterion.decision.answer
    label = answer.label if answer else None
    # The answer of a panel that abstained is empty.
    said = label or (criterion.status if criterion.final_answer is None else criterion.final_answer)
    weight = f"weight {criterion.criterion.weight:g}"
    head = f"  {_answer(said)}  {one_line(criterion.name, _NAME)} ({weight}): "
    lines = [head + one_line(criterion.criterion.requirement or "", _REASON)]
    lines += [f"      {_vote(vote)}" for vote in criterion.votes[:_VOTES]]
    if len(criterion.votes) > _VOTES:
        lines.append(f"      … and {len(criterion.votes) - _VOTES} more votes")
    return lines


def _vote(vote: JudgeVote) -> str:
    who = one_line(vote.judge_id, _NAME)
    if vote.status in ("failed", "not_asked"):
        return f"{who}: {vote.status}" + (f" – {one_line(vote.error, _REASON)}" if vote.error else "")
    said = f"{who}: {_answer(vote.answer if vote.answer is not None else vote.status)}"
    return f"{said} – {one_line(vote.reason, _REASON)}" if vote.reason else said


def _answer(answer: object) -> str:
    return one_line(str(answer), _NAME)


RubricLike: TypeAlias = "Rubric | Mapping[str, Any] | Sequence[Any]"
"""A rubric, or a mapping or list accepted by `Rubric.from_dict`."""


def rubric_from(given: RubricLike | Path | str) -> Rubric:
    """Return a rubric unchanged, or read it from a file, a mapping, a list of criteria, or JSON."""
    if isinstance(given, Rubric):
        return given
    if isinstance(given, Path):
        return Rubric.from_file(given)
    if isinstance(given, str):
        return Rubric.from_json(given) if given.lstrip().startswith(("{", "[")) else Rubric.from_file(given)
    if isinstance(given, Mapping):
        return Rubric.from_dict(given)
    criteria: Any = given
    return Rubric(criteria)


def rubric_of_row(given: RubricLike | str) -> Rubric:
    """Read the rubric of a dataset row from a mapping, a list of criteria, or JSON."""
    if not isinstance(given, str):
        return rubric_from(given)
    # Not `rubric_from`: a row must not refer to a file.
    try:
        criteria: Any = json.loads(given)
    except ValueError as error:
        told = f"invalid JSON ({error}); the rubric must be a mapping or a list of criteria, or JSON text"
        raise RubricError.whole("rubric of a row", told) from None
    return Rubric.from_dict(criteria) if isinstance(criteria, Mapping) else Rubric(criteria)


def why_not_judged(report: EvaluationReport) -> str | None:
    """Return the reason why a report is not a full judgment of the text; None if the judgment is full.

    A judgment is not full if there is no score, if no judge gave a readable answer on a criterion, or if a
    criterion was decided by unreadable replies, which count as the conservative answer.
    """
    lost = [one for one in report.report if one.is_lost]
    if lost:
        return "; ".join(f"{one.name}: {_why(one)}" for one in lost)
    return (report.error or "there is nothing to score") if report.score is None else None


def _why(criterion: EnsembleCriterionReport) -> str:
    errors = [f"{vote.judge_id}: {vote.error}" for vote in criterion.votes if vote.status == "failed"]
    return "; ".join(dict.fromkeys(errors)) or criterion.error or "no judge answered"


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
    asked = _Asked(text, rubric, min_score, max_lost, grader, query, reference_submission, item_id)
    return asked.check(run_sync(asked.report()))


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
    asked = _Asked(text, rubric, min_score, max_lost, grader, query, reference_submission, item_id)
    return asked.check(await asked.report())


class _Asked:
    def __init__(  # noqa: PLR0913 - as above
        self,
        text: Any,
        rubric: RubricLike | Path | str,
        min_score: float | None,
        max_lost: float | None,
        grader: Grader | None,
        query: str | None,
        reference_submission: str | None,
        item_id: str | None,
    ) -> None:
        test = current_test()
        marked: Mapping[str, Any] = {} if test is None else test.marked
        self.min_score = _least(marked.get("min_score") if min_score is None else min_score)
        self.max_lost = _most(marked.get("max_lost") if max_lost is None else max_lost)
        self.grader = _grader(grader)
        self.task = GradingTask(
            submission=Submission.parse(text),
            rubric=rubric_from(rubric),
            query=query,
            reference_submission=reference_submission,
            item_id=item_id or "",
            first_sample=test.attempt * _samples(self.grader) if test is not None else 0,
        )

    async def report(self) -> EnsembleEvaluationReport:
        report = self.grader.aggregate(self.task, await self.grader.judge(self.task))
        test = current_test()
        if test is not None:
            test.add_report(report)
        return report

    def check(self, report: EnsembleEvaluationReport) -> EnsembleEvaluationReport:
        __tracebackhide__ = True
        why = why_not_judged(report)
        if why is not None or report.score is None:
            raise NotJudgedError(f"the text could not be judged: {one_line(why or '', 2000)}")
        if report.verdicts.exceeds(self.max_lost):
            told = "; ".join(report.verdicts.messages())
            raise NotJudgedError(f"{one_line(told, 2000)}; this exceeds the limit max_lost={self.max_lost:g}")
        if report.score < self.min_score:
            raise AssertionError(failure_message(report, self.min_score, self.task.submission.text or ""))
        return report


def _least(min_score: float | None) -> float:
    if min_score is None:
        raise ArgumentError(
            "min_score is missing; pass it to assert_rubric or mark the test with "
            "@pytest.mark.rubric(min_score=0.7)"
        )
    if not is_number(min_score) or not math.isfinite(min_score):
        raise ArgumentError(
            f"min_score must be a finite number, in [0, 1] for normalized scores; got {min_score!r}"
        )
    return float(min_score)


def _most(max_lost: float | None) -> float:
    if max_lost is None:
        return MAX_LOST
    if not is_number(max_lost) or not 0 <= max_lost <= 1:
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
    inner = criterion_grader(grader)
    if inner is None:
        return 1
    return max((member.samples for member in inner.members if not member.is_offline), default=0)
