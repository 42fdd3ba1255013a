"""Limits learnt from rejections, with a clock that the test moves."""

from __future__ import annotations

import asyncio
import math
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

import pytest

from autorubric.errors import ProviderError, RateLimitError, ServerError
from autorubric.llm import ModelReply, ModelRequest
from autorubric.llm.rate_limits import (
    Limit,
    Limiter,
    RequestGate,
    RequestLimits,
    Slot,
    Traffic,
    limiter_for,
    set_authority,
)
from autorubric.llm.transport import Message
from tests.llm.test_rate_limits import Clock, settle

REQUEST = ModelRequest(model="m", messages=(Message(role="user", content="hi"),))


class Provider:
    """Fails as told, one request after the other, and then replies."""

    def __init__(self, *errors: ProviderError) -> None:
        self.errors = list(errors)

    async def send(self, request: ModelRequest) -> ModelReply:
        if self.errors:
            raise self.errors.pop(0)
        return ModelReply(text="ok", model="m")

    async def aclose(self) -> None:
        pass


async def _reject(limiter: Limiter, retry_after: float | None = None) -> None:
    async with limiter.slot() as slot:
        slot.throttled(retry_after)


def test_nothing_is_learnt_without_a_rejection() -> None:
    """Errors that are no rejections leave the traffic as it is."""

    async def main() -> None:
        traffic = Traffic()
        limiter = Limiter(RequestLimits(), traffic)
        for error in (ServerError("x", status=500), ServerError("x", status=503)):
            with suppress(ServerError):
                async with limiter.slot():
                    raise error
        assert not traffic.learned.is_learned

    asyncio.run(main())


def test_a_first_rejection_with_a_wait_stops_everybody_within_their_patience() -> None:
    """After a 429 with `Retry-After` nothing is sent to the endpoint until then, if all wait as long."""
    clock = Clock()

    async def main() -> list[float]:
        traffic = Traffic()
        limits = RequestLimits(patience=60.0)
        one, other = (Limiter(limits, traffic, clock=clock, sleep=clock.sleep) for _ in range(2))
        starts = []
        for asked in (7.0, 10_000.0):
            for _ in range(5):
                await _reject(one, asked)
            before = clock.now
            async with other.slot():
                starts.append(clock.now - before)
        return starts

    short, long = asyncio.run(main())
    assert 0 <= short <= 7.2
    assert long <= 60.0


def test_pauses_one_after_the_other_hold_a_request_back_no_longer_than_its_patience() -> None:
    """A request that waits while pause follows on pause goes when its patience has ended."""
    clock = Clock()

    async def main() -> float:
        traffic = Traffic()
        limits = RequestLimits(patience=60.0)
        rejected = Limiter(limits, traffic, clock=clock, sleep=clock.sleep)
        for _ in range(5):
            await _reject(rejected, 50.0)
        last: Any = rejected.slot()
        async with last:
            last.throttled(50.0)
        came = clock.now

        async def sleep(seconds: float) -> None:
            await clock.sleep(seconds)
            if traffic.running == 0 and clock.now - came > 40.0:
                traffic.learned.add_rejection(last, 50.0, 0, traffic.sent, clock.now)

        async with Limiter(limits, traffic, clock=clock, sleep=sleep).slot():
            return clock.now - came

    assert asyncio.run(main()) <= 60.2


def test_a_pause_ends_when_a_later_request_is_answered() -> None:
    """That a request sent after the rejected one is answered shows that the provider is not closed."""
    clock = Clock()

    async def main() -> float:
        limiter = Limiter(RequestLimits(), clock=clock, sleep=clock.sleep)
        async with limiter.slot() as first, limiter.slot():
            first.throttled(60.0)
        async with limiter.slot():
            return clock.now

    assert asyncio.run(main()) < 1.0


