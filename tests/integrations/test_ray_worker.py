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
        assert keeper.calls["tell"]
        for item in work(5):
            await worker.start(item)
        votes: list[Any] = []
        done: list[str] = []
        while len(done) < 5:
            for item_id, report in (await worker.reports()).items():
                assert item_id not in done
                votes += report.votes
                done += [report.done.item_id] if report.done is not None else []
        assert len({(one.item_id, one.criterion) for one in votes}) == len(votes) == 10
        assert sorted(done) == [f"i{n}" for n in range(5)]
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
        await worker.start(work(1)[0])
        first = await worker.reports()
        assert [vote.criterion for vote in first["i0"].votes] == ["apple"]
        is_reported.set()
        assert [vote.criterion for vote in (await worker.reports())["i0"].votes] == ["pear"]

    settled(test)


def test_a_bug_is_raised_after_what_finished_with_it() -> None:
    """First the reports, then the exception."""

    class Broken(CriterionGrader):
        other_is_reported = asyncio.Event()

        async def judge(self, task: Any, **options: Any) -> Any:
            if task.item_id == "i1":
                await self.other_is_reported.wait()
                raise ZeroDivisionError("a bug")
            return await super().judge(task, **options)

    async def test() -> None:
        grader = Broken(judges=[CountingJudge()])
        worker = Worker("w", grader, Handle(Keeper(None, None)), counts_cost=None, keeps_exchanges=True)
        for item in work(2):
            await worker.start(item)
        while not (report := (await worker.reports())["i0"]).is_over:
            pass
        assert report.done is not None
        Broken.other_is_reported.set()
        with pytest.raises(ZeroDivisionError):
            while True:
                await worker.reports()

    settled(test)
