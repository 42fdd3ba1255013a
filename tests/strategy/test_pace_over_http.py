"""Retries, caches and prices of models, as criteria and strategies have them, over a real HTTP server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from autorubric import LLMConfig, QualitativeCriteria, QuantitativeCriteria, Strategy
from tests.doubles import in_loop
from tests.servers.fixtures import OpenAIServer
from tests.strategy.test_over_http import FAULTS, TRANSPORTS, asked, model, passing, said, scoring

BROKEN: list[dict[str, Any] | str] = [
    {"do": "status", "status": 429, "headers": {"Retry-After": "0"}},
    {"do": "status", "status": 500},
    "reset",
    {"do": "raw", "body": "<html>busy</html>"},
]
MALFORMED: list[dict[str, Any] | str] = [said('{"reason": "cut of'), said("Well, it depends.")]


def scripted(server: OpenAIServer) -> None:
    """Two drafts, of which both pass and the second costs less."""
    server.reset()
    server.script(said("draft a"), said("draft b"), model="writer", repeat="cycle")
    server.script(passing(True), model="judge", repeat="last")
    server.script(scoring(6), model="costs", contains="draft a", repeat="last")
    server.script(scoring(2), model="costs", contains="draft b", repeat="last")


def strategy_of(server: OpenAIServer, **settings: Any) -> tuple[Strategy, LLMConfig]:
    """A strategy of three models."""
    settings = {"max_retries": 8, **settings}
    verify = QualitativeCriteria("It is finished.", model(server, **settings), 3, 3, 3)
    cost = QuantitativeCriteria("How long?", model(server, "costs", **settings), num_samples=2)
    return Strategy(verify, cost, num_candidates=2), model(server, "writer", **settings)


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
@in_loop
async def test_faults_lose_no_candidate_no_vote_and_no_reevaluation(
    transport: str, openai_server: OpenAIServer
) -> None:
    """429, 500, a reset and a broken body at every model, and replies that cannot be read at the judge."""
    scripted(openai_server)
    for name in ("writer", "judge", "costs"):
        openai_server.script(*BROKEN, *(MALFORMED if name == "judge" else ()), model=name)
    strategy, writer = strategy_of(openai_server, transport=transport)
    result = await strategy.run(writer, "Write a draft.", reevaluate=4)
    assert (result.winner, result.cost, result.reevaluated_cost) == ("draft b", 2.0, 2.0)
    assert (result.errors, result.fallback_used, result.iterations) == ((), False, 1)
    assert [asked(openai_server, name) for name in ("writer", "judge", "costs")] == [
        2 + len(BROKEN),
        2 * 3 + 4 + len(BROKEN) + len(MALFORMED),
        2 * 2 + 4 + len(BROKEN),
    ]


@in_loop
async def test_a_cache_answers_all_but_fresh_votes(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """A second run asks nothing; fresh votes are asked for though the cache has the others, and then kept."""
    scripted(openai_server)
    strategy, writer = strategy_of(openai_server, cache_enabled=True, cache_dir=tmp_path)
    first = await strategy.run(writer, "Write a draft.")
    assert len(openai_server.log()) == 2 + 6 + 4
    counted = []
    for fresh in (0, 3, 3, 5):
        scripted(openai_server)
        openai_server.script(scoring(9), model="costs", repeat="last")
        again = await strategy.run(writer, "Write a draft.", reevaluate=fresh)
        assert (again.winner, again.cost) == (first.winner, first.cost) == ("draft b", 2.0)
        assert sorted(one.content for one in again.candidates) == ["draft a", "draft b"]
        assert again.reevaluated_cost == (9.0 if fresh else None)
        counted.append(len(openai_server.log()))
    assert counted == [0, 2 * 3, 0, 2 * 2]


@in_loop
async def test_a_cache_keeps_no_reply_that_could_not_be_read(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """A sample that failed is asked again, and those that did not fail are not."""
    judge = model(openai_server, cache_enabled=True, cache_dir=tmp_path, max_retries=0)
    openai_server.script(passing(True), repeat="last")
    openai_server.script({"do": "status", "status": 500}, said("Well."), said("Well."), said("Well."))
    async with QualitativeCriteria("Clear?", judge, 1) as one:
        assert (await one.evaluate("A text.")).fallback_used is True
        assert (await one.evaluate("A text.")).fallback_used is True
        assert asked(openai_server) == 4
        assert (await one.evaluate("A text.")).value is True
        assert (await one.evaluate("A text.")).value is True
    assert asked(openai_server) == 5


@in_loop
async def test_what_models_take_is_counted_in_dollars(openai_server: OpenAIServer) -> None:
    """With a model whose price is known a run sends nothing that has no room, and says what it took."""
    openai_server.script(passing(False), repeat="last")
    judge = model(openai_server, "gpt-6-luna", transport="litellm")
    strategy = Strategy(QualitativeCriteria("Good?", judge), None, 5, 2)
    result = await strategy.run(lambda prompt: "text", "p", max_cost=1e-9)
    assert (result.iterations, result.max_cost_reached, asked(openai_server, "gpt-6-luna")) == (1, True, 0)
    result = await strategy.run(lambda prompt: "text", "p", max_cost=1.0)
    assert (result.iterations, result.stopped, asked(openai_server, "gpt-6-luna")) == (5, None, 10)
    assert result.spent is not None and 1e-9 < result.spent < 0.01
    assert result.spending is not None
    assert result.spending.calls == 10
    assert result.spending.cost == pytest.approx(result.spent)


@in_loop
async def test_criteria_asked_in_threads_have_connections_of_their_own(openai_server: OpenAIServer) -> None:
    """A blocking verify that asks a model, in as many threads as there are candidates, faults and all."""
    openai_server.script(passing(True), repeat="last")
    openai_server.script(*FAULTS[:4])
    criteria = QualitativeCriteria("Good?", model(openai_server, max_retries=8), 2, 2, 2)
    result = await Strategy(lambda text: criteria.verify_sync(text), num_candidates=4).run(
        lambda prompt, attempt: f"text {attempt}", "p"
    )
    assert [one.verified for one in result.candidates] == [True] * 4
    assert asked(openai_server) == 4 * 2 + 4