def test_a_burst_that_is_turned_away_leaves_what_got_through() -> None:
    """Of twenty at once four are taken: no more than four are sent at a time from then on."""

    async def main() -> None:
        limiter = Limiter(RequestLimits())
        slots = [limiter.slot() for _ in range(20)]
        entered = [await slot.__aenter__() for slot in slots]
        for slot, rejected in zip(slots[4:], entered[4:], strict=True):
            rejected.throttled(None)
            await slot.__aexit__(None, None, None)
        assert limiter.running == 4
        waiting = asyncio.create_task(_reject(limiter))
        await settle()
        assert len(limiter.traffic.line) == 1
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        for slot in slots[:4]:
            await slot.__aexit__(None, None, None)
        assert (limiter.running, len(limiter.traffic.line)) == (0, 0)

    asyncio.run(main())


def test_the_window_grows_faster_the_longer_no_request_is_rejected() -> None:
    """Fifty answers offset one rejection, and two hundred double the window."""
    clock = Clock()

    async def main() -> list[float]:
        limiter = Limiter(RequestLimits(), clock=clock, sleep=clock.sleep)
        slots = [limiter.slot() for _ in range(20)]
        entered = [await slot.__aenter__() for slot in slots]
        entered[0].throttled(None)
        for slot in slots:
            await slot.__aexit__(None, None, None)
        sizes = [limiter.traffic.learned.size]
        for count in (50, 150):
            for _ in range(count):
                # Requests that wait for the window: it is full.
                running = [limiter.slot() for _ in range(math.ceil(limiter.traffic.learned.size) - 1)]
                for slot in running:
                    await slot.__aenter__()
                async with limiter.slot():
                    pass
                for slot in running:
                    await slot.__aexit__(ValueError, None, None)
            sizes.append(limiter.traffic.learned.size)
        return sizes

    lowered, later, latest = asyncio.run(main())
    assert lowered == pytest.approx(0.95 * 19)
    assert 1.04 < later / lowered < 1.07
    assert 2.0 < latest / lowered < 2.4


def test_a_busy_503_counts_as_a_rejection() -> None:
    """HTTP 503 with `Retry-After` teaches as 429 does, one without does not."""

    async def main() -> list[bool]:
        learnt = []
        for number, error in enumerate(
            (
                RateLimitError("x", status=429),
                ServerError("x", status=503, retry_after=0.0),
                ServerError("x", status=503),
            )
        ):
            transport = Limit(Provider(error), f"p{number}", RequestLimits())
            with suppress(ProviderError):
                await transport.send(REQUEST)
            gate = limiter_for(f"p{number}", RequestLimits())
            assert isinstance(gate, Limiter)
            learnt.append(gate.traffic.learned.is_learned)
        return learnt

    assert asyncio.run(main()) == [True, True, False]


class Elsewhere:
    """An authority that notes what it is asked and told."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def gate(self, provider: str, limits: RequestLimits) -> RequestGate:
        self.heard.append(provider)
        return self

    def slot(self, tokens: int = 0) -> AbstractAsyncContextManager[Slot]:
        return self

    async def __aenter__(self) -> Slot:
        self.heard.append("in")
        return self

    async def __aexit__(self, *_: object) -> None:
        self.heard.append("out")

    def spent(self, tokens: int) -> None:
        self.heard.append(tokens)

    def throttled(self, retry_after: float | None) -> None:
        self.heard.append(("throttled", retry_after))

    def timed_out(self) -> bool:
        self.heard.append("timed out")
        return False


def test_an_authority_takes_the_place_of_the_loops_limits() -> None:
    """Where one is set, every request asks it for its slot and tells it of rejections."""
    elsewhere = Elsewhere()
    before = set_authority(elsewhere)
    try:
        transport = Limit(Provider(RateLimitError("x", status=429, retry_after=3.0)), "p", RequestLimits())
        for _ in range(2):
            with suppress(RateLimitError):
                asyncio.run(transport.send(REQUEST))
    finally:
        assert set_authority(before) is elsewhere
    assert elsewhere.heard == ["p", "in", ("throttled", 3.0), "out", "p", "in", "out"]
