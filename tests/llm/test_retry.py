"""Retries: the arithmetic of the waits, and which errors are tried again."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from hypothesis import given, strategies as st

from autorubric.errors import AuthenticationError, ProviderError, RateLimitError, ServerError
from autorubric.llm import Message, ModelReply, ModelRequest
from autorubric.llm._retry import Retry, RetryPolicy, wait_seconds

REQUEST = ModelRequest(model="m", messages=(Message(role="user", content="hi"),))
REPLY = ModelReply(text="ok", model="m")


class Scripted:
    """A transport that gives what it was told, in order."""

    def __init__(self, *steps: ModelReply | ProviderError) -> None:
        self.steps = list(steps)
        self.closed = 0

    async def send(self, request: ModelRequest) -> ModelReply:
        step = self.steps.pop(0)
        if isinstance(step, ProviderError):
            raise step
        return step

    async def aclose(self) -> None:
        self.closed += 1


def run(*steps: ModelReply | ProviderError, **policy: Any) -> tuple[ModelReply | ProviderError, list[float]]:
    """What the retries end in, and the waits between them."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    retry = Retry(Scripted(*steps), RetryPolicy(**policy), sleep=sleep, rng=random.Random(1))
    try:
        return asyncio.run(retry.send(REQUEST)), waits
    except ProviderError as error:
        return error, waits


@given(
    attempt=st.integers(1, 10_000),
    asked=st.none() | st.floats(0, 1e9),
    low=st.floats(0, 10),
    span=st.floats(0, 100),
    seed=st.integers(),
)
def test_a_wait_lies_between_its_bounds(
    attempt: int, asked: float | None, low: float, span: float, seed: int
) -> None:
    """Never shorter than the least or than asked (up to 300 s), never longer than either allows."""
    policy = RetryPolicy(min_wait=low, max_wait=low + span)
    wait = wait_seconds(attempt, asked, policy, random.Random(seed))
    obeyed = min(asked or 0.0, max(300.0, policy.max_wait))
    assert max(low, obeyed) <= wait <= max(low + span, 1.1 * obeyed) + 1e-9


def test_waits_grow_with_the_attempts() -> None:
    """The span from which a wait is drawn doubles until it meets the longest wait."""
    policy = RetryPolicy(min_wait=1.0, max_wait=10.0)
    draws = {
        attempt: [wait_seconds(attempt, None, policy, random.Random(seed)) for seed in range(300)]
        for attempt in (1, 2, 3, 9)
    }
    tops = [max(draw) for draw in draws.values()]
    assert [round(top) for top in tops] == [2, 4, 8, 10]
    assert all(min(draw) < 1.2 for draw in draws.values())


def test_waiting_requests_do_not_come_back_together() -> None:
    """Requests that were told the same wait are spread over a tenth of it."""
    waits = {wait_seconds(1, 100.0, RetryPolicy(), random.Random(seed)) for seed in range(50)}
    assert len(waits) == 50
    assert 100.0 <= min(waits) < max(waits) <= 110.0


def test_transient_errors_are_tried_again() -> None:
    """The reply after two failures is the result."""
    reply, waits = run(ServerError("x"), RateLimitError("y", retry_after=7.0), REPLY)
    assert reply is REPLY
    assert len(waits) == 2
    assert 7.0 <= waits[1] <= 7.7


def test_the_last_error_is_raised_when_the_tries_are_used_up() -> None:
    """As many retries as allowed, and a note of how many tries there were."""
    last = ServerError("third")
    error, waits = run(ServerError("first"), ServerError("second"), last, REPLY, max_retries=2)
    assert error is last
    assert last.__notes__ == ["Tried 3 times."]
    assert len(waits) == 2


def test_other_errors_are_raised_at_once() -> None:
    """What no retry can mend is not retried."""
    error, waits = run(AuthenticationError("no"), REPLY)
    assert isinstance(error, AuthenticationError)
    assert waits == []


def test_closing_closes_what_is_inside() -> None:
    """Closing goes through to the provider's transport."""
    inner = Scripted()
    asyncio.run(Retry(inner, RetryPolicy()).aclose())
    assert inner.closed == 1
