"""A worker of a Ray run, in this process: what it does does not need Ray."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from autorubric import CriterionGrader
from autorubric.criteria import Submission
from autorubric.grading import GradingTask
from autorubric.integrations.ray_keeper import Keeper
from autorubric.integrations.ray_worker import Worker
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


def test_a_worker_tells_votes_and_items_as_they_come() -> None:
    """Every vote comes before its item is done, and nothing is told twice; its limits are the keeper's."""

    async def test() -> None:
        keeper = Handle(Keeper(None, None))
        worker = Worker("w", CriterionGrader(judges=[CountingJudge()]), keeper, True, False)
        assert not await worker.begin()
        async with limiter_for("p", RequestLimits(parallel=1)).slot():
            pass
        assert keeper.calls["tell"]
        votes: list[Any] = []
        done: list[Any] = []
        batch = work(5)
        while len(done) < 5:
            parcel = await worker.exchange(batch)
            batch = []
            votes += parcel.votes
            done += parcel.done
        assert len({(one.item_id, one.criterion) for one in votes}) == len(votes) == 10
        assert sorted(one.item_id for one in done) == [f"i{n}" for n in range(5)]
        await worker.close()

    settled(test)


def test_a_bug_comes_after_what_finished_beside_it() -> None:
    """First the parcel, then the exception."""

    class Broken(CriterionGrader):
        other_is_told = asyncio.Event()

        async def judge(self, task: Any, **options: Any) -> Any:
            if task.item_id == "i1":
                await self.other_is_told.wait()
                raise ZeroDivisionError("a bug")
            return await super().judge(task, **options)

    async def test() -> None:
        worker = Worker("w", Broken(judges=[CountingJudge()]), Handle(Keeper(None, None)), None, True)
        batch = work(2)
        done: list[str] = []
        while not done:
            parcel = await worker.exchange(batch)
            batch, done = [], [one.item_id for one in parcel.done]
        assert done == ["i0"]
        Broken.other_is_told.set()
        with pytest.raises(ZeroDivisionError):
            while True:
                await worker.exchange([])

    settled(test)
