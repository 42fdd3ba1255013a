"""Sampled criteria and strategies over a real HTTP server: one request a sample, faults on the way."""

from __future__ import annotations

import asyncio
import copy
import pickle
from pathlib import Path
from typing import Any

import pytest

from autorubric import (
    LLM,
    Criterion,
    CriterionGrader,
    LLMClient,
    LLMConfig,
    QualitativeCriteria,
    QuantitativeCriteria,
    Rubric,
    Strategy,
)
from autorubric.apps.strategy import RubricThreshold, SampledEvaluation
from tests.doubles import ScriptedTransport, in_loop
from tests.judges.test_models import closed_down_to, needs_proc, open_sockets, open_sockets_at_first
from tests.servers.fixtures import PASSING_FAULTS, OpenAIServer

TRANSPORTS = ("openai_compatible", "litellm")


def model(server: OpenAIServer, name: str = "judge", **settings: Any) -> LLMConfig:
    """A model of the test server, impatient."""
    given = {"retry_min_wait": 0.01, "retry_max_wait": 0.05, "api_key": "sk-none", **settings}
    return LLM(f"openai/{name}", api_base=server.api_base, **given)


def passing(passed: bool) -> dict[str, Any]:
    """A verdict."""
    return {"do": "answer", "payload": {"reason": "because", "passed": passed, "cannot_assess": False}}


def scoring(score: float) -> dict[str, Any]:
    """A score."""
    return {"do": "answer", "payload": {"explanation": "because", "score": score, "cannot_assess": False}}


def said(content: str) -> dict[str, Any]:
    """A reply as it stands."""
    return {"do": "answer", "content": content}


def asked(server: OpenAIServer, name: str = "judge") -> int:
    """How many requests a model got."""
    return sum(1 for seen in server.log() if seen["body"]["model"] == name)


