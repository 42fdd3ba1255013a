"""A provider and an event loop in virtual time: minutes of traffic pass in a fraction of a second."""

from __future__ import annotations

import asyncio
import random
import selectors
from collections import defaultdict, deque
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import Any

from autorubric import Criterion, CriterionGrader, LLMConfig, Rubric
from autorubric.errors import RateLimitError
from autorubric.judges import ModelJudge
from autorubric.llm import LLMClient, ModelReply, ModelRequest
from autorubric.llm.rate_limits import Limit, Limiter, RequestGate, RequestLimits, Traffic, set_authority
from autorubric.llm.retry import Retry, RetryPolicy
from autorubric.llm.transport import Message

REQUEST = ModelRequest(model="m", messages=(Message(role="user", content="hi"),))
LEARNING = 2.0
"""Seconds after which limits are to be known."""


class _Jump(selectors.SelectSelector):
    """Waits for nothing: time jumps to the next timer."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "nothing is going to happen any more"
        self.now += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only while nothing can be done."""

    def __init__(self) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)

    def time(self) -> float:
        """Seconds since the loop was made."""
        return self._jump.now


@dataclass
class Provider:
    """Allows so much and does not say it.

    Attributes:
        parallel: Most requests that are answered at a time.
        per_second: Most that are taken: in any second, or on average where there is a `burst`.
        burst: Capacity of a bucket that fills at `per_second`.
        random_share: Share that is turned away whatever comes.
        retry_after: What rejections say.
        seconds: Mean time of an answer.
        spread: How answers vary: not at all, by half, or exponentially.
        transit: Mean time on the way, each way.
    """

    parallel: int | None = None
    per_second: float | None = None
    burst: float | None = None
    random_share: float = 0.0
    retry_after: float | None = None
    seconds: float = 0.1
    spread: str = "none"
    transit: float = 0.002
    rng: random.Random = field(default_factory=random.Random)
    outcomes: list[tuple[float, bool]] = field(default_factory=list)
    _answering: int = 0
    _taken: deque[float] = field(default_factory=deque)
    _bucket: float | None = None
    _filled: float = 0.0

    async def send(self, request: ModelRequest) -> ModelReply:
        """Answers, or turns the request away."""
        await self._travel()
        now = asyncio.get_running_loop().time()
        is_taken = self._takes(now)
        self.outcomes.append((now, is_taken))
        if not is_taken:
            await self._travel()
            raise RateLimitError("busy", status=429, retry_after=self.retry_after)
        self._answering += 1
        await asyncio.sleep(self._latency())
        self._answering -= 1
        await self._travel()
        return ModelReply(text='{"reason": "It does.", "verdict": "MET"}', model="m")

    async def aclose(self) -> None:
        """Has nothing to close."""

    async def _travel(self) -> None:
        await asyncio.sleep(self.rng.expovariate(1 / self.transit))

    def _latency(self) -> float:
        match self.spread:
            case "half":
                return self.seconds * self.rng.uniform(0.5, 1.5)
            case "exponential":
                return self.rng.expovariate(1 / self.seconds)
            case _:
                return self.seconds

    def _takes(self, now: float) -> bool:
        if self.rng.random() < self.random_share:
            return False
        if self.parallel is not None and self._answering >= self.parallel:
            return False
        if self.per_second is None:
            return True
        return self._in_window(now, self.per_second) if self.burst is None else self._in_bucket(now)

    def _in_window(self, now: float, most: float) -> bool:
        while self._taken and now - self._taken[0] >= 1.0:
            self._taken.popleft()
        if len(self._taken) >= most:
            return False
        self._taken.append(now)
        return True

    def _in_bucket(self, now: float) -> bool:
        assert self.burst is not None and self.per_second is not None
        held = self.burst if self._bucket is None else self._bucket
        held = min(self.burst, held + (now - self._filled) * self.per_second)
        self._bucket, self._filled = (held - 1 if held >= 1 else held), now
        return held >= 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What came of a simulated run, after the limits were to be known.

    Attributes:
        calls_per_answer: Requests sent for each that was answered.
        rate: Answers a second.
        lost: Requests that were given up, from the beginning.
        learnt: Whether anything was.
    """

    calls_per_answer: float
    rate: float
    lost: int
    learnt: bool


class _Virtual:
    """Hands out slots by the event loop's clock."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.traffic: defaultdict[str, Traffic] = defaultdict(Traffic)

    def gate(self, provider: str, limits: RequestLimits) -> RequestGate:
        return Limiter(limits, self.traffic[provider], clock=self._loop.time)


def simulate(provider: Provider, *, seed: int, seconds: float = 12.0, callers: int = 300) -> Seen:
    """So many callers ask one after the other, with the waits of a user who set none."""
    loop = VirtualLoop()
    lost = 0
    transport = Retry(Limit(provider, "p", RequestLimits()), RetryPolicy(), rng=provider.rng, clock=loop.time)

    async def caller() -> None:
        nonlocal lost
        while True:
            try:
                await transport.send(REQUEST)
            except RateLimitError:
                lost += 1

    provider.rng.seed(seed)
    outcome = _observed(loop, provider, [caller() for _ in range(callers)], seconds)
    return replace(outcome, lost=lost)


def grade(provider: Provider, *, seed: int, items: int, seconds: float = 8.0) -> Seen:
    """Two models on one endpoint judge so many items, all at once, by four criteria."""
    judges = [
        ModelJudge(
            judge_id=name,
            client=LLMClient(
                LLMConfig(model=f"openai/{name}", api_base="http://provider/v1"), transport=provider
            ),
        )
        for name in ("one", "two")
    ]
    rubric = Rubric([Criterion(name=f"c{n}", requirement=f"It says {n}.") for n in range(4)])
    grader = CriterionGrader(judges=judges)
    lost = 0

    async def judged(number: int) -> None:
        nonlocal lost
        report = await rubric.grade(f"Text number {number}.", grader)
        lost += sum(vote.status != "answered" for one in report.report for vote in one.votes)

    provider.rng.seed(seed)
    outcome = _observed(VirtualLoop(), provider, [judged(number) for number in range(items)], seconds)
    return replace(outcome, lost=lost)


def _observed(
    loop: VirtualLoop, provider: Provider, work: list[Coroutine[Any, Any, None]], seconds: float
) -> Seen:
    """What came of the work in so many seconds; nothing is said of what was given up."""
    authority = _Virtual(loop)

    async def main() -> None:
        tasks = [asyncio.create_task(one) for one in work]
        await asyncio.sleep(seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    before = set_authority(authority)
    try:
        loop.run_until_complete(main())
    finally:
        set_authority(before)
        loop.close()
    late = [is_taken for at, is_taken in provider.outcomes if LEARNING < at < seconds]
    return Seen(
        calls_per_answer=len(late) / max(1, sum(late)),
        rate=sum(late) / (seconds - LEARNING),
        lost=0,
        learnt=any(traffic.learned.is_learned for traffic in authority.traffic.values()),
    )
