"""The keeper of a Ray run and what workers ask it, in one process: limits and budget over all workers."""

from __future__ import annotations

import asyncio
import random
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from autorubric.errors import BudgetError
from autorubric.integrations.ray_worker import TURNS, Keeper, KeeperLine, SlotOutcome
from autorubric.llm.rate_limits import RequestGate, RequestLimits, Slot
from tests.integrations.handles import Handle, settled, turns

ONE = RequestLimits(parallel=1)


class WorkersGate:
    """The gate to one provider of one worker, taken anew for each request, as requests do.

    Attributes:
        handle: The worker's handle of the keeper.
    """

    def __init__(self, name: str, keeper: Keeper, limits: RequestLimits = ONE) -> None:
        self.handle = Handle(keeper)
        self._line = KeeperLine(name, self.handle)
        self._limits = limits

    def slot(self, tokens: int = 0) -> AbstractAsyncContextManager[Slot]:
        """A slot for one request."""
        return self._line.gate("p", self._limits).slot(tokens)


def gates(keeper: Keeper, names: str, limits: RequestLimits = ONE) -> tuple[WorkersGate, ...]:
    """One gate a worker, all to the same provider."""
    return tuple(WorkersGate(name, keeper, limits) for name in names)


def test_slots_are_counted_over_all_workers() -> None:
    """A request of one worker waits for that of another."""

    async def test() -> None:
        pair = gates(Keeper(None, None), "ab")
        order: list[str] = []

        async def ask(name: str, gate: RequestGate) -> None:
            async with gate.slot():
                order.append(f"{name} in")
                await turns()
                order.append(f"{name} out")

        await asyncio.gather(*(ask(name, gate) for name, gate in zip("ab", pair, strict=True)))
        assert order == ["a in", "a out", "b in", "b out"]

    settled(test)


def test_what_a_request_tells_counts_for_all_workers() -> None:
    """Tokens that were not used are free for another, and no other goes when a provider asks to wait."""

    async def test() -> None:
        one, other = gates(Keeper(None, None), "ab", RequestLimits(tokens_per_minute=100))
        async with one.slot(80) as slot:
            slot.spent(20)
        async with other.slot(80):
            pass
        one, other = gates(Keeper(None, None), "ab", RequestLimits())
        async with one.slot() as slot:
            slot.throttled(300.0)
        asking = asyncio.ensure_future(other.slot().__aenter__())
        await turns()
        assert not asking.done()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)

    settled(test)


def test_many_requests_are_asked_for_in_few_calls() -> None:
    """Those that come up together share calls to the keeper; one alone is not kept waiting for others."""

    async def test() -> None:
        keeper = Handle(Keeper(None, None))
        line = KeeperLine("a", keeper)

        async def ask() -> None:
            await line.reserve(0.0)
            async with line.gate("p", RequestLimits()).slot():
                await asyncio.sleep(0)
            await line.settle(0.0, 0.0)

        await ask()
        await turns()
        assert sum(keeper.calls.values()) <= 4
        keeper.calls.clear()
        await asyncio.gather(*(ask() for _ in range(1000)))
        assert sum(keeper.calls.values()) <= 100

    settled(test)


def test_workers_take_turns_where_slots_are_few() -> None:
    """None waits until all that another one wants has been sent."""

    async def test() -> None:
        served: list[str] = []

        async def ask(name: str, gate: RequestGate) -> None:
            async with gate.slot():
                served.append(name)
                await asyncio.sleep(0)

        named = list(zip("ab", gates(Keeper(None, None), "ab"), strict=True))
        await asyncio.gather(*(ask(name, gate) for name, gate in named for _ in range(5 * TURNS)))
        for start in range(0, 8 * TURNS, 2 * TURNS):
            assert served[start : start + 2 * TURNS].count("a") >= TURNS // 2
            assert served[start : start + 2 * TURNS].count("b") >= TURNS // 2

    settled(test)


def test_no_provider_waits_for_another() -> None:
    """However many requests to one wait, those to another go."""

    async def test() -> None:
        limits = KeeperLine("a", Handle(Keeper(None, None)))

        async def ask() -> None:
            async with limits.gate("full", ONE).slot():
                await asyncio.Event().wait()

        waiting = [asyncio.ensure_future(ask()) for _ in range(3 * TURNS)]
        await turns()
        async with limits.gate("free", ONE).slot():
            pass
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    settled(test)


def test_a_minute_holds_its_requests_over_all_workers() -> None:
    """Requests of all workers count together."""

    async def test() -> None:
        sent: list[str] = []

        async def ask(gate: RequestGate) -> None:
            async with gate.slot():
                sent.append("")

        pair = gates(Keeper(None, None), "ab", RequestLimits(requests_per_minute=5))
        asking = [asyncio.ensure_future(ask(gate)) for gate in pair for _ in range(20)]
        await turns()
        assert len(sent) == 5
        for one in asking:
            one.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    settled(test)


