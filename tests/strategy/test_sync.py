"""Criteria and strategies from synchronous code."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from autorubric import QualitativeCriteria, QuantitativeCriteria, Strategy
from autorubric.errors import ArgumentError
from tests.strategy.judges import SampleJudge


class Strict(QualitativeCriteria):
    """Overrides what verifies, under names of its own."""

    async def verify(self, code: Any, agent: Any) -> bool:  # type: ignore[override]
        return await super().verify(code, agent) and agent == "kind"


class Dear(QuantitativeCriteria):
    """Overrides what a candidate costs."""

    async def compute(self, code: Any, agent: Any = None) -> float:
        return 100 + await super().compute(code, agent)


def by_hand() -> tuple[bool, bool, float, tuple[float | None, ...], Any]:
    """What each of the twins gives."""
    strict, dear = Strict("Good?", SampleJudge(["yes"])), Dear("Long?", SampleJudge([3, 5]), num_samples=2)
    result = Strategy(strict, dear).run_sync(lambda prompt: prompt, "p", context="kind", reevaluate=2)
    return (
        strict.verify_sync("text", "kind"),
        strict.verify_sync("text", "rude"),
        dear.compute_sync("text"),
        dear.evaluate_sync("text").samples,
        (result.winner, result.cost, result.reevaluated_cost),
    )


WANTED = (True, False, 104.0, (3.0, 5.0), ("p", 104.0, 104.0))


def test_the_twins_give_what_is_awaited_and_overrides_count() -> None:
    """verify_sync and compute_sync ask the subclass's own verify and compute."""
    assert by_hand() == WANTED


def test_the_twins_work_inside_a_running_loop() -> None:
    """As in a notebook."""

    async def cell() -> Any:
        return by_hand()

    assert asyncio.run(cell()) == WANTED


def test_errors_come_through() -> None:
    """What is raised is what the awaited one raises."""
    with pytest.raises(ArgumentError, match="generate"):
        Strategy().run_sync(None, "p")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="got None"):
        Strict("Good?", SampleJudge(["yes"])).verify_sync(None)


def test_the_twins_take_the_same_arguments() -> None:
    """No argument of the one is missing in the other."""
    for kind, name in (
        (Strategy, "run"),
        (QualitativeCriteria, "verify"),
        (QualitativeCriteria, "evaluate"),
        (QuantitativeCriteria, "compute"),
    ):
        twins = (getattr(kind, name), getattr(kind, f"{name}_sync"))
        awaited, blocking = (inspect.signature(one).parameters for one in twins)
        assert awaited == blocking


def test_a_sync_function_may_ask_criteria() -> None:
    """Verifying in a thread, it is recorded, hinted at and judged again on fresh votes as any other."""
    judge = SampleJudge(["yes", "no", "no"])
    criteria = QualitativeCriteria("Good.", judge, 2, 1, 2)
    strategy = Strategy(lambda code: criteria.verify_sync(code), max_iterations=1, num_candidates=1)
    (candidate,) = strategy.run_sync(lambda prompt: prompt, "p").candidates
    assert [str(hint) for hint in candidate.hints] == ["Good. (1 of 2 samples passed, 2 needed)"]
    eager = QualitativeCriteria("Good.", judge, 2)
    strategy = Strategy(lambda code: eager.verify_sync(code), num_candidates=1)
    result = strategy.run_sync(lambda prompt: prompt, "p", reevaluate=1)
    assert result.reevaluation is not None
    assert (result.winner, result.reevaluation.verified) == (None, False)
    assert judge.asked[-1].sample == 2
