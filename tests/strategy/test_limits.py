"""What a run may spend."""

from __future__ import annotations

from typing import Any

import pytest

from autorubric import LLM, LLMConfig, QualitativeCriteria, QuantitativeCriteria, Strategy
from autorubric.errors import ArgumentError
from autorubric.judges import JudgeReply
from autorubric.llm.budget import SpendingLimit, spending_within
from tests.doubles import in_loop
from tests.servers.fixtures import OpenAIServer
from tests.strategy.drafts import from_list
from tests.strategy.judges import SampleJudge


def priced(answer: Any) -> SampleJudge:
    """A judge that takes a quarter of a dollar for each answer."""
    return SampleJudge([JudgeReply(answer=answer, cost=0.25)])


@pytest.mark.parametrize(
    ("max_cost", "rounds", "reached"),
    [(None, 4, False), (0.1, 1, True), (0.5, 1, True), (0.51, 2, True), (1.5, 3, True), (2, 4, False)],
)
@in_loop
async def test_no_round_begins_once_it_is_spent(max_cost: float | None, rounds: int, reached: bool) -> None:
    """Two candidates a round take half a dollar; a round that has begun is finished and kept."""
    strategy = Strategy(QualitativeCriteria("Good?", priced("no")), None, 4, 2)
    result = await strategy.run(lambda prompt: "text", "p", max_cost=max_cost, reevaluate=2)
    assert (result.winner, result.iterations, result.spent) == (None, rounds, rounds * 0.5)
    assert (len(result.candidates), result.max_cost_reached) == (2 * rounds, reached)


@in_loop
async def test_the_winner_is_not_judged_again_once_it_is_spent() -> None:
    """The winner stands, and the result says why it was not judged again."""
    strategy = Strategy(cost=QuantitativeCriteria("Long?", priced(3)), num_candidates=2)
    result = await strategy.run(from_list(["a", "b"]), "p", max_cost=0.5, reevaluate=2)
    assert (result.winner, result.cost, result.spent, result.max_cost_reached) == ("a", 3.0, 0.5, True)
    assert result.reevaluation is not None
    assert result.reevaluation.error == "the limit max_cost=0.5 (US dollars) was reached"
    assert result.reevaluated_cost is None
    result = await strategy.run(from_list(["a", "b"]), "p", max_cost=0.75, reevaluate=2)
    assert (result.reevaluated_cost, result.spent, result.max_cost_reached) == (3.0, 1.0, False)
    result = await strategy.run(from_list(["a", "b"]), "p", max_cost=0.5)
    assert (result.winner, result.reevaluation, result.max_cost_reached) == ("a", None, False)


@pytest.mark.parametrize("max_cost", [0, -1, float("nan"), float("inf"), True, "1"])
@in_loop
async def test_what_is_no_amount_is_refused(max_cost: Any) -> None:
    """Before anything is asked."""
    with pytest.raises(ArgumentError, match="max_cost must be a positive number"):
        await Strategy().run(lambda prompt: prompt, "p", max_cost=max_cost)


def rated(answer: Any) -> dict[str, Any]:
    """A reply to a gate, or to a score."""
    key = "passed" if isinstance(answer, bool) else "score"
    return {"explanation": "because", "reason": "because", key: answer, "cannot_assess": False}


def judging(server: OpenAIServer, **settings: Any) -> LLMConfig:
    """A model of the test server that takes a tenth of a cent for a token sent."""
    priced = {"input_cost_per_token": 0.001, "output_cost_per_token": 0.0}
    return LLM("hosted_vllm/judge", api_base=server.api_base, max_retries=0, **{**priced, **settings})


@in_loop
async def test_no_more_requests_than_allowed_within_a_round(openai_server: OpenAIServer) -> None:
    """Eight candidates ask three times each; twenty requests are sent, and the history is there."""
    openai_server.script({"do": "answer", "payload": rated(True)}, repeat="last")
    strategy = Strategy(QualitativeCriteria("Good?", judging(openai_server), 3, 3, 3), num_candidates=8)
    result = await strategy.run(lambda prompt, attempt: f"text {attempt}", "p", max_calls=20, reevaluate=2)
    assert len(openai_server.log()) == 20
    assert (result.iterations, len(result.candidates), result.stopped) == (1, 8, "max_calls")
    assert result.spending is not None and result.spending.calls == 20
    passed = [one for one in result.candidates if one.verified]
    left = [one for one in result.candidates if one.errors]
    assert len(passed) >= 4 and len(passed) + len(left) == 8
    assert all(
        str(one.errors[0]) == "verify: BudgetError: the limit max_calls=20 was reached" for one in left
    )
    assert result.winner == passed[0].content
    assert result.reevaluation is not None
    assert result.reevaluation.error == "the limit max_calls=20 (requests) was reached"


