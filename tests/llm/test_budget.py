"""Budgets: requests and dollars are reserved before anything is sent, and never exceeded by a request."""

from __future__ import annotations

import asyncio
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import pytest

from autorubric.errors import (
    ArgumentError,
    BudgetError,
    ProviderTimeoutError,
    RateLimitError,
    ReplyError,
    TokenUsage,
)
from autorubric.llm import LLMClient, LLMConfig, ModelReply, ModelRequest
from autorubric.llm.budget import SpendingLimit, spending_within
from autorubric.llm.transport import Message
from tests.doubles import Line, ScriptedTransport, in_loop, model_reply
from tests.servers.fixtures import OpenAIServer

QUESTION = [Message(role="user", content="x" * 400)]
GOOD = {"verdict": "MET"}
PRICED = {"input_cost_per_token": 0.001, "output_cost_per_token": 0.0}
"""A request of 400 characters is estimated at ten cents."""
UNPRICED = dict.fromkeys(PRICED)


def costing(dollars: float) -> ModelReply:
    """A reply whose tokens cost so much, and which its provider takes to cost something else."""
    sent = round(dollars / PRICED["input_cost_per_token"])
    usage = TokenUsage(prompt_tokens=sent, completion_tokens=5, total_tokens=sent + 5)
    return model_reply(GOOD, usage=usage, cost=7.0)


class Slow(ScriptedTransport):
    """Answers a while after it was asked, so that requests are in flight together."""

    async def send(self, request: ModelRequest) -> Any:
        reply = await super().send(request)
        await asyncio.sleep(0.001)
        return reply


def client(script: Any, **config: Any) -> tuple[LLMClient, ScriptedTransport]:
    transport = Slow(script)
    given: dict[str, Any] = {"model": "openai/double", "max_retries": 0, **PRICED, **config}
    return LLMClient(LLMConfig(**given), transport=transport), transport


async def ask_many(asked: LLMClient, count: int) -> list[Any]:
    """What each of so many requests in parallel came to."""
    work = (asked.ask(QUESTION, read=lambda payload: payload, sample=i) for i in range(count))
    return list(await asyncio.gather(*work, return_exceptions=True))


@in_loop
async def test_no_more_requests_than_allowed_with_hundreds_in_flight() -> None:
    """256 at once of 1,000, and exactly the hundred allowed are sent."""
    slow = Slow(lambda _: GOOD)
    asked = LLMClient(LLMConfig(model="openai/double", max_parallel_requests=256), transport=slow)
    budget = SpendingLimit(max_calls=100)
    with spending_within(budget):
        outcomes = await ask_many(asked, 1000)
    assert len(slow.requests) == budget.calls == 100
    assert sum(isinstance(one, BudgetError) for one in outcomes) == 900
    assert budget.reached == "max_calls"


@in_loop
async def test_a_request_that_another_limit_kept_back_does_not_count() -> None:
    """Of two limits that both hold, neither counts what only the other had no room for."""
    asked, transport = client(lambda _: GOOD)
    inner, outer = SpendingLimit(max_calls=100), SpendingLimit(max_calls=2)
    with spending_within(outer), spending_within(inner):
        outcomes = await ask_many(asked, 10)
    assert sum(isinstance(one, BudgetError) for one in outcomes) == 8
    assert len(transport.requests) == inner.calls == outer.calls == 2
    assert (inner.reached, outer.reached) == (None, "max_calls")


@in_loop
async def test_reasked_and_retried_requests_count() -> None:
    """A reply that cannot be read and a failure worth a retry take one of the calls each."""
    asked, transport = client(
        ["no JSON", RateLimitError("slow"), "nor this", GOOD],
        max_retries=1,
        retry_min_wait=0,
        retry_max_wait=0,
    )
    with spending_within(SpendingLimit(max_calls=3)), pytest.raises(BudgetError) as caught:
        await asked.ask(QUESTION, read=lambda payload: payload)
    assert len(transport.requests) == 3
    assert caught.value.limit == "max_calls"
    assert not isinstance(caught.value, ReplyError)


