"""The winner judged again, and what everything took."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from autorubric import Criterion, CriterionGrader, QualitativeCriteria, QuantitativeCriteria, Rubric, Strategy
from autorubric.apps.strategy import RubricThreshold, SampledEvaluation
from autorubric.errors import TokenUsage
from autorubric.judges import JudgeReply, JudgeRequest
from tests.doubles import in_loop
from tests.strategy.drafts import from_list, run
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
    assert result.reevaluation.error == "too few of the fresh votes are valid"


@in_loop
async def test_without_a_cost_the_winner_is_verified_again() -> None:
    """The same share of the fresh votes must pass."""
    criteria = QualitativeCriteria("Good?", SampleJudge([True, True, True, False]), 2, 1, 2)
    result = await run(["a"], verify=criteria, reevaluate=2)
    assert result.reevaluation is not None
    assert (result.winner, result.reevaluation.verified, result.reevaluated_cost) == (None, False, None)
    bare = await run(["a"], reevaluate=2)
    assert bare.reevaluation is not None
    assert (
        bare.reevaluation.error
        == "the strategy has neither verify nor cost, so there is nothing to reevaluate"
    )


@pytest.mark.parametrize(
    ("votes", "verified", "needed"), [(1, True, 1), (2, False, 2), (3, True, 2), (4, True, 3), (10, False, 7)]
)
@in_loop
async def test_of_other_numbers_of_votes_the_same_share_must_pass(
    votes: int, verified: bool, needed: int
) -> None:
    """Two of three become seven of ten; and one vote is enough where only one was asked for."""
    judge = SampleJudge(["yes", "yes", "no", *["yes", "no", "yes", "yes", "yes", "no"], *["yes", "no"] * 2])
    criteria = QualitativeCriteria("Good?", judge, 3, 3, 2)
    reevaluation = (await run(["a"], verify=criteria, reevaluate=votes)).reevaluation
    assert reevaluation is not None
    assert (reevaluation.verified, reevaluation.error) == (verified, None)
    (evaluation,) = reevaluation.evaluations
    assert isinstance(evaluation, SampledEvaluation)
    assert (evaluation.needed, len(evaluation.samples)) == (needed, votes)


@in_loop
async def test_what_a_strategy_took_is_added_up() -> None:
    """Tokens and dollars of every candidate's evaluations and of the reevaluation."""
    usage = TokenUsage(total_tokens=7)
    judge = SampleJudge([JudgeReply(answer="MET", usage=usage, cost=0.5)])
    plain = Rubric([Criterion(name="good", requirement="It is good.")])
    threshold = RubricThreshold(plain, CriterionGrader(judges=[judge]), 0.5)
    result = await run(["a", "b"], verify=threshold, cost=threshold, reevaluate=2)
    assert (result.spent, result.usage) == (4.0, TokenUsage(total_tokens=56))
    assert (await run(["a"])).spent is None


@in_loop
async def test_a_cost_that_fell_back_is_flagged() -> None:
    """A midpoint stands behind every cost that was measured; where all fell back the first wins, flagged."""
    cost = QuantitativeCriteria("Long?", TextJudge(lambda text: "?" if text in "ac" else 8))
    result = await run(["a", "b"], cost=cost)
    assert (result.winner, result.cost, result.fallback_used) == ("b", 8.0, False)
    assert [one.cost for one in result.candidates] == [5.0, 8.0]
    assert [one.cost_fallback_used for one in result.candidates] == [True, False]
    result = await run(["c", "a"], cost=cost)
    assert (result.winner, result.cost, result.fallback_used) == ("c", 5.0, True)


@in_loop
async def test_a_rubric_judged_in_part_stands_behind_one_judged_whole() -> None:
    """What the criteria that were judged say is no cost beside one by all of them."""
    rubric = Rubric([Criterion(name=name, requirement="It is good.") for name in ("one", "two")])

    def judge(request: JudgeRequest) -> str:
        if request.submission.text == "part":
            return "MET" if request.criterion.name == "one" else "?"
        return "UNMET"

    cost = RubricThreshold(rubric, CriterionGrader(judges=[judge]), 0.5)
    result = await run(["part", "whole"], cost=cost)
    assert [one.cost for one in result.candidates] == [0.5, 1.0]
    assert (result.winner, result.fallback_used) == ("whole", False)


