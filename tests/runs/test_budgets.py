"""Runs within a budget: stopped cleanly, gone on with, and never beyond what was allowed."""

from __future__ import annotations

import asyncio
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from autorubric import Criterion, CriterionGrader, EvalResult, LexicalJudge, Rubric
from autorubric.errors import ArgumentError, TokenUsage
from autorubric.judges import JudgeReply, JudgeRequest, ModelJudge
from autorubric.llm import LLMClient, LLMConfig, ModelReply, ModelRequest
from tests.doubles import ScriptedTransport, model_reply
from tests.runs.runs import CountingJudge, run, small_dataset
from tests.servers.fixtures import OpenAIServer

PRICED = {"input_cost_per_token": 0.00001, "output_cost_per_token": 0.0}
MET = {"reason": "r", "verdict": "MET"}


def yes(cost: float = 0.01, **config: Any) -> tuple[CriterionGrader, ScriptedTransport]:
    """A grader whose model says yes for so many dollars."""
    sent = round(cost / PRICED["input_cost_per_token"])
    usage = TokenUsage(prompt_tokens=sent, completion_tokens=1, total_tokens=sent + 1)
    transport = ScriptedTransport(lambda _: model_reply(MET, usage=usage))
    settings = LLMConfig(**{"model": "openai/double", **PRICED, **config})
    judge = ModelJudge(judge_id="m", client=LLMClient(settings, transport=transport))
    return CriterionGrader(judges=[judge]), transport


