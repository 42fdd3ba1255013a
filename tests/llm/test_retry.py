"""Retries: the arithmetic of the waits, and which errors are tried again."""

from __future__ import annotations

import asyncio
import math
import random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from autorubric.errors import (
    AuthenticationError,
    ProviderConnectionError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitError,
    ServerError,
    TransientError,
)
from autorubric.llm import ModelReply, ModelRequest
from autorubric.llm.retry import Retry, RetryPolicy, wait_seconds
from autorubric.llm.transport import Message

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
    """Never shorter than the least or than asked, never longer than either allows."""
    policy = RetryPolicy(min_wait=low, max_wait=low + span)
    wait = wait_seconds(attempt, asked, policy, random.Random(seed))
    obeyed = asked or 0.0
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


def test_failures_of_each_class_have_their_own_tries() -> None:
    """A provider that breaks in several ways loses no call before one of them has used up its retries."""
    kinds = (ServerError, ProviderConnectionError, ProviderTimeoutError)
    mixed = [kind("x") for _ in range(3) for kind in kinds]
    reply, waits = run(*mixed, REPLY)
    assert reply is REPLY
    assert len(waits) == 9
    last = ProviderConnectionError("the fourth of its class")
    error, _ = run(*mixed, last, REPLY)
    assert error is last
    assert last.__notes__ == ["Tried 10 times."]


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


def patient(*steps: ModelReply | ProviderError, **policy: Any) -> tuple[ModelReply | ProviderError, float]:
    """What the retries end in, and when, by a clock that sleeping moves."""
    now = 0.0

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    retry = Retry(
        Scripted(*steps), RetryPolicy(**policy), sleep=sleep, rng=random.Random(1), clock=lambda: now
    )
    try:
        return asyncio.run(retry.send(REQUEST)), now
    except ProviderError as error:
        return error, now


def test_being_asked_to_wait_uses_up_no_tries() -> None:
    """More 429s than retries and as many failures as retries allow still end in the reply."""
    busy = [RateLimitError("busy", status=429) for _ in range(5)]
    later = [ServerError("later", status=503, retry_after=0.5) for _ in range(3)]
    failures = [ServerError("x") for _ in range(3)]
    reply, _ = patient(*busy, *failures, *later, REPLY)
    assert reply is REPLY


def test_patience_with_a_busy_provider_ends() -> None:
    """After `max_retries * max_wait` seconds the last 429 is raised; without retries at once."""
    busy = [RateLimitError("busy", status=429, retry_after=7.0) for _ in range(100)]
    error, ended = patient(*busy, max_retries=3, max_wait=20.0)
    assert isinstance(error, RateLimitError)
    assert 53.0 <= ended <= 60.0
    error, ended = patient(*busy, max_retries=0)
    assert isinstance(error, RateLimitError)
    assert ended == 0.0


def test_no_wait_is_not_called_too_long() -> None:
    """`Retry-After: 0` until the patience ends is the provider's error alone."""
    busy = [RateLimitError("busy", status=429, retry_after=0.0) for _ in range(100)]
    error, _ = patient(*busy, max_retries=1, max_wait=0.01)
    assert "Retry-After" not in str(error)


@pytest.mark.parametrize("kind", [RateLimitError, ServerError])
@pytest.mark.parametrize("asked", [61.0, 3600.0, 1e5, 9_999_999_999.0, math.inf])
def test_a_wait_beyond_the_patience_fails_at_once(kind: type[TransientError], asked: float) -> None:
    """The message has the header's value and the patience that it exceeds; nothing is waited for."""
    error, ended = patient(kind("busy", status=503, retry_after=asked), REPLY, max_retries=3, max_wait=20.0)
    assert isinstance(error, kind)
    assert ended == 0.0
    assert f"busy. Retry-After asks to wait {asked:.10g} s" in str(error)
    assert "max_retries × retry_max_wait = 3 × 20 s" in str(error)


def test_a_wait_within_the_patience_is_kept() -> None:
    """A wait of nearly `max_retries * max_wait` is obeyed; a second one would end after that, and fails."""
    busy = [RateLimitError("busy", status=429, retry_after=50.0) for _ in range(2)]
    assert patient(busy[0], REPLY, max_retries=3, max_wait=20.0)[0] is REPLY
    error, ended = patient(*busy, REPLY, max_retries=3, max_wait=20.0)
    assert error is busy[1]
    assert 50.0 <= ended <= 55.0


def unreachable() -> ProviderConnectionError:
    error = ProviderConnectionError("cannot connect")
    error.connected = False
    return error


def test_an_address_that_was_never_reached_is_not_tried_again() -> None:
    """It is wrong as a rule; one that was reached before is tried as often as any other."""
    error, waits = run(unreachable(), REPLY)
    assert isinstance(error, ProviderConnectionError)
    assert waits == []
    reply, waits = run(ServerError("x"), unreachable(), unreachable(), REPLY)
    assert reply is REPLY
    assert len(waits) == 3


def test_a_server_that_answered_once_may_be_restarted() -> None:
    """A refused connection after an answer is tried again."""
    retry = Retry(Scripted(REPLY, unreachable(), REPLY), RetryPolicy(min_wait=0.0, max_wait=0.0))

    async def main() -> list[ModelReply]:
        return [await retry.send(REQUEST) for _ in range(2)]

    assert asyncio.run(main()) == [REPLY, REPLY]


def test_a_rejected_request_waits_as_long_as_it_is_asked_to() -> None:
    """After a 429 the request is back in line soon, or once `Retry-After` has passed."""
    busy = RateLimitError("busy", status=429)
    _, ended = patient(busy, busy, REPLY)
    # 3 ms and 7.5 ms, up to twice as long.
    assert 0.0105 <= ended <= 0.021
    _, ended = patient(RateLimitError("busy", status=429, retry_after=0.2), REPLY)
    assert 0.2 <= ended <= 0.22


@pytest.mark.parametrize("kind", [RateLimitError, ServerError])
@pytest.mark.parametrize("asked", [0.0, 0.001])
def test_a_short_requested_wait_does_not_shorten_the_back_off(
    kind: type[TransientError], asked: float
) -> None:
    """A server that always asks for no wait gets twelve requests over minutes, and the error says so."""
    busy = [kind("busy", status=503, retry_after=asked) for _ in range(100)]
    error, waits = run(*busy)
    assert isinstance(error, kind)
    assert len(waits) == 11
    assert min(waits) >= (0.003 if kind is RateLimitError else 1.0)
    assert all(later > 1.0 for later in waits[7:])
    assert "busy. 12 requests were sent for this vote, as many as max_retries=3 allows" in str(error)


def test_failures_of_all_classes_share_the_requests_of_a_vote() -> None:
    """Retries of three classes and requested waits come to twelve requests together."""
    kinds = (ServerError, ProviderConnectionError, ProviderTimeoutError)
    mixed = [kind("x") for _ in range(3) for kind in kinds]
    busy = [RateLimitError("busy", status=429) for _ in range(9)]
    error, waits = run(*mixed, *busy)
    assert isinstance(error, RateLimitError)
    assert len(waits) == 11