@in_loop
async def test_kept_replies_are_free(tmp_path: Any) -> None:
    """What the cache answers is no request."""
    asked, transport = client([GOOD], cache_enabled=True, cache_dir=tmp_path)
    with spending_within(SpendingLimit(max_calls=1)):
        for _ in range(5):
            await asked.ask(QUESTION, read=lambda payload: payload)
    assert len(transport.requests) == 1


@in_loop
async def test_cost_stays_within_the_limit_where_estimates_are_high() -> None:
    """Requests that wait are sent as others turn out cheaper, until the money is used up and never beyond."""
    asked, transport = client(lambda _: costing(0.02))
    budget = SpendingLimit(max_cost=0.51)
    with spending_within(budget):
        outcomes = await ask_many(asked, 100)
    assert sum(isinstance(one, BudgetError) for one in outcomes) == 100 - len(transport.requests)
    # The estimate of 0.10 is scaled to the 0.02 that each has cost: a cent is left.
    assert len(transport.requests) == 25
    assert budget.cost == pytest.approx(0.5)
    assert budget.reached == "max_cost"


@in_loop
async def test_cost_passes_the_limit_only_by_what_is_in_flight() -> None:
    """Replies dearer than estimated overshoot by their own number's surplus and stop the rest."""
    asked, transport = client(lambda _: costing(0.3))
    budget = SpendingLimit(max_cost=1.0)
    with spending_within(budget):
        await ask_many(asked, 100)
    assert len(transport.requests) <= 10
    assert budget.cost <= 1.0 + len(transport.requests) * (0.3 - 0.1)


@pytest.mark.parametrize(("error", "left"), [(RateLimitError("no"), 10), (ProviderTimeoutError("late"), 9)])
def test_what_was_refused_costs_nothing(error: Exception, left: int) -> None:
    """A request without an answer in time may have been paid for; a refused one was not."""

    @in_loop
    async def run() -> None:
        def script(request: ModelRequest) -> Line:
            return error if request.sample == 0 else costing(0.1)

        asked, transport = client(script)
        budget = SpendingLimit(max_cost=1.0)
        with spending_within(budget):
            for sample in range(40):
                await asyncio.gather(
                    asked.ask(QUESTION, read=lambda payload: payload, sample=sample), return_exceptions=True
                )
        assert len(transport.requests) == 1 + left

    run()


@in_loop
async def test_a_price_that_is_not_known_sends_nothing() -> None:
    """A limit on cost cannot be kept for such a model, and its name is told."""
    asked, transport = client([GOOD], **UNPRICED)
    with (
        spending_within(SpendingLimit(max_cost=1.0)),
        pytest.raises(BudgetError, match=r"openai/double has no .* set input_cost_per_token"),
    ):
        await asked.ask(QUESTION, read=lambda payload: payload)
    assert transport.requests == []


@in_loop
async def test_a_given_price_says_what_replies_cost() -> None:
    """Ten prompt tokens at a tenth of a cent are a cent, whatever the provider takes them to cost."""
    for stated in (None, 7.0):
        asked, _ = client(lambda _, stated=stated: model_reply(GOOD, cost=stated))
        budget = SpendingLimit(max_cost=1.0)
        with spending_within(budget):
            exchange = await asked.ask(QUESTION, read=lambda payload: payload)
        assert budget.cost == exchange.cost == pytest.approx(0.01)


@in_loop
async def test_tokens_that_were_not_counted_have_no_price() -> None:
    """The reply's cost stays unknown; the budget keeps what was set aside for it."""
    asked, _ = client(lambda _: model_reply(GOOD, usage=None, cost=None))
    budget = SpendingLimit(max_cost=1.0)
    with spending_within(budget):
        exchange = await asked.ask(QUESTION, read=lambda payload: payload)
    assert exchange.cost is None
    assert budget.cost == pytest.approx(0.1)


@in_loop
async def test_a_listed_price_counts_a_reply_without_a_cost() -> None:
    """Ten tokens sent and two received, by litellm's list."""
    asked, _ = client(lambda _: model_reply(GOOD, cost=None), model="gpt-6-luna", **UNPRICED)
    budget = SpendingLimit(max_cost=1.0)
    with spending_within(budget):
        await asked.ask(QUESTION, read=lambda payload: payload)
    assert budget.cost == pytest.approx((10 * 0.1 + 2 * 0.5) / 1e6)


