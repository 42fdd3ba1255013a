"""Limits on requests to a provider, with a clock that the test moves."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections import deque
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from autorubric.errors import ArgumentError
from autorubric.llm.rate_limits import WINDOW_SECONDS, Limiter, RequestLimits, Traffic, local_limiter


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


async def settle() -> None:
    """Lets every task go as far as it can."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize("name", ["parallel", "requests_per_minute", "tokens_per_minute"])
def test_a_limit_below_one_is_refused(name: str) -> None:
    """A limit that lets nothing through is no limit."""
    limits: dict[str, Any] = {name: 0}
    with pytest.raises(ArgumentError, match=f"{name} must be at least 1, or None for no limit; got 0"):
        RequestLimits(**limits)


def test_without_limits_nothing_waits() -> None:
    """No limit, no wait, and the number in flight is counted all the same."""

    async def main() -> None:
        limiter = Limiter(RequestLimits())
        async with limiter.slot(10**9) as slot, limiter.slot():
            slot.spent(5)
            assert limiter.running == 2
        assert limiter.running == 0

    asyncio.run(main())


def test_only_so_many_are_in_flight_and_in_order() -> None:
    """Slots are handed out first come, first served, and a waiting request holds none."""
    order: list[int] = []

    async def main() -> None:
        limiter = Limiter(RequestLimits(parallel=2))
        done = [asyncio.Event() for _ in range(5)]

        async def request(number: int) -> None:
            async with limiter.slot():
                order.append(number)
                await done[number].wait()

        tasks = [asyncio.create_task(request(number)) for number in range(5)]
        await settle()
        assert order == [0, 1]
        assert limiter.running == 2
        done[1].set()
        await settle()
        assert order == [0, 1, 2]
        for event in done:
            event.set()
        await asyncio.gather(*tasks)
        assert order == [0, 1, 2, 3, 4]
        assert limiter.running == 0

    asyncio.run(main())


def test_a_cancelled_wait_leaves_nothing_behind() -> None:
    """A request that gives up waiting, and one that is cancelled in flight, free what they had."""

    async def main() -> None:
        limiter = Limiter(RequestLimits(parallel=1))

        async def request() -> None:
            async with limiter.slot():
                await asyncio.sleep(60)

        running, waiting = asyncio.create_task(request()), asyncio.create_task(request())
        await settle()
        waiting.cancel()
        await settle()
        running.cancel()
        await settle()
        assert limiter.running == 0
        async with asyncio.timeout(60), limiter.slot():
            assert limiter.running == 1

    asyncio.run(main())


def test_an_error_in_flight_frees_the_slot() -> None:
    """A failed request holds its slot no longer."""

    async def main() -> None:
        limiter = Limiter(RequestLimits(parallel=1))
        with pytest.raises(ValueError, match="boom"):
            async with limiter.slot():
                raise ValueError("boom")
        assert limiter.running == 0

    asyncio.run(main())


def test_requests_wait_for_their_minute() -> None:
    """The request after the last that a minute allows waits until the first is a minute old."""
    clock = Clock()

    async def main() -> list[float]:
        limiter = Limiter(RequestLimits(requests_per_minute=3), clock=clock, sleep=clock.sleep)
        starts = []
        for _ in range(7):
            async with limiter.slot():
                starts.append(clock.now)
                clock.now += 1.0
        return starts

    assert asyncio.run(main()) == [0.0, 1.0, 2.0, 60.0, 61.0, 62.0, 120.0]


def test_tokens_wait_for_their_minute_and_are_corrected() -> None:
    """What the provider counted takes the place of the estimate."""
    clock = Clock()

    async def main() -> list[float]:
        limiter = Limiter(RequestLimits(tokens_per_minute=100), clock=clock, sleep=clock.sleep)
        starts = []
        for estimate, real in ((80, 20), (80, 90), (1, 1), (1000, 500), (1, 1)):
            async with limiter.slot(estimate) as slot:
                starts.append(clock.now)
                slot.spent(real)
        return starts

    # 20 + 90 > 100, so the third waits for the first to age; the fourth is larger than any minute and
    # waits for an empty one; the fifth waits for the fourth.
    assert asyncio.run(main()) == [0.0, 0.0, 60.0, 120.0, 180.0]


def test_a_correction_after_its_minute_changes_nothing() -> None:
    """Tokens that are counted late, when the window has moved on, are not counted anew."""
    clock = Clock()

    async def main() -> None:
        limiter = Limiter(RequestLimits(tokens_per_minute=10), clock=clock, sleep=clock.sleep)
        async with limiter.slot(10) as slow:
            clock.now = 61.0
            async with limiter.slot(10):
                pass
            slow.spent(10_000)
        clock.now = 122.0
        async with limiter.slot(10):
            assert clock.now == 122.0

    asyncio.run(main())