@pytest.mark.parametrize("parallel", [1, 2, None])
def test_a_run_stops_at_its_calls_and_goes_on(tmp_path: Path, parallel: int | None) -> None:
    """What was answered is stored; the result has what is finished; the rest is asked for later, once."""
    grader, transport = yes()
    stopped = run(tmp_path, None, grader=grader, max_calls=5, max_concurrent_items=parallel)
    assert stopped.stopped == "max_calls"
    assert len(transport.requests) == 5
    assert stopped.total_items < 4
    assert any("max_calls=5 was reached" in notice for notice in stopped.notices)
    votes = (tmp_path / "run" / "votes.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(votes) == 5
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["status"] == "stopped"
    whole = run(tmp_path, None, grader=grader)
    assert whole.stopped is None
    assert len(transport.requests) == 8
    assert whole.get_scores() == [1.0] * 4


def test_each_call_of_evaluate_has_its_own_allowance(tmp_path: Path) -> None:
    """Gone on with by the same command, a run gets along."""
    grader, transport = yes()
    done = [run(tmp_path, None, grader=grader, max_calls=3).stopped for _ in range(3)]
    assert done == ["max_calls", "max_calls", None]
    assert len(transport.requests) == 8


def test_exactly_enough_is_no_stop(tmp_path: Path) -> None:
    """A limit that nobody ran into stopped nothing."""
    grader, _ = yes()
    assert run(tmp_path, None, grader=grader, max_calls=8).stopped is None


def test_a_run_stops_at_its_cost(tmp_path: Path) -> None:
    """The sum of what was paid stays below the limit, and room for one more call decides."""
    grader, transport = yes(cost=0.1)
    stopped = run(tmp_path, None, grader=grader, max_cost=0.35, max_concurrent_items=1)
    assert stopped.stopped == "max_cost"
    assert len(transport.requests) <= 5
    assert len((tmp_path / "run" / "votes.jsonl").read_text(encoding="utf-8").splitlines()) == len(
        transport.requests
    )


def test_an_unknown_price_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    """The model is named, a fallback too; there is no call and no folder."""
    grader, transport = yes(input_cost_per_token=None, output_cost_per_token=None, fallbacks=("groq/other",))
    with pytest.raises(ArgumentError, match=r"openai/double \(.*groq/other \(.*set input"):
        run(tmp_path, None, grader=grader, max_cost=1.0)
    assert transport.requests == []
    assert not (tmp_path / "run").exists()


def test_hundreds_in_flight_over_http_send_what_is_allowed(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """256 items at once, and the server sees exactly as many requests as were allowed."""
    config = LLMConfig(model="openai/m", api_base=openai_server.api_base, max_parallel_requests=256)
    dataset = small_dataset(*(f"apple {n}" for n in range(300)))
    result = run(
        tmp_path,
        None,
        dataset,
        grader=CriterionGrader(judges=[config]),
        max_calls=111,
        max_concurrent_items=256,
    )
    assert result.stopped == "max_calls"
    assert len(openai_server.log()) == 111
    lines = (tmp_path / "run" / "votes.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 111


def test_a_run_on_a_server_of_ones_own_stops_at_its_cost(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """A reply costs its 100 tokens at a tenth of a cent, and its vote says so; a new price voids no vote."""
    priced = {"input_cost_per_token": 0.001, "output_cost_per_token": 0.0}
    config = LLMConfig(model="hosted_vllm/m", api_base=openai_server.api_base, max_tokens=50, **priced)
    options: dict[str, Any] = {"grader": CriterionGrader(judges=[config]), "max_concurrent_items": 1}
    stopped = run(tmp_path, None, max_cost=0.6, **options)
    sent = len(openai_server.log())
    assert stopped.stopped == "max_cost"
    assert 0 < sent <= 6
    votes = (tmp_path / "run" / "votes.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(vote)["vote"]["completion_cost"] for vote in votes] == pytest.approx([0.1] * sent)
    dearer = config.model_copy(update={"input_cost_per_token": 0.002})
    whole = run(tmp_path, None, max_cost=9, grader=CriterionGrader(judges=[dearer]))
    assert whole.stopped is None
    assert len(openai_server.log()) == 8
    assert whole.total_completion_cost == pytest.approx(0.1 * sent + 0.2 * (8 - sent))


def test_calls_saved_are_told_of_the_run(tmp_path: Path) -> None:
    """By the run and by what is read of its folder; nothing is asked for again on going on."""
    transport = ScriptedTransport(lambda _: MET)
    config = LLMConfig(model="openai/double")
    judges = [ModelJudge(judge_id=one, client=LLMClient(config, transport=transport)) for one in "abc"]
    options: dict[str, Any] = {"grader": CriterionGrader(judges=judges, stop_when_decided=True)}
    result = run(tmp_path, None, **options)
    assert result.calls_saved == 8
    assert "votes skipped" in result.summary()
    assert EvalResult.from_experiment(tmp_path / "run").calls_saved == 8
    assert run(tmp_path, None, **options).calls_saved == 8
    assert len(transport.requests) == 16
    whole = run(tmp_path, None, grader=CriterionGrader(judges=judges))
    assert whole.calls_saved == 0
    assert len(transport.requests) == 24


def test_votes_of_a_shared_reply_are_stored_though_a_verdict_is_missing(tmp_path: Path) -> None:
    """What is missing may not be asked for any more; the others came, were paid for, and are kept."""

    def script(request: ModelRequest) -> Any:
        keys = re.findall(r"^\[(c[0-9a-f]{4})\]", request.messages[-1].content, re.MULTILINE)
        return {"evaluations": [{"id": key, **MET} for key in keys[1:]]} if keys else MET

    transport = ScriptedTransport(script)
    client = LLMClient(LLMConfig(model="openai/double"), transport=transport)
    rubric = Rubric([Criterion(name=name, requirement=f"It has {name}.") for name in "abcd"])
    options: dict[str, Any] = {
        "grader": CriterionGrader(judges=[ModelJudge(judge_id="m", client=client)], llm_calls="per_item")
    }
    dataset = small_dataset("apple", rubric=rubric)
    assert run(tmp_path, None, dataset, **options, max_calls=1).stopped == "max_calls"
    votes = (tmp_path / "run" / "votes.jsonl").read_text(encoding="utf-8").splitlines()
    assert (len(transport.requests), len(votes)) == (1, 3)
    assert run(tmp_path, None, dataset, **options).get_scores() == [1.0]
    assert len(transport.requests) == 2


def test_calls_of_functions_and_objects_count(tmp_path: Path) -> None:
    """Each request put to a function or object is a call; those of the built-in offline judges are not."""
    asked = []

    def own(request: JudgeRequest) -> str:
        asked.append(request.item_id)
        return "MET"

    counting = CountingJudge()
    grader = CriterionGrader(judges=[own, counting, LexicalJudge()])
    stopped = run(tmp_path, None, grader=grader, max_calls=9, max_concurrent_items=1)
    assert stopped.stopped == "max_calls"
    assert len(asked) + counting.asked.total() == 9
    assert run(tmp_path, None, grader=grader, max_calls=100).stopped is None
    assert len(asked) + counting.asked.total() == 16


def test_a_function_that_asks_a_model_counts_as_its_requests(tmp_path: Path) -> None:
    """The first request takes the place of the function's call, a second one is a call of its own."""
    transport = ScriptedTransport(lambda _: "MET")
    client = LLMClient(LLMConfig(model="openai/double"), transport=transport)

    async def twice(request: JudgeRequest) -> str:
        await client.generate("", "first")
        return await client.generate("", "second")

    result = run(tmp_path, twice, max_calls=8, max_concurrent_items=1)
    assert result.stopped == "max_calls"
    assert len(transport.requests) == 8
    assert result.total_items == 2


class Slow(ScriptedTransport):
    """Answers after a time drawn from a seed, so that items overtake each other."""

    rng = random.Random(0)

    async def send(self, request: ModelRequest) -> ModelReply:
        await asyncio.sleep(self.rng.uniform(0.0, 0.01))
        return await super().send(request)


@pytest.mark.parametrize("limit", [{"max_calls": 26}, {"max_cost": 0.26}])
@pytest.mark.parametrize("options", [{}, {"warm_prefix": True}, {"stop_when_decided": True}])
def test_a_budget_pays_for_finished_items(
    tmp_path: Path, limit: dict[str, Any], options: dict[str, Any]
) -> None:
    """Of ten items of six calls each, 26 calls finish the first four."""
    usage = TokenUsage(prompt_tokens=1000, completion_tokens=1, total_tokens=1001)
    transport = Slow(lambda _: model_reply(MET, usage=usage))
    settings = LLMConfig(model="openai/double", **PRICED)
    judges = [ModelJudge(judge_id=one, client=LLMClient(settings, transport=transport)) for one in "abc"]
    rubric = Rubric([Criterion(name=name, requirement=f"It has {name}.") for name in "xy"])
    dataset = small_dataset(*(f"text {number}" for number in range(10)), rubric=rubric)
    stopped = run(tmp_path, None, dataset, grader=CriterionGrader(judges=judges, **options), **limit)
    assert stopped.stopped == next(iter(limit))
    assert len(transport.requests) <= 30
    finished = [done.item.id for done in stopped.item_results if done.error is None]
    assert finished[:4] == ["i0", "i1", "i2", "i3"]


@pytest.mark.parametrize("parallel", [1, 3, 10, None])
@pytest.mark.parametrize("limit", [{"max_calls": 26}, {"max_cost": 0.26}])
def test_paid_calls_over_http_finish_items_in_order(
    openai_server: OpenAIServer, tmp_path: Path, limit: dict[str, Any], parallel: int | None
) -> None:
    """26 calls of a cent finish the first four of ten items of six calls each, however many run at a time."""
    openai_server.trouble(faults={"slow": {"share": 0.4, "do": "answer", "seconds": 0.05}})
    priced = {"input_cost_per_token": 0.0001, "output_cost_per_token": 0.0}
    judges = [LLMConfig(model=f"openai/{one}", api_base=openai_server.api_base, **priced) for one in "abc"]
    rubric = Rubric([Criterion(name=name, requirement=f"It has {name}.") for name in "xy"])
    dataset = small_dataset(*(f"text {number}" for number in range(10)), rubric=rubric)
    grader = CriterionGrader(judges=judges)
    stopped = run(tmp_path, None, dataset, grader=grader, max_concurrent_items=parallel, **limit)
    assert stopped.stopped == next(iter(limit))
    assert [done.item.id for done in stopped.item_results if done.error is None] == ["i0", "i1", "i2", "i3"]
    assert 24 <= len(openai_server.outcomes()) <= 26


def test_a_total_without_a_model_of_unknown_price_says_so(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    """Also if the other judges are no models; the total would otherwise look like that of all judges."""
    model = LLMConfig(model="openai/unknown", api_base=openai_server.api_base)

    def careful(request: JudgeRequest) -> JudgeReply:
        return JudgeReply(answer="MET", cost=0.01)

    both = run(tmp_path, None, grader=CriterionGrader(judges=[model, careful]))
    assert both.total_completion_cost == pytest.approx(0.08)
    assert both.notices == ("the cost excludes openai/unknown, whose price is unknown",)
    alone = run(tmp_path, None, grader=CriterionGrader(judges=[model]), experiment_name="alone")
    assert (alone.total_completion_cost, alone.notices) == (None, ())
