"""Votes that failed are cast once more before a run ends, unless so many did that it was no accident."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from autorubric import CriterionGrader, EvalResult, JudgeReply
from autorubric.errors import ItemFailedError, JudgeError, ProviderTimeoutError, ReplyError
from autorubric.judges import JudgeRequest
from tests.runs.runs import run, small_dataset


@dataclass
class FailingJudge:
    """Fails on some items, so often on each criterion, and then says MET."""

    fails: dict[str, int]
    error: type[JudgeError] = ProviderTimeoutError
    judge_id: str = "failing"
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        key = (request.item_id, request.criterion.name or "")
        self.asked[key] += 1
        if self.asked[key] <= self.fails.get(request.item_id, 0):
            raise self.error("no good")
        return JudgeReply(answer="MET", cost=0.01)


def graded(folder: Path, judge: FailingJudge, items: int, **options: Any) -> EvalResult:
    return run(folder, judge, small_dataset(*["apple"] * items), **options)


def statuses(result: EvalResult) -> Counter[str]:
    reports = [one.report for one in result.item_results if one.report is not None]
    return Counter(vote.status for report in reports for one in report.report for vote in one.votes)


@pytest.mark.parametrize("error", [ProviderTimeoutError, ReplyError])
def test_what_failed_is_asked_once_more(error: type[JudgeError], tmp_path: Path) -> None:
    """Whether no reply came or none could be read; what was answered is not asked for again."""
    judge = FailingJudge({"i3": 1, "i7": 1}, error)
    result = graded(tmp_path, judge, 20)
    assert statuses(result) == {"answered": 40}
    assert [done.error for done in result.item_results] == [None] * 20
    assert {key: count for key, count in judge.asked.items() if count > 1} == {
        (item, name): 2 for item in ("i3", "i7") for name in ("apple", "pear")
    }
    assert statuses(EvalResult.from_experiment(tmp_path / "run")) == {"answered": 40}
    assert result.total_completion_cost == pytest.approx(0.4)


def test_what_fails_again_is_left_at_that(tmp_path: Path) -> None:
    """Until the run is gone on with: there is one second chance a run."""
    judge = FailingJudge({"i3": 2})
    result = graded(tmp_path, judge, 20)
    assert statuses(result) == {"answered": 38, "failed": 2}
    assert judge.asked["i3", "apple"] == 2
    assert statuses(graded(tmp_path, judge, 20)) == {"answered": 40}


@pytest.mark.parametrize(("failing", "items"), [(1, 1), (3, 20), (20, 20)])
def test_what_fails_often_is_not_asked_again(failing: int, items: int, tmp_path: Path) -> None:
    """A provider that is down would have every item wait twice."""
    judge = FailingJudge({f"i{at}": 1 for at in range(failing)})
    result = graded(tmp_path, judge, items)
    assert statuses(result)["failed"] == 2 * failing
    assert set(judge.asked.values()) == {1}


def test_one_of_a_few_is_asked_again(tmp_path: Path) -> None:
    """A tenth of three items is none of them."""
    assert statuses(graded(tmp_path, FailingJudge({"i0": 1}), 3)) == {"answered": 6}


def test_whoever_wants_to_fail_fast_does(tmp_path: Path) -> None:
    """The first failure ends the run, whatever a second try would have given."""
    judge = FailingJudge({"i0": 1})
    with pytest.raises(ItemFailedError):
        graded(tmp_path, judge, 3, fail_fast=True)
    assert set(judge.asked.values()) == {1}


def test_a_panel_keeps_what_its_others_said(tmp_path: Path) -> None:
    """Of a panel only the judge that failed is asked again."""
    whole, failing = FailingJudge({}, judge_id="whole"), FailingJudge({"i1": 1})
    grader = CriterionGrader(judges=[whole, failing])
    result = run(tmp_path, None, small_dataset("apple", "apple", "pear"), grader=grader)
    assert statuses(result) == {"answered": 12}
    assert set(whole.asked.values()) == {1}
    assert failing.asked["i1", "pear"] == 2