@given(limit=st.integers(1, 5), gaps=st.lists(st.floats(0, 40), min_size=1, max_size=30))
@settings(max_examples=50, deadline=None)
def test_no_minute_has_more_than_its_requests(limit: int, gaps: list[float]) -> None:
    """Whenever requests come, no 60 seconds hold more than the limit."""
    clock = Clock()

    async def main() -> list[float]:
        limiter = Limiter(RequestLimits(requests_per_minute=limit), clock=clock, sleep=clock.sleep)
        starts = []
        for gap in gaps:
            async with limiter.slot():
                starts.append(clock.now)
            clock.now += gap
        return starts

    recent: deque[float] = deque(maxlen=limit)
    for start in asyncio.run(main()):
        assert len(recent) < limit or start - recent[0] >= WINDOW_SECONDS - 1e-6
        recent.append(start)


def test_counts_are_shared_by_all_of_a_provider_in_a_loop() -> None:
    """Whatever the limits, requests to one provider are counted together; other providers and loops apart."""

    async def main() -> list[int]:
        async with (
            local_limiter("a", RequestLimits(parallel=2)).slot(),
            local_limiter("a", RequestLimits()).slot(),
        ):
            shown = [
                local_limiter("a", RequestLimits(parallel=3)).running,
                local_limiter("b", RequestLimits()).running,
            ]
        return [*shown, local_limiter("a", RequestLimits(parallel=2)).running]

    assert [asyncio.run(main()) for _ in range(2)] == [[2, 0, 0]] * 2


def test_each_request_obeys_its_own_limit_against_the_shared_count() -> None:
    """With limits 1 and 2 on one provider never more than 2 run, and the first kind starts when none does."""
    order = [2, 2, 1, 2, 1, 2, 2, 2]
    started: list[tuple[int, int, int]] = []
    ended = 0

    async def request(parallel: int) -> None:
        nonlocal ended
        limiter = local_limiter("a", RequestLimits(parallel=parallel))
        async with limiter.slot():
            started.append((parallel, limiter.running, ended))
            await asyncio.sleep(0.001)
            ended += 1

    async def main() -> None:
        await asyncio.gather(*map(request, order))

    asyncio.run(main())
    assert [parallel for parallel, *_ in started] == order
    assert max(running for _, running, _ in started) == 2
    assert all(before == place for place, (parallel, _, before) in enumerate(started) if parallel == 1)


def test_all_that_wait_for_slots_freed_in_one_moment_go_together() -> None:
    """None waits for the one before it to be woken."""

    async def main() -> tuple[int, int]:
        limiter = Limiter(RequestLimits(parallel=5))
        held = [limiter.slot() for _ in range(5)]
        for slot in held:
            await slot.__aenter__()

        async def request() -> None:
            async with limiter.slot():
                await asyncio.Event().wait()

        tasks = [asyncio.create_task(request()) for _ in range(8)]
        await asyncio.sleep(0)
        for slot in held:
            await slot.__aexit__(None, None, None)
        at_once = limiter.running
        tasks[2].cancel()
        await asyncio.gather(tasks[2], return_exceptions=True)
        after = limiter.running
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (limiter.running, len(limiter.traffic.line)) == (0, 0)
        return at_once, after

    assert asyncio.run(main()) == (5, 5)


def test_a_stricter_request_is_not_overtaken_for_ever() -> None:
    """A request that must wait for an idle provider gets its turn although wider ones keep coming."""

    async def main() -> int:
        finished = 0
        strict_is_done = asyncio.Event()

        async def keep_asking() -> None:
            nonlocal finished
            while not strict_is_done.is_set():
                async with local_limiter("a", RequestLimits(parallel=4)).slot():
                    await asyncio.sleep(0)
                finished += 1

        async def strict() -> None:
            async with local_limiter("a", RequestLimits(parallel=1)).slot():
                strict_is_done.set()

        askers = [asyncio.create_task(keep_asking()) for _ in range(4)]
        await settle()
        before = finished
        async with asyncio.timeout(60):
            await strict()
        between = finished - before
        await asyncio.gather(*askers)
        return between

    assert asyncio.run(main()) <= 8


def test_the_minutes_of_a_provider_are_shared() -> None:
    """Requests and tokens of a config without limits count for the one that has them."""
    clock = Clock()

    async def main() -> list[float]:
        traffic = Traffic()
        free, requests, tokens = (
            Limiter(limits, traffic, clock=clock, sleep=clock.sleep)
            for limits in (
                RequestLimits(),
                RequestLimits(requests_per_minute=3),
                RequestLimits(tokens_per_minute=100),
            )
        )
        starts = []
        for limiter, estimate in (
            (free, 90),
            (free, 5),
            (requests, 1),
            (requests, 1),
            (free, 99),
            (tokens, 9),
        ):
            async with limiter.slot(estimate):
                starts.append(clock.now)
        return starts

    assert asyncio.run(main()) == [0.0, 0.0, 0.0, 60.0, 60.0, 120.0]


def test_closed_loops_are_forgotten() -> None:
    """A limiter that somebody waited for does not keep its closed event loop alive."""

    async def main() -> weakref.ref[asyncio.AbstractEventLoop]:
        limiter = local_limiter("leak", RequestLimits(parallel=1))

        async def request() -> None:
            async with limiter.slot():
                await asyncio.sleep(0.001)

        await asyncio.gather(request(), request(), request())
        return weakref.ref(asyncio.get_running_loop())

    loop = asyncio.run(main())
    asyncio.run(main())
    gc.collect()
    assert loop() is None
