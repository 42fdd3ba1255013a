"""A worker of a Ray run, in this process: what it does does not need Ray."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from autorubric import CriterionGrader
from autorubric.criteria import Submission
from autorubric.grading import GradingTask
from autorubric.integrations.ray_worker import Keeper, Worker
from autorubric.judges import JudgeRequest
from autorubric.llm.rate_limits import RequestLimits, limiter_for, set_authority
from autorubric.runs import ItemWork
from tests.integrations.handles import Handle, settled
from tests.runs.runs import CountingJudge, small_rubric


@pytest.fixture(autouse=True)
def own_limits() -> Iterator[None]:
    """Workers make the keeper the authority of their process; here it is given back."""
    before = set_authority(None)
    yield
    set_authority(before)


def work(count: int) -> list[ItemWork]:
    return [
        ItemWork(
            position=n,
            task=GradingTask(submission=Submission.parse("apple"), rubric=small_rubric(), item_id=f"i{n}"),
        )
        for n in range(count)
    ]


def test_a_worker_reports_votes_as_they_are_cast() -> None:
    """Every vote is reported once, the last with the item's result; the worker's limits are the keeper's."""

    async def test() -> None:
        keeper = Handle(Keeper(None, None))
        grader = CriterionGrader(judges=[CountingJudge()])
        worker = Worker("w", grader, keeper, counts_cost=True, keeps_exchanges=False)
        await worker.begin()
        async with limiter_for("p", RequestLimits(parallel=1)).slot():
            pass
        assert keeper.calls["enter"]
        for item in work(5):
            reports = [report async for report in worker.grade(item)]
            votes = [vote for report in reports for vote in report.votes]
            assert len({one.criterion for one in votes}) == len(votes) == 2
            assert reports[-1].done is not None
            assert reports[-1].done.item_id == item.task.item_id
        await worker.close()

    settled(test)


def test_a_vote_is_reported_while_others_are_awaited() -> None:
    """If the process dies then, the vote is not requested again."""
    is_reported = asyncio.Event()

    async def ask(request: JudgeRequest) -> str:
        if request.criterion.name == "pear":
            await is_reported.wait()
        return "MET"

    async def test() -> None:
        grader = CriterionGrader(judges=[ask])
        worker = Worker("w", grader, Handle(Keeper(None, None)), counts_cost=None, keeps_exchanges=True)
        reports = worker.grade(work(1)[0])
        first = await anext(reports)
        assert [vote.criterion for vote in first.votes] == ["apple"]
        is_reported.set()
        assert [vote.criterion async for report in reports for vote in report.votes] == ["pear"]

    settled(test)


def test_a_bug_is_raised_after_the_votes_of_the_item() -> None:
    """First the votes, then the exception."""

    class Broken(CriterionGrader):
        def aggregate(self, task: GradingTask, votes: Any) -> Any:
            raise ZeroDivisionError("a bug")

    async def test() -> None:
        grader = Broken(judges=[CountingJudge()])
        worker = Worker("w", grader, Handle(Keeper(None, None)), counts_cost=None, keeps_exchanges=True)
        votes: list[Any] = []
        with pytest.raises(ZeroDivisionError):
            async for report in worker.grade(work(1)[0]):
                votes += report.votes
        assert len(votes) == 2

    settled(test)
