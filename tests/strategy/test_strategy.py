"""The strategy: candidates, verification, the cheapest, further rounds, errors."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from autorubric import Criterion, QualitativeCriteria, QuantitativeCriteria, Rubric, Strategy
from autorubric.errors import ArgumentError
from tests.doubles import in_loop
from tests.strategy.drafts import from_list, run
from tests.strategy.judges import SampleJudge, TextJudge


@in_loop
async def test_the_cheapest_that_passes_wins() -> None:
    """Cost decides among those verified; what did not pass is not costed."""
    result = await run(["aaa", "b", "xx"], verify=lambda draft: "b" not in draft, cost=len)
    assert (result.winner, result.cost, result.iterations) == ("xx", 2.0, 1)
    assert [one.verified for one in result.candidates] == [True, False, True]
    assert [one.cost for one in result.candidates] == [3.0, None, 2.0]
    assert (result.winner_number, result.errors, result.reevaluated_cost) == (2, (), None)


@in_loop
async def test_without_verify_all_pass_and_without_cost_the_first_wins() -> None:
    """Either step may be left out."""
    assert (await run(["long", "s"], cost=len)).winner == "s"
    result = await run(["no", "yes", "yes too"], verify=lambda draft: "yes" in draft)
    assert (result.winner, result.cost) == ("yes", None)
    assert (await run(["first", "second"])).winner == "first"


@in_loop
async def test_candidates_are_made_and_judged_at_once() -> None:
    """All candidates of a round are in flight together, in every step; blocking functions too."""
    size = 4
    made, checked, costed = asyncio.Barrier(size), asyncio.Barrier(size), threading.Barrier(size, timeout=120)

    async def generate(prompt: str) -> str:
        await made.wait()
        return prompt

    async def verify(candidate: str) -> bool:
        await checked.wait()
        return True

    def cost(candidate: str) -> float:
        return float(costed.wait())

    result = await Strategy(verify, cost, num_candidates=size).run(generate, "p")
    assert sorted(one.cost for one in result.candidates if one.cost is not None) == [0.0, 1.0, 2.0, 3.0]
    assert result.cost == 0.0


@in_loop
async def test_failed_rounds_are_tried_again_and_all_is_kept() -> None:
    """Rounds follow until one has a winner; the history has every candidate with its round."""
    drafts = ["bad", "bad", "bad", "good", "never", "never"]
    result = await run(drafts, verify=lambda d: d == "good", num_candidates=2, max_iterations=3)
    assert (result.winner, result.iterations) == ("good", 2)
    assert [one.content for one in result.candidates] == ["bad", "bad", "bad", "good"]
    assert [one.iteration for one in result.candidates] == [1, 1, 2, 2]
    assert [one.number for one in result.candidates] == [0, 1, 2, 3]


@in_loop
async def test_no_winner_after_the_last_round() -> None:
    """A strategy that finds none says so and keeps what it tried."""
    result = await run(["bad"] * 6, verify=lambda _: False, num_candidates=2, max_iterations=3, reevaluate=2)
    assert (result.winner, result.winner_number, result.cost, result.iterations) == (None, None, None, 3)
    assert len(result.candidates) == 6
    assert result.reevaluation is None
    assert result.fallback_used is False


@in_loop
async def test_one_that_raises_does_not_lose_the_others() -> None:
    """Errors of a generator, a verification or a cost stand with their candidate."""

    def verify(draft: str) -> bool:
        if draft == "v":
            raise LookupError("no such test")
        return True

    def cost(draft: str) -> float:
        return {"c": float("nan"), "ok": 5.0}[draft]

    result = await run([ValueError("no idea"), "v", "c", "x", "ok", None], verify=verify, cost=cost)
    assert (result.winner, result.cost) == ("ok", 5.0)
    assert [str(error) for error in result.errors] == [
        "generate: ValueError: no idea",
        "verify: LookupError: no such test",
        "cost: AutorubricError: cost must return a finite number; it returned nan",
        "cost: KeyError: 'x'",
        "generate: ReplyError: generate returned None; it must return a candidate",
    ]
    assert [one.verified for one in result.candidates] == [None, None, True, True, True, None]


@in_loop
async def test_when_all_raise_there_is_no_winner() -> None:
    """Nothing is made up: no winner, and every error."""
    drafts = [StopIteration("end"), RuntimeError("broken")]
    result = await run([*drafts, *drafts], num_candidates=2, max_iterations=2, cost=len)
    assert (result.winner, len(result.errors), result.iterations) == (None, 4, 2)
    lost = await run(["a"], cost=lambda _: None)
    assert lost.winner is None


RECORD = asyncio.run(QualitativeCriteria("Good?", SampleJudge(["no"])).evaluate("text"))


@pytest.mark.parametrize(
    "given", [(False, "why"), "no", [], {}, None, 0.3, float("nan"), 2, RECORD, object()]
)
@in_loop
async def test_what_is_no_truth_value_is_an_error(given: Any) -> None:
    """A text, a pair, a score, a record or nothing counts neither as yes nor as no."""
    result = await run(["a"], verify=lambda _: given)
    assert result.winner is None
    assert "verify must return True or False" in result.errors[0].error


@pytest.mark.parametrize("make", [bool, int, np.bool_, np.int64])
@in_loop
async def test_truth_values_of_other_makes_count(make: Any) -> None:
    """1 and 0, and what numpy has for True and False."""
    result = await run([0, 1], verify=lambda draft: make(draft))
    assert [one.verified for one in result.candidates] == [False, True]
    assert result.errors == ()


@in_loop
async def test_functions_may_be_of_many_kinds() -> None:
    """One or two arguments, sync or async, bound methods, functions that give what is awaited."""
    judge = SampleJudge(["yes"])
    criteria = QualitativeCriteria("Good?", judge)
    seen: list[Any] = []

    def both(candidate: str, context: Any) -> bool:
        seen.append(context)
        return True

    def with_default(candidate: str, limit: int = 3) -> bool:
        seen.append(limit)
        return True

    async def alone(candidate: str) -> bool:
        return True

    for verify in (both, with_default, alone, criteria.verify, lambda c: criteria.verify(c, "own")):
        result = await Strategy(verify, num_candidates=1).run(lambda prompt: prompt, "p", context="told")
        assert result.winner == "p"
    assert seen == ["told", 3]
    assert [request.query for request in judge.asked] == ["told", "own"]


@in_loop
async def test_criteria_are_called_positionally_so_that_an_override_counts() -> None:
    """A subclass may call its parameters what it likes, and what it returns is what counts."""
    calls: list[Any] = []

    class Strict(QualitativeCriteria):
        async def verify(self, code: Any, agent: Any) -> bool:  # type: ignore[override]
            calls.append((code, agent))
            return await super().verify(code, agent) and code != "a"

    class Dear(QuantitativeCriteria):
        async def compute(self, code: Any, agent: Any) -> float:  # type: ignore[override]
            return -(await super().compute(code, agent))

    strategy = Strategy(
        Strict("Good?", SampleJudge(["yes"])), Dear("Long?", TextJudge(len)), max_iterations=1
    )
    result = await strategy.run(from_list(["a", "bb", "cccc"]), "p", context="agent")
    assert (result.winner, result.cost) == ("cccc", -4.0)
    assert sorted(calls) == [("a", "agent"), ("bb", "agent"), ("cccc", "agent")]
    assert [str(hint) for hint in result.candidates[0].hints] == ["Strict"]


@in_loop
async def test_functions_that_do_not_say_what_they_take_get_the_candidate() -> None:
    """Some that are written in C have no signature."""
    assert (await run([[3, 1], [2, 2]], cost=max)).winner == [2, 2]
    assert "cost must return a finite number" in (await run([["a"]], cost=max)).errors[0].error
    assert "cost must return a finite number" in (await run(["a"], cost=lambda _: object())).errors[0].error


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"max_iterations": 0}, "max_iterations must be an integer of at least 1; got 0"),
        ({"num_candidates": 1.5}, "num_candidates must be an integer of at least 1; got 1.5"),
        ({"hints": "prose"}, "hints must be one of counts, reasons, none; got 'prose'"),
        ({"verify": "yes"}, "QualitativeCriteria"),
        (
            {"verify": QuantitativeCriteria("Long?", SampleJudge([1]))},
            r"does not have a method verify\(candidate, context\)",
        ),
        (
            {"cost": QualitativeCriteria("Good?", SampleJudge([1]))},
            r"does not have a method compute\(candidate, context\)",
        ),
        ({"verify": Rubric([Criterion(name="a", requirement="A.")])}, r"RubricThreshold\(rubric, grader"),
        ({"cost": lambda: 1}, r"called with \(candidate\) or \(candidate, context\)"),
        ({"cost": lambda a, b, c: 1}, "takes"),
        ({"cost": lambda a, *, key: 1}, "takes"),
        ({"cost": QuantitativeCriteria}, "does not have a method compute"),
    ],
)
def test_arguments_that_cannot_work_are_refused_when_made(options: dict[str, Any], told: str) -> None:
    """Each is an ArgumentError that says what will do."""
    with pytest.raises(ArgumentError, match=told):
        Strategy(**options)


@pytest.mark.parametrize("generate", [None, 3, lambda: 1])
@in_loop
async def test_what_generates_nothing_is_refused(generate: Any) -> None:
    """Before anything is asked."""
    with pytest.raises(ArgumentError, match="generate"):
        await Strategy().run(generate, "p")
    with pytest.raises(ArgumentError, match="prompt must be a string"):
        await Strategy().run("gpt-6-luna", {"task": 1})
    with pytest.raises(ArgumentError, match="reevaluate must be an integer of at least 0; got -1"):
        await Strategy().run(lambda p: p, "p", reevaluate=-1)


@in_loop
async def test_a_run_that_is_cancelled_leaves_nothing_running() -> None:
    """Cancelling ends every candidate in flight."""
    running = 0
    reached = asyncio.Event()

    async def generate(prompt: str) -> str:
        nonlocal running
        running += 1
        reached.set()
        try:
            await asyncio.Event().wait()
        finally:
            running -= 1
        return prompt

    task = asyncio.create_task(Strategy().run(generate, "p"))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert running == 0


Draft = tuple[bool, float]
DRAFTS = st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 1.0, 2.5, 7.0])), min_size=1, max_size=6)


@given(drafts=DRAFTS)
def test_the_winner_costs_least_among_those_verified(drafts: list[Draft]) -> None:
    """No verified candidate costs less, none of the same cost comes earlier, and none wins unverified."""
    numbered = list(enumerate(drafts))
    result = asyncio.run(run(numbered, verify=lambda one: one[1][0], cost=lambda one: one[1][1]))
    passed = [one for one in numbered if one[1][0]]
    expected = min(passed, key=lambda one: (one[1][1], one[0]), default=None)
    assert result.winner == expected
    assert result.cost == (None if expected is None else expected[1][1])
    assert [one.content for one in result.candidates] == numbered


@given(drafts=DRAFTS, size=st.integers(1, 3))
def test_rounds_end_with_the_first_that_has_a_winner(drafts: list[Draft], size: int) -> None:
    """As many rounds as needed, never more, and every candidate of each in order."""
    rounds = len(drafts) // size
    if not rounds:
        return
    result = asyncio.run(
        run(drafts, verify=lambda d: d[0], cost=lambda d: d[1], num_candidates=size, max_iterations=rounds)
    )
    verified = [any(passes for passes, _ in drafts[n * size : (n + 1) * size]) for n in range(rounds)]
    assert result.iterations == (verified.index(True) + 1 if any(verified) else rounds)
    assert [one.content for one in result.candidates] == drafts[: result.iterations * size]