@pytest.mark.parametrize("transport", TRANSPORTS)
@in_loop
async def test_five_samples_are_five_requests_with_a_cache(
    transport: str, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """A cache does not make samples one; it answers all of them the second time."""
    openai_server.script(*(scoring(n) for n in (1, 2, 3, 4, 10)))
    judge = model(openai_server, cache_enabled=True, cache_dir=tmp_path, transport=transport)
    criteria = QuantitativeCriteria("How clear?", judge, num_samples=5, agg="med")
    async with criteria:
        first = await criteria.evaluate("A text.")
        again = await criteria.evaluate("A text.")
    assert (first.value, sorted(first.valid)) == (3.0, [1.0, 2.0, 3.0, 4.0, 10.0])
    assert asked(openai_server) == 5
    assert again.samples == first.samples
    assert first.usage is not None
    assert first.usage.total_tokens == 600


@in_loop
async def test_samples_are_sent_at_once(openai_server: OpenAIServer) -> None:
    """The server has all of them in hand together."""
    openai_server.script({**passing(True), "seconds": 0.8}, repeat="last")
    judge = model(openai_server, max_parallel_requests=6)
    async with QualitativeCriteria("Clear?", judge, 6, 6, 6) as criteria:
        assert await criteria.verify("A text.")
    assert max(seen["running"] for seen in openai_server.log()) == 6


@pytest.mark.parametrize(
    "reply", ["yes", "Yes.", "TRUE", "pass", "**PASS**", '"yes"', "<think>hm</think>\nyes", "1"]
)
@in_loop
async def test_a_bare_yes_is_an_answer(reply: str, openai_server: OpenAIServer) -> None:
    """A model that says the word alone is not asked again."""
    openai_server.script(said(reply), repeat="last")
    async with QualitativeCriteria("Clear?", model(openai_server)) as criteria:
        evaluation = await criteria.evaluate("A text.")
    assert (evaluation.value, evaluation.fallback_used, asked(openai_server)) == (True, False, 1)


@pytest.mark.parametrize("reply", ["no", "No!", "false", "fail", "`fail`", "```\nno\n```"])
@in_loop
async def test_a_bare_no_is_an_answer(reply: str, openai_server: OpenAIServer) -> None:
    """Likewise."""
    openai_server.script(said(reply), repeat="last")
    async with QualitativeCriteria("Clear?", model(openai_server)) as criteria:
        evaluation = await criteria.evaluate("A text.")
    assert (evaluation.samples, asked(openai_server)) == ((False,), 1)


@pytest.mark.parametrize(
    ("reply", "score"), [("7", 7), ("7.5", 7.5), ("**8**", 8), (".5", 0.5), ("3.", 3), ("1e1", 10)]
)
@in_loop
async def test_a_bare_number_is_an_answer(reply: str, score: float, openai_server: OpenAIServer) -> None:
    """A number alone is the score."""
    openai_server.script(said(reply), repeat="last")
    async with QuantitativeCriteria("Clear?", model(openai_server)) as criteria:
        assert await criteria.compute("A text.") == score
    assert asked(openai_server) == 1


@pytest.mark.parametrize("reply", ["maybe", "I would say yes", "11", "-1", "yes no", "NaN", "", "1.2.3", "{"])
@in_loop
async def test_what_is_no_answer_is_asked_for_again_and_does_not_count(
    reply: str, openai_server: OpenAIServer
) -> None:
    """Prose, words of another kind and numbers outside the range: asked twice more, then a failed vote."""
    openai_server.script(said(reply), repeat="last")
    async with QuantitativeCriteria("Clear?", model(openai_server), 0, 10) as criteria:
        evaluation = await criteria.evaluate("A text.")
    assert (evaluation.value, evaluation.fallback_used, evaluation.samples) == (5.0, True, (None,))
    assert (evaluation.votes[0].status, evaluation.votes[0].unreadable) == ("failed", True)
    assert asked(openai_server) == 3


@in_loop
async def test_other_criteria_still_want_an_object(openai_server: OpenAIServer) -> None:
    """A grader's criteria read no bare word: they ask again."""
    openai_server.script(said("MET"), {"do": "answer", "payload": {"reason": "so", "verdict": "MET"}})
    rubric = Rubric([Criterion(name="clear", requirement="It is clear.")])
    report = await rubric.grade("A text.", CriterionGrader(llm_config=model(openai_server)))
    assert (report.score, asked(openai_server)) == (1.0, 2)


FAULTS: list[dict[str, Any] | str] = [*PASSING_FAULTS, said('{"reason": "cut of'), said("Well, it depends.")]


@pytest.mark.parametrize("transport", TRANSPORTS)
@in_loop
async def test_faults_on_the_way_lose_no_sample(transport: str, openai_server: OpenAIServer) -> None:
    """Retries and re-asks are the grader's: with every fault once among eight samples, all eight count."""
    openai_server.script(passing(True), repeat="last")
    openai_server.script(*FAULTS)
    judge = model(openai_server, transport=transport, max_retries=8, max_parallel_requests=4)
    async with QualitativeCriteria("Clear?", judge, 8, 8, 8) as criteria:
        evaluation = await criteria.evaluate("A text.")
    assert (evaluation.value, evaluation.fallback_used, len(evaluation.valid)) == (True, False, 8)
    assert len(openai_server.log()) == 8 + len(FAULTS)


@pytest.mark.parametrize("transport", TRANSPORTS)
@in_loop
async def test_requests_that_hang_lose_no_sample(transport: str, openai_server: OpenAIServer) -> None:
    """They are given up and sent again, as often as it takes."""
    openai_server.script(passing(True), repeat="last")
    openai_server.script(*[{"do": "hang", "seconds": 300}] * 3)
    # A busy machine, too slow for so short a time, has tries enough.
    judge = model(openai_server, transport=transport, timeout=1.0, max_retries=60, max_parallel_requests=4)
    async with QualitativeCriteria("Clear?", judge, 4, 4, 4) as criteria:
        evaluation = await criteria.evaluate("A text.")
    assert (evaluation.value, evaluation.fallback_used, len(evaluation.valid)) == (True, False, 4)


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        ({"do": "status", "status": 429}, "RateLimitError"),
        ({"do": "status", "status": 401}, "AuthenticationError"),
        ({"do": "hang", "seconds": 30}, "ProviderTimeoutError"),
        (said("Well, it depends."), "ReplyError"),
    ],
)
@in_loop
async def test_samples_that_stay_lost_fall_back_and_say_why(
    fault: dict[str, Any], named: str, openai_server: OpenAIServer
) -> None:
    """Each failed sample has its error; the value is the fallback, and flagged."""
    openai_server.script(fault, repeat="last")
    judge = model(openai_server, max_retries=0, timeout=0.3 if fault["do"] == "hang" else 60.0)
    async with QualitativeCriteria("Clear?", judge, 3) as criteria:
        evaluation = await criteria.evaluate("A text.")
    assert (evaluation.value, evaluation.fallback_used) == (False, True)
    assert all(named in (error or "") for error in evaluation.errors)
    assert "sk-none" not in repr(evaluation)


