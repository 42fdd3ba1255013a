"""The keeper and the workers of a Ray run, in one process: what they do does not need Ray."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from autorubric import CriterionGrader
from autorubric.errors import BudgetError
from autorubric.eval import ItemWork
from autorubric.graders import GradingTask
from autorubric.integrations._ray_actors import Ended, Keeper, KeptBudget, KeptLimits, Ticket, Tickets, Worker
from autorubric.rate_limit import Limits, limiter_for, set_authority
from autorubric.values import Submission
from tests.eval.runs import CountingJudge, small_rubric

ONE = Limits(parallel=1)


class Handle:
    """An actor that is no actor: calls run in this event loop."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._actor, name)

        class Remote:
            @staticmethod
            def remote(*given: Any) -> Any:
                return asyncio.ensure_future(method(*given))

        return Remote


@pytest.fixture(autouse=True)
def own_limits() -> Iterator[None]:
    """Workers make the keeper the authority of their process; here it is given back."""
    before = set_authority(None)
    yield
    set_authority(before)


def settled(test: Callable[[], Awaitable[None]]) -> None:
    """Runs a test that must not hang."""

    async def within() -> None:
        async with asyncio.timeout(120):
            await test()

    asyncio.run(within())


async def turns() -> None:
    """Lets everything that can go on do so."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_slots_are_counted_over_all_workers() -> None:
    """A request of one worker waits for that of another, and what it tells reaches the limiter."""

    async def test() -> None:
        keeper = Keeper(None, None)
        gates = [KeptLimits(Tickets(name, Handle(keeper))).gate("p", ONE) for name in ("a", "b")]
        order: list[str] = []

        async def ask(name: str, gate: Any) -> None:
            async with gate.slot(10) as slot:
                order.append(f"{name} in")
                await turns()
                slot.spent(25)
                order.append(f"{name} out")

        await asyncio.gather(*(ask(name, gate) for name, gate in zip("ab", gates, strict=True)))
        assert order == ["a in", "a out", "b in", "b out"]
        async with gates[0].slot() as slot:
            slot.throttled(0.01)
        await turns()

    settled(test)


def test_a_request_that_is_given_up_takes_no_slot() -> None:
    """Cancelled while it waits, it holds nobody up."""

    async def test() -> None:
        keeper = Keeper(None, None)
        gate = KeptLimits(Tickets("a", Handle(keeper))).gate("p", ONE)

        async def hold() -> None:
            async with gate.slot():
                await asyncio.sleep(60)

        first, second = (asyncio.ensure_future(hold()) for _ in range(2))
        await turns()
        for one in (second, first):
            one.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        await turns()
        async with gate.slot():
            pass

    settled(test)


def test_what_a_dead_worker_held_is_given_back() -> None:
    """Its slots are free again and its reservations count as spent; what comes late from it is dropped."""

    async def test() -> None:
        keeper = Keeper(None, 1.0)
        await keeper.acquire(Ticket("dead", 0), "p", ONE, 0)
        waiting = asyncio.ensure_future(keeper.acquire(Ticket("dead", 1), "p", ONE, 0))
        assert await keeper.reserve(Ticket("dead", 2), 0.9) is None
        other = asyncio.ensure_future(keeper.acquire(Ticket("b", 0), "p", ONE, 0))
        await turns()
        await keeper.bury("dead")
        await other
        assert (await keeper.spending()).cost == pytest.approx(0.9)
        for late in (waiting, keeper.acquire(Ticket("dead", 3), "p", ONE, 0)):
            with pytest.raises(asyncio.CancelledError):
                await late
        refused = await keeper.reserve(Ticket("b", 1), 0.2)
        assert isinstance(refused, BudgetError)
        assert (await keeper.spending()).reached == "max_cost"
        await keeper.release(Ticket("b", 9), Ended())

    settled(test)


def test_budgets_are_reserved_and_settled_over_all_workers() -> None:
    """What requests cost is put in the place of what was reserved; a cancelled wait leaves nothing behind."""

    async def test() -> None:
        keeper = Keeper(None, 1.0)
        one, two = (KeptBudget(Tickets(name, Handle(keeper)), counts_cost=True) for name in "ab")
        await one.reserve(0.8)
        waits = asyncio.ensure_future(two.reserve(0.5))
        await turns()
        assert not waits.done()
        waits.cancel()
        await asyncio.gather(waits, return_exceptions=True)
        await one.settle(0.8, 0.3)
        await two.reserve(0.6)
        await two.settle(0.6, 0.6)
        await turns()
        spending = await keeper.spending()
        assert spending.calls == 2
        assert spending.cost == pytest.approx(0.9)
        with pytest.raises(BudgetError):
            await one.reserve(0.2)

    settled(test)


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
        keeper = Keeper(None, None)
        worker = Worker("w", CriterionGrader(judges=[CountingJudge()]), Handle(keeper), True, False)
        assert not await worker.begin()
        async with limiter_for("p", ONE).slot():
            pass
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

    class Broken(CountingJudge):
        other_is_told = asyncio.Event()

        async def ask(self, request: Any) -> Any:
            if request.item_id == "i1":
                await self.other_is_told.wait()
                raise ZeroDivisionError("a bug")
            return await super().ask(request)

    async def test() -> None:
        worker = Worker("w", CriterionGrader(judges=[Broken()]), Handle(Keeper(None, None)), None, True)
        batch, done = work(2), []
        while not done:
            parcel = await worker.exchange(batch)
            batch, done = [], [one.item_id for one in parcel.done]
        assert done == ["i0"]
        Broken.other_is_told.set()
        with pytest.raises(ZeroDivisionError):
            while True:
                await worker.exchange([])

    settled(test)