def test_a_request_that_is_given_up_takes_no_slot() -> None:
    """Cancelled while it waits, or just as it is granted, it holds nobody up."""

    async def test() -> None:
        (gate,) = gates(Keeper(None, None), "a")

        async def hold() -> None:
            async with gate.slot():
                await asyncio.Event().wait()

        # After so many turns the grant is at the keeper, on its way, or there.
        for progress in range(12):
            held = [asyncio.ensure_future(hold()) for _ in range(2)]
            for _ in range(progress):
                await asyncio.sleep(0)
            for one in reversed(held):
                one.cancel()
            await asyncio.gather(*held, return_exceptions=True)
        async with gate.slot():
            pass

    settled(test)


def test_what_a_dead_worker_held_is_given_back() -> None:
    """Its slots are free again and its reservations count as spent; what comes late from it is dropped."""

    async def test() -> None:
        keeper = Keeper(None, 1.0)
        slot = ("p", ONE, 0)
        told = await keeper.tell("dead", [("slot", 0, slot), ("slot", 1, slot), ("cost", 2, (0.9,))])
        assert dict(told) == {0: None, 2: None}
        waiting = asyncio.ensure_future(keeper.answers("dead"))
        (other,) = gates(keeper, "b")
        asking = asyncio.ensure_future(other.slot().__aenter__())
        await turns()
        assert not asking.done()
        await keeper.bury("dead")
        await asking
        assert await waiting == []
        assert (await keeper.spending()).cost == pytest.approx(0.9)
        assert await keeper.tell("dead", [("slot", 3, slot), ("end", 0, (SlotOutcome(),))]) == []
        assert await keeper.answers("dead") == []
        with pytest.raises(BudgetError):
            await KeeperLine("c", Handle(keeper), counts_cost=True).reserve(0.2)
        assert (await keeper.spending()).reached == "max_cost"

    settled(test)


@pytest.mark.parametrize("seed", range(5))
def test_no_more_are_in_flight_than_allowed_whatever_happens_to_them(seed: int) -> None:
    """Answered, failed, turned away, cancelled or killed with their worker: the limit holds, none is lost."""

    async def test() -> None:
        keeper, chance = Keeper(None, None), random.Random(seed)
        limits = RequestLimits(parallel=5)
        running: set[tuple[str, int]] = set()
        most = 0

        async def ask(name: str, number: int, gate: RequestGate) -> None:
            nonlocal most
            async with gate.slot():
                running.add((name, number))
                most = max(most, len(running))
                try:
                    for _ in range(chance.randrange(8)):
                        await asyncio.sleep(0)
                    if chance.random() < 0.2:
                        raise ConnectionError
                finally:
                    running.discard((name, number))

        async def work(name: str) -> None:
            gate = WorkersGate(name, keeper, limits)
            asking = [asyncio.ensure_future(ask(name, number, gate)) for number in range(40)]
            while not all(one.done() for one in asking):
                await asyncio.sleep(0)
                if chance.random() < 0.1:
                    chance.choice(asking).cancel()
                if name.startswith("mortal") and chance.random() < 0.02:
                    # As a process does: nothing that it does from now on is heard of.
                    gate.handle.is_cut = True
                    for one in asking:
                        one.cancel()
                    await asyncio.gather(*asking, return_exceptions=True)
                    await keeper.bury(name)

        await asyncio.gather(*(work(name) for name in ("a", "mortal 1", "b", "mortal 2")))
        assert most == 5
        # All five are free again.
        (gate,) = gates(keeper, "c", limits)
        await asyncio.gather(*(gate.slot().__aenter__() for _ in range(5)))

    settled(test)


def test_budgets_are_reserved_and_settled_over_all_workers() -> None:
    """What requests cost is put in the place of what was reserved; a cancelled wait leaves nothing behind."""

    async def test() -> None:
        keeper = Keeper(None, 1.0)
        one, two = (KeeperLine(name, Handle(keeper), counts_cost=True) for name in "ab")
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


def test_a_budget_that_many_ask_for_at_once_is_never_exceeded() -> None:
    """Of more requests than are allowed, as many go as are allowed, whoever sends them."""

    async def test() -> None:
        keeper = Keeper(70, None)
        budgets = [KeeperLine(name, Handle(keeper)) for name in "abc"]
        asked = await asyncio.gather(
            *(budget.reserve(0.0) for budget in budgets for _ in range(50)), return_exceptions=True
        )
        assert asked.count(None) == 70
        assert sum(isinstance(one, BudgetError) for one in asked) == 80

    settled(test)


@pytest.mark.parametrize("method", ["tell", "answers"])
def test_when_the_keeper_is_gone_nothing_waits_for_it(method: str) -> None:
    """What waits fails as the call did, and so does what comes later."""

    class Mortal(Keeper):
        async def gone(self, *given: Any) -> Any:
            raise ConnectionError("no such actor")

    async def test() -> None:
        keeper = Mortal(None, None)
        (gate,) = gates(keeper, "a")
        async with gate.slot():
            setattr(keeper, method, keeper.gone)
            for _ in range(2):
                with pytest.raises(ConnectionError, match="no such actor"):
                    await gate.slot().__aenter__()

    settled(test)


def test_a_bug_in_granting_is_heard_by_whoever_asked() -> None:
    """It does not wait for ever."""

    async def test() -> None:
        (gate,) = gates(Keeper(None, None), "a", RequestLimits(tokens_per_minute=5))
        broken: Any = None
        with pytest.raises(TypeError):
            await gate.slot(broken).__aenter__()

    settled(test)
