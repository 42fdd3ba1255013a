"""The winner judged again, and what everything took."""

from __future__ import annotations

import asyncio
from typing import Any

from autorubric import (
    Criterion,
    CriterionGrader,
    QualitativeCriteria,
    QuantitativeCriteria,
    Rubric,
    RubricThreshold,
)
from autorubric.judges import JudgeReply
from autorubric.strategy import SampledEvaluation
from autorubric.values import TokenUsage
from tests.doubles import in_loop
from tests.strategy.drafts import run
from tests.strategy.judges import LOST, SampleJudge, TextJudge


@in_loop
async def test_the_winner_is_judged_again_on_fresh_votes() -> None:
    """The votes that chose are not asked again; both costs are reported."""
    judge = SampleJudge([1, 2, 9, 9, 6])
    cost = QuantitativeCriteria("Long?", judge, num_samples=2)
    result = await run(["a", "b"], cost=cost, reevaluate=3)
    assert (result.cost, result.reevaluated_cost) == (1.5, 8.0)
    assert sorted(request.sample for request in judge.asked) == [0, 0, 1, 1, 2, 3, 4]
    assert result.reevaluation is not None
    assert (result.reevaluation.votes, result.reevaluation.error) == (3, None)
    (evaluation,) = result.reevaluation.evaluations
    assert isinstance(evaluation, SampledEvaluation)
    assert evaluation.samples == (9.0, 9.0, 6.0)


@in_loop
async def test_an_override_and_a_function_are_judged_again_too() -> None:
    """Criteria know from within that fresh votes are wanted, whoever calls them."""

    class Doubled(QuantitativeCriteria):
        async def compute(self, code: Any, agent: Any = None) -> float:
            return 2 * await super().compute(code, agent)

    doubled = Doubled("Long?", SampleJudge([1, 4]))
    other = QuantitativeCriteria("Deep?", SampleJudge([0, 3]))

    async def combined(code: str) -> float:
        return sum(await asyncio.gather(doubled.compute(code), other.compute(code)))

    result = await run(["a"], cost=combined, reevaluate=1)
    assert (result.cost, result.reevaluated_cost) == (2.0, 11.0)


@in_loop
async def test_a_function_without_criteria_is_called_once_a_vote() -> None:
    """Its mean is the reevaluated cost; one that raises leaves none, with the reason."""
    costs = iter([5.0, 1.0, 2.0, 6.0])
    result = await run(["a"], cost=lambda _: next(costs), reevaluate=3)
    assert (result.cost, result.reevaluated_cost) == (5.0, 3.0)
    left = iter([5.0, 1.0])
    result = await run(["a"], cost=lambda _: next(left), reevaluate=3)
    assert (result.winner, result.cost, result.reevaluated_cost) == ("a", 5.0, None)
    assert result.reevaluation is not None
    assert "StopIteration" in (result.reevaluation.error or "")


@in_loop
async def test_a_reevaluation_without_votes_has_no_cost() -> None:
    """A midpoint is no reevaluated cost."""
    cost = QuantitativeCriteria("Long?", SampleJudge([3, LOST, LOST]))
    result = await run(["a"], cost=cost, reevaluate=2)
    assert (result.cost, result.reevaluated_cost) == (3.0, None)
    assert result.reevaluation is not None
    assert result.reevaluation.error == "too few of the fresh votes count"


@in_loop
async def test_without_a_cost_the_winner_is_verified_again() -> None:
    """The same share of the fresh votes must pass."""
    criteria = QualitativeCriteria("Good?", SampleJudge([True, True, True, False]), 2, 1, 2)
    result = await run(["a"], verify=criteria, reevaluate=2)
    assert result.reevaluation is not None
    assert (result.winner, result.reevaluation.verified, result.reevaluated_cost) == ("a", False, None)
    bare = await run(["a"], reevaluate=2)
    assert bare.reevaluation is not None
    assert bare.reevaluation.error == "the strategy has neither cost nor verify"


@in_loop
async def test_what_a_strategy_took_is_added_up() -> None:
    """Tokens and dollars of every candidate's evaluations and of the reevaluation."""
    usage = TokenUsage(total_tokens=7)
    judge = SampleJudge([JudgeReply(answer="MET", usage=usage, cost=0.5)])
    plain = Rubric([Criterion(name="good", requirement="It is good.")])
    threshold = RubricThreshold(plain, CriterionGrader(judges=[judge]), 0.5)
    result = await run(["a", "b"], verify=threshold, cost=threshold, reevaluate=2)
    assert (result.spent, result.usage) == (3.0, TokenUsage(total_tokens=42))
    assert (await run(["a"])).spent is None


@in_loop
async def test_a_cost_that_fell_back_is_flagged() -> None:
    """The midpoint takes part in the choice, as the criteria say, and the result says so."""
    cost = QuantitativeCriteria("Long?", TextJudge(lambda text: "?" if text == "a" else 8))
    result = await run(["a", "b"], cost=cost)
    assert (result.winner, result.cost, result.fallback_used) == ("a", 5.0, True)
    assert result.candidates[1].fallback_used is False