@in_loop
async def test_a_refusal_does_not_count(openai_server: OpenAIServer) -> None:
    """A model that refuses has not judged."""
    openai_server.script("refusal", scoring(4), scoring(6))
    async with QuantitativeCriteria("Clear?", model(openai_server), num_samples=3) as criteria:
        evaluation = await criteria.evaluate("A text.")
    assert (evaluation.value, sorted(evaluation.valid)) == (5.0, [4.0, 6.0])
    assert sorted(vote.status for vote in evaluation.votes) == ["abstained", "answered", "answered"]


@pytest.mark.parametrize("named", [False, True])
@in_loop
async def test_a_model_writes_candidates_that_a_cache_keeps_apart(
    named: bool, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """Each attempt is a sample of its own; hints of a failed round stand in the next one's prompt."""
    openai_server.script(*(said(f"draft {n}") for n in "abcd"), model="writer")
    for text, passed in (("draft c", True), ("draft d", True), ("draft a", False), ("draft b", False)):
        openai_server.script(passing(passed), model="judge", contains=text, repeat="last")
    for text, score in (("draft c", 6), ("draft d", 2)):
        openai_server.script(scoring(score), model="costs", contains=text, repeat="last")
    cached: dict[str, Any] = {"cache_enabled": True, "cache_dir": tmp_path}
    strategy = Strategy(
        verify=QualitativeCriteria("It is finished.", model(openai_server, **cached), 3, 2, 2),
        cost=QuantitativeCriteria("How long?", model(openai_server, "costs", **cached), num_samples=2),
        num_candidates=2,
    )
    writer = model(openai_server, "writer", **cached)
    generate = LLMClient(writer) if named else writer
    result = await strategy.run(generate, "Write a draft.", reevaluate=3)
    assert (result.winner, result.cost, result.reevaluated_cost, result.iterations) == (
        "draft d",
        2.0,
        2.0,
        2,
    )
    assert (asked(openai_server, "writer"), asked(openai_server), asked(openai_server, "costs")) == (4, 15, 7)
    assert result.usage is not None
    assert result.usage.total_tokens == (4 + 15 + 7) * 120
    last = [
        seen["body"]["messages"][-1]["content"]
        for seen in openai_server.log()
        if seen["body"]["model"] == "writer"
    ]
    assert last[0] == last[1] == "Write a draft."
    assert "It is finished. (0 of 3 samples passed, 2 needed)" in last[2]
    openai_server.reset()
    same = await strategy.run(writer, "Write a draft.")
    assert (same.winner, len(openai_server.log())) == ("draft d", 0)


@in_loop
async def test_a_writer_that_fails_or_refuses_loses_one_candidate(openai_server: OpenAIServer) -> None:
    """Errors stand with their candidate, and the others go on."""
    openai_server.script({"do": "status", "status": 400}, "refusal", said("text"), model="writer")
    result = await Strategy().run(model(openai_server, "writer", max_retries=0), "Write.")
    assert result.winner == "text"
    assert sorted(error.error.split(":")[0] for error in result.errors) == [
        "ReplyError",
        "RequestRefusedError",
    ]
    assert result.usage is not None
    assert result.usage.total_tokens == 2 * 120


@in_loop
async def test_an_empty_text_is_no_candidate(openai_server: OpenAIServer) -> None:
    """It is asked for again, as any reply that cannot be read, and then an error with its tokens."""
    openai_server.script(said(" "), model="writer", repeat="last")
    strategy = Strategy(num_candidates=1, max_iterations=1)
    result = await strategy.run(model(openai_server, "writer"), "Write.")
    assert (result.winner, asked(openai_server, "writer")) == (None, 3)
    assert "the reply is empty" in result.errors[0].error
    assert result.usage is not None
    assert result.usage.total_tokens == 360


@in_loop
async def test_a_rubric_is_graded_again_past_the_cache(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """Regrading asks anew, with indices of its own, though the cache is on."""
    met, unmet = ({"do": "answer", "payload": {"reason": "so", "verdict": v}} for v in ("MET", "UNMET"))
    openai_server.script(met, unmet, unmet, unmet)
    judge = model(openai_server, cache_enabled=True, cache_dir=tmp_path)
    rubric = Rubric([Criterion(name="clear", requirement="It is clear.")])
    grader = CriterionGrader(llm_config=judge)
    strategy = Strategy(cost=RubricThreshold(rubric, grader, 0.5), num_candidates=1)
    result = await strategy.run(lambda prompt: "A text.", "p", reevaluate=3)
    assert (result.cost, result.reevaluated_cost, asked(openai_server)) == (0.0, 1.0, 4)
    await grader.aclose()


def test_criteria_serve_one_loop_after_another(openai_server: OpenAIServer) -> None:
    """The same criteria work in several event loops, one after the other."""
    openai_server.script(passing(True), repeat="last")
    criteria = QualitativeCriteria("Clear?", model(openai_server))
    assert [asyncio.run(criteria.verify(text)) for text in ("a", "b")] == [True, True]


@in_loop
async def test_criteria_in_use_can_be_copied_and_pickled(openai_server: OpenAIServer) -> None:
    """With connections open, a copy opens its own, and is closed without closing those."""
    openai_server.script(passing(True), repeat="last")
    async with QualitativeCriteria("Clear?", model(openai_server)) as criteria:
        assert await criteria.verify("A text.")
        for made in (copy.deepcopy(criteria), pickle.loads(pickle.dumps(criteria))):  # noqa: S301 - our own
            async with made:
                assert await made.verify("A text.")
            assert await criteria.verify("A text.")


@in_loop
async def test_a_client_that_was_given_stays_open() -> None:
    """Whoever opens a client closes it; what it took is counted."""
    transport = ScriptedTransport(["text"])
    client = LLMClient(LLMConfig(model="m"), transport=transport)
    result = await Strategy(num_candidates=1).run(client, "Write.")
    assert (result.winner, result.spent, transport.closed) == ("text", 0.01, 0)


@needs_proc
@in_loop
async def test_what_was_opened_is_closed(openai_server: OpenAIServer) -> None:
    """A run closes the model that it opened, while the loop goes on; criteria close theirs when told."""
    openai_server.script(passing(True), repeat="last")
    openai_server.script(said("text"), model="writer", repeat="last")
    before = open_sockets_at_first()
    result = await Strategy(num_candidates=2).run(model(openai_server, "writer"), "Write.")
    assert result.winner == "text"
    assert await closed_down_to(before)
    async with QualitativeCriteria("Clear?", model(openai_server)) as criteria:
        assert await criteria.verify("A text.")
        assert open_sockets() == before + 1
    assert await closed_down_to(before)


@in_loop
async def test_the_prompt_holds_what_is_asked_and_what_is_judged(openai_server: OpenAIServer) -> None:
    """Expression, range, context and code reach the model; the prose around the code does not."""
    openai_server.script(scoring(3), repeat="last")
    criteria = QuantitativeCriteria("How complex?", model(openai_server), 1, 5, extract="code")
    async with criteria:
        evaluation: SampledEvaluation[float] = await criteria.evaluate("Hi!\n```py\nx = 1\n```", "Set x.")
    assert evaluation.value == 3.0
    prompt = openai_server.log()[0]["body"]["messages"][-1]["content"]
    for part in ("How complex?", "1 to 5", "Set x.", "x = 1"):
        assert part in prompt
    assert "Hi!" not in prompt