@in_loop
async def test_verify_and_cost_are_both_asked_anew() -> None:
    """A candidate that passed by luck is reported, with what it costs on fresh votes, and is no winner."""
    verify = QualitativeCriteria("Good?", SampleJudge(["yes", "no", "no"]))
    cost = QuantitativeCriteria("Long?", SampleJudge([1, 7, 9]))
    result = await run(["a"], verify=verify, cost=cost, reevaluate=2)
    again = result.reevaluation
    assert again is not None
    assert (result.winner, again.verified, again.cost, again.error) == (None, False, 8.0, None)
    assert (result.winner_number, result.cost, again.candidate) == (None, None, 0)
    assert result.candidates[again.candidate].verified
    assert [one.value for one in again.evaluations if isinstance(one, SampledEvaluation)] == [False, 8.0]


@in_loop
async def test_a_winner_that_cannot_be_verified_again_stays() -> None:
    """Where too few of the fresh votes count, nothing speaks against the winner; the error says so."""
    verify = QualitativeCriteria("Good?", SampleJudge(["yes", LOST, LOST]))
    result = await run(["a"], verify=verify, reevaluate=2)
    assert result.reevaluation is not None
    assert (result.winner, result.reevaluation.verified) == ("a", None) and result.reevaluation.error


@in_loop
async def test_a_result_is_json_data() -> None:
    """Winner, candidates with their votes, hints and errors, the reevaluation and the spending are in it."""
    verify = QualitativeCriteria("Good?", lambda asked: "yes" if asked.submission.text == "b" else "no")
    rubric = Rubric([Criterion(name="true", requirement="It is true.")])
    cost = RubricThreshold(rubric, CriterionGrader(judges=[lambda _: "MET"]), 0.5)
    strategy = Strategy(verify, cost, max_iterations=1, num_candidates=2)
    drafts = from_list([{"text": "a", "at": Path("x")}, "b"])
    result = await strategy.run(drafts, "Write.", reevaluate=1, max_calls=9)
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert (data["winner"], data["winner_number"], data["cost"]) == ("b", 1, 0.0)
    first, second = data["candidates"]
    assert first["content"] == {"text": "a", "at": "x"} and first["verified"] is False
    assert first["hints"][0]["criterion"] == "Good?"
    assert second["verification"][0]["votes"][0]["value"] == 1.0
    assert second["costing"][0]["reports"][0]["score"] == 1.0
    assert (data["reevaluation"]["verified"], data["reevaluation"]["candidate"]) == (True, 1)
    assert data["spending"] == {"calls": 5, "cost": 0.0, "reached": None} and data["stopped"] is None
    assert set(data) == {
        *("winner", "winner_number", "cost", "iterations", "fallback_used", "candidates"),
        *("reevaluation", "stopped", "spending", "usage", "spent"),
    }


@in_loop
async def test_what_goes_wrong_in_one_step_leaves_the_other() -> None:
    """Each has a figure of its own, and what went wrong stands beside it."""
    passes = iter([True])
    cost = QuantitativeCriteria("Long?", SampleJudge([3, LOST]))
    again = (await run(["a"], verify=lambda _: next(passes), cost=cost, reevaluate=1)).reevaluation
    assert again is not None
    assert (again.verified, again.cost) == (None, None)
    assert "StopIteration" in (again.error or "")
    assert (again.error or "").endswith("; too few of the fresh votes are valid")
    well = (await run(["a"], verify=lambda _: True, cost=cost, reevaluate=1)).reevaluation
    assert well is not None
    assert (well.verified, well.cost, well.error) == (True, None, "too few of the fresh votes are valid")
