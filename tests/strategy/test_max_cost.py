"""What a run may spend."""

from __future__ import annotations

from typing import Any

import pytest

from autorubric import QualitativeCriteria, QuantitativeCriteria, Strategy
from autorubric.errors import ArgumentError
from autorubric.judges import JudgeReply
from tests.doubles import in_loop
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
    assert result.reevaluation.error == "max_cost of 0.5 US dollars was reached"
    assert result.reevaluated_cost is None
    result = await strategy.run(from_list(["a", "b"]), "p", max_cost=0.75, reevaluate=2)
    assert (result.reevaluated_cost, result.spent, result.max_cost_reached) == (3.0, 1.0, False)
    result = await strategy.run(from_list(["a", "b"]), "p", max_cost=0.5)
    assert (result.winner, result.reevaluation, result.max_cost_reached) == ("a", None, False)


@pytest.mark.parametrize("max_cost", [0, -1, float("nan"), float("inf"), True, "1"])
@in_loop
async def test_what_is_no_amount_is_refused(max_cost: Any) -> None:
    """Before anything is asked."""
    with pytest.raises(ArgumentError, match="max_cost is"):
        await Strategy().run(lambda prompt: prompt, "p", max_cost=max_cost)