def test_a_server_of_ones_own_has_the_price_that_its_config_gives(openai_server: OpenAIServer) -> None:
    """By both transports a reply costs its 100 and 20 tokens; a client that went to a worker knows it too."""
    openai_server.script({"do": "answer", "payload": GOOD}, repeat="cycle")

    async def cost(asked: LLMClient) -> float | None:
        async with asked:
            return (await asked.ask(QUESTION, read=lambda payload: payload)).cost

    for transport in ("openai_compatible", "litellm"):
        config = LLMConfig(
            model="openai/gpt-6-luna",
            api_base=openai_server.api_base,
            api_key="k",
            transport=transport,
            input_cost_per_token=1e-3,
            output_cost_per_token=1e-2,
        )
        asked = LLMClient(config)
        assert asyncio.run(cost(asked)) == pytest.approx(0.3)
        unpickled = pickle.loads(pickle.dumps(asked))  # noqa: S301 — our own bytes
        assert asyncio.run(cost(unpickled)) == pytest.approx(0.3)
    assert all("cost" not in json.dumps(request["body"]) for request in openai_server.log())


@pytest.mark.parametrize("limits", [{"max_calls": 0}, {"max_cost": 0.0}, {"max_cost": -1.0}])
def test_limits_are_positive(limits: dict[str, Any]) -> None:
    """A run that may do nothing is a slip."""
    with pytest.raises(ArgumentError, match="must be a positive"):
        SpendingLimit(**limits)


def test_the_server_sees_no_more_requests_than_allowed(openai_server: OpenAIServer) -> None:
    """Over HTTP, where some fail and are tried again: what arrives is what was allowed."""
    openai_server.script({"do": "status", "status": 500}, "answer", repeat="cycle")
    config = LLMConfig(
        model="openai/m", api_base=openai_server.api_base, retry_min_wait=0, retry_max_wait=0.01
    )

    @in_loop
    async def run() -> None:
        async with LLMClient(config) as asked:
            with spending_within(SpendingLimit(max_calls=37)):
                work = (asked.generate("", f"question {i}") for i in range(100))
                outcomes = await asyncio.gather(*work, return_exceptions=True)
        assert any(isinstance(one, BudgetError) for one in outcomes)

    run()
    assert len(openai_server.log()) == 37


def test_one_limit_holds_for_event_loops_one_after_the_other() -> None:
    """Requests that wait for room in one loop, and then in another, have the same limit."""
    budget = SpendingLimit(max_cost=0.25)

    async def ask() -> list[Any]:
        # Each loop has a client of its own, as each blocking call has.
        asked, _ = client(lambda _: costing(0.02))
        return await ask_many(asked, 4)

    with spending_within(budget):
        outcomes = [*asyncio.run(ask()), *asyncio.run(ask())]
    assert budget.calls == 8
    assert budget.cost == pytest.approx(0.16)
    assert not any(isinstance(one, Exception) for one in outcomes)


def test_one_limit_holds_for_event_loops_side_by_side() -> None:
    """Requests in threads with loops of their own wait for each other's room, and none waits for ever."""
    budget = SpendingLimit(max_cost=0.15)

    def ask() -> Any:
        asked, _ = client(lambda _: costing(0.001))
        return asyncio.run(ask_many(asked, 4))

    with spending_within(budget):
        contexts = [copy_context() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(context.run, ask) for context in contexts]
        outcomes = [one for future in futures for one in future.result(timeout=60)]
    assert budget.calls == len(outcomes) == 32
    assert not any(isinstance(one, Exception) for one in outcomes)


@pytest.mark.parametrize(
    "limits",
    [
        {"max_calls": True},
        {"max_calls": 1.5},
        {"max_calls": "3"},
        {"max_cost": "1"},
        {"max_cost": float("inf")},
    ],
)
def test_what_is_no_number_is_no_limit(limits: dict[str, Any]) -> None:
    """A limit of another type is told of where it is given."""
    with pytest.raises(ArgumentError, match=r"must be a positive .*, or None for no limit"):
        SpendingLimit(**limits)