@in_loop
async def test_no_round_begins_without_a_request_left(openai_server: OpenAIServer) -> None:
    """No candidates are made for a round that could ask nothing; a limit that nothing met stops nothing."""
    openai_server.script({"do": "answer", "payload": rated(False)}, repeat="last")
    strategy = Strategy(QualitativeCriteria("Good?", judging(openai_server)), None, 3, 2)
    result = await strategy.run(lambda prompt: "text", "p", max_calls=4)
    assert (result.iterations, result.errors, result.stopped) == (2, (), "max_calls")
    result = await strategy.run(lambda prompt: "text", "p", max_calls=6)
    assert (result.iterations, result.stopped, len(openai_server.log())) == (3, None, 10)


@in_loop
async def test_no_more_dollars_than_allowed_within_a_round(openai_server: OpenAIServer) -> None:
    """Requests wait for room, go on as others turn out cheaper, and end where there is none."""
    openai_server.script({"do": "answer", "payload": rated(4.0)}, repeat="last")
    cost = QuantitativeCriteria("Long?", judging(openai_server), num_samples=4)
    free = await Strategy(cost=cost, num_candidates=1).run(lambda prompt: "text", "p")
    one = (free.spent or 0.0) / 4
    strategy = Strategy(cost=cost, num_candidates=6, max_iterations=2)
    for generate in (lambda prompt: "text", LLM("hosted_vllm/unpriced", api_base=openai_server.api_base)):
        result = await strategy.run(generate, "p", max_cost=9.5 * one)
        assert result.spending is not None and result.spending.cost <= 9.5 * one
    assert any("unpriced has no known price" in str(error) for error in result.errors)
    assert not any(seen["body"]["model"] == "unpriced" for seen in openai_server.log())


@in_loop
async def test_criteria_asked_in_threads_keep_to_the_limits(openai_server: OpenAIServer) -> None:
    """Blocking functions have loops of their own, and wait for room all the same."""
    openai_server.script({"do": "answer", "payload": rated(True), "seconds": 0.05}, repeat="last")
    criteria = QualitativeCriteria("Good?", judging(openai_server), 2, 2, 2)
    free = await criteria.evaluate("text")
    one = (free.cost or 0.0) / 2
    strategy = Strategy(lambda text: criteria.verify_sync(text), num_candidates=6, max_iterations=1)
    result = await strategy.run(lambda prompt: "text", "p", max_cost=4 * one, max_calls=9)
    assert result.spending is not None
    assert result.spending.cost <= 4 * one + 1e-9 and result.stopped == "max_cost"
    assert len(openai_server.log()) == 2 + result.spending.calls


@in_loop
async def test_limits_hold_within_those_of_whoever_calls(openai_server: OpenAIServer) -> None:
    """A run within a block that has a budget keeps to both, and the block counts its requests."""
    openai_server.script({"do": "answer", "payload": rated(False)}, repeat="last")
    strategy = Strategy(QualitativeCriteria("Good?", judging(openai_server)), None, 5, 1)
    around = SpendingLimit(max_calls=5)
    with spending_within(around):
        first = await strategy.run(lambda prompt: "text", "p", max_calls=3)
        second = await strategy.run(lambda prompt: "text", "p", max_calls=3)
    assert (first.iterations, first.stopped) == (3, "max_calls")
    assert (around.calls, around.reached, len(openai_server.log())) == (5, "max_calls", 5)
    assert any("the limit max_calls=5 was reached" in str(error) for error in second.errors)


@pytest.mark.parametrize("max_calls", [0, -1, 1.5, True, "1"])
@in_loop
async def test_what_is_no_number_of_calls_is_refused(max_calls: Any) -> None:
    """Before anything is asked."""
    with pytest.raises(ArgumentError, match="max_calls must be an integer"):
        await Strategy().run(lambda prompt: prompt, "p", max_calls=max_calls)
