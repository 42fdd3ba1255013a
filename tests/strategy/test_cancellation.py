"""Cancelling what runs, and `CancelledError` that comes of something else."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

import pytest

from autorubric import (
    Criterion,
    CriterionGrader,
    LLMClient,
    LLMConfig,
    QualitativeCriteria,
    QuantitativeCriteria,
    Rubric,
    Strategy,
)
from autorubric.apps.strategy import RubricThreshold
from autorubric.errors import JudgeError
from autorubric.judges import JudgeReply, JudgeRequest
from autorubric.llm import ModelReply, ModelRequest
from tests.doubles import in_loop, until
from tests.strategy.drafts import run
from tests.strategy.judges import SampleJudge


async def stray() -> Any:
    """What awaits a future that somebody else cancelled."""
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    future.cancel()
    return await future


async def forever() -> Any:
    """What never ends."""
    await asyncio.Event().wait()


class StrayTransport:
    """A provider's client whose connection is cancelled under it."""

    async def send(self, request: ModelRequest) -> ModelReply:
        reply: ModelReply = await stray()
        return reply

    async def aclose(self) -> None:
        """Nothing is open."""


class Batch:
    """A judge that answers several criteria at once, or would."""

    judge_id = "batch"

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        reply: JudgeReply = await stray()
        return reply

    async def ask_many(self, requests: Sequence[JudgeRequest]) -> list[JudgeReply | JudgeError]:
        replies: list[JudgeReply | JudgeError] = await stray()
        return replies


@in_loop
async def test_a_judge_that_raises_it_loses_one_sample() -> None:
    """The others count, whether the judge is a function in the loop, one in a thread, or an object."""

    async def function(request: JudgeRequest) -> Any:
        return 4 if request.sample else await stray()

    def in_thread(request: JudgeRequest) -> int:
        if not request.sample:
            raise asyncio.CancelledError
        return 4

    for judge in (function, in_thread):
        evaluation = await QuantitativeCriteria("Long?", judge, num_samples=3).evaluate("text")
        assert (evaluation.samples, evaluation.fallback_used) == ((None, 4.0, 4.0), False)
        assert f"judge '{judge.__name__}' raised CancelledError" in (evaluation.errors[0] or "")
    lost = await QualitativeCriteria("Good?", Batch(), 2).evaluate("text")
    assert (lost.value, lost.fallback_used, lost.valid) == (False, True, ())


@in_loop
async def test_a_judge_of_several_criteria_that_raises_it_fails_them() -> None:
    """A rubric graded in one request has failed votes, and the grading comes to its end."""
    rubric = Rubric([Criterion(name=name, requirement="It is good.") for name in ("a", "b")])
    report = await rubric.grade("text", CriterionGrader(judges=[Batch()], llm_calls="per_item"))
    assert [one.status for one in report.report] == ["failed", "failed"]


Where = Literal["generate", "verify", "cost"]


@pytest.mark.parametrize("where", ["generate", "verify", "cost"])
@in_loop
async def test_a_step_that_raises_it_loses_one_candidate(where: Where) -> None:
    """The others go on, and the error stands with the candidate."""

    async def generate(prompt: str, attempt: int) -> str:
        return str(await stray()) if (where, attempt) == ("generate", 0) else f"{attempt}"

    async def verify(draft: str) -> bool:
        return bool(await stray()) if (where, draft) == ("verify", "0") else True

    async def cost(draft: str) -> float:
        return float(await stray()) if (where, draft) == ("cost", "0") else 1.0

    result = await Strategy(verify, cost, num_candidates=2).run(generate, "p")
    assert (result.winner, len(result.candidates)) == ("1", 2)
    (error,) = result.errors
    assert (error.stage, "raised CancelledError" in error.error) == (where, True)


@in_loop
async def test_a_provider_that_raises_it_loses_what_was_asked() -> None:
    """Of a model too: the candidates that it was to write, and the votes that it was to cast."""
    client = LLMClient(LLMConfig(model="m"), transport=StrayTransport())
    result = await Strategy(max_iterations=1, num_candidates=2).run(client, "Write.")
    assert (result.winner, len(result.errors)) == (None, 2)

    async def ask(request: JudgeRequest) -> str:
        return await client.generate("", "Good?", sample=request.sample)

    evaluation = await QualitativeCriteria("Good?", ask, 2).evaluate("text")
    assert evaluation.fallback_used is True


@in_loop
async def test_a_reevaluation_that_meets_it_says_so() -> None:
    """The winner stands; its second cost is missing with the reason."""
    calls = iter([2.0])

    async def cost(draft: str) -> float:
        return next(calls, 0.0) or float(await stray())

    result = await run(["a"], cost=cost, reevaluate=2)
    assert (result.winner, result.cost, result.reevaluated_cost) == ("a", 2.0, None)
    assert result.reevaluation is not None
    assert "raised CancelledError" in (result.reevaluation.error or "")


@pytest.mark.parametrize("where", ["generate", "judge", "regrade"])
@in_loop
async def test_a_run_that_is_cancelled_ends_at_once(where: str) -> None:
    """Being cancelled is no failed sample: it passes through judges, steps and generators."""
    begun = ended = 0

    async def hanging(*given: Any) -> Any:
        nonlocal begun, ended
        begun += 1
        try:
            await forever()
        finally:
            ended += 1

    async def again(request: JudgeRequest) -> str:
        return str(await hanging()) if request.sample else "MET"

    rubric = Rubric([Criterion(name="good", requirement="It is good.")])
    cost: Any = {
        "generate": None,
        "judge": QuantitativeCriteria("Long?", hanging),
        "regrade": RubricThreshold(rubric, CriterionGrader(judges=[again]), 0.5),
    }[where]
    generate: Any = hanging if where == "generate" else lambda prompt: prompt
    task = asyncio.create_task(Strategy(cost=cost).run(generate, "p", reevaluate=3))
    await until(lambda: begun == 3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == 3


@in_loop
async def test_a_timeout_around_criteria_is_a_timeout() -> None:
    """asyncio.timeout cancels from within this task, and is not taken for a lost sample."""
    criteria = QualitativeCriteria("Good?", lambda request: forever())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await criteria.evaluate("text")


@in_loop
async def test_regrading_leaves_nothing_running() -> None:
    """Where one of several fresh gradings raises, the others have ended before the result is there."""
    running = 0

    class Own:
        """A grader that breaks once."""

        calls = 0

        async def grade(self, *given: Any, **named: Any) -> Any:
            nonlocal running
            Own.calls += 1
            if Own.calls == 2:
                raise LookupError("no grader today")
            running += 1
            await asyncio.sleep(0.05)
            running -= 1
            return await CriterionGrader(judges=[SampleJudge(["MET"])]).grade(*given, **named)

    rubric = Rubric([Criterion(name="good", requirement="It is good.")])
    result = await run(["a"], cost=RubricThreshold(rubric, Own(), 0.5), reevaluate=3)
    assert result.reevaluation is not None
    assert "no grader today" in (result.reevaluation.error or "")
    assert running == 0
