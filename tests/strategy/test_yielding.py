"""Functions that yield candidates."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from autorubric import Strategy
from autorubric.errors import ArgumentError
from tests.doubles import in_loop


@in_loop
async def test_candidates_are_taken_in_the_order_they_are_yielded() -> None:
    """A sync and an async generator give the same run; what is not asked for is not made."""
    made: list[str] = []
    ended: list[str] = []

    def one_by_one(prompt: str) -> Iterator[str]:
        try:
            for draft in ("aaa", "b", "xx", "never"):
                made.append(prompt)
                yield draft
        finally:
            ended.append(prompt)

    async def in_turn(prompt: str) -> AsyncIterator[str]:
        for draft in one_by_one(prompt):
            yield draft

    for generate in (one_by_one, in_turn):
        result = await Strategy(verify=lambda draft: draft != "b", cost=len).run(generate, "p")
        assert [one.content for one in result.candidates] == ["aaa", "b", "xx"]
        assert (result.winner, result.cost) == ("xx", 2.0)
        assert [one.number for one in result.candidates] == [0, 1, 2]
    assert made == ["p"] * 6
    assert ended[0] == "p"


@in_loop
async def test_each_round_begins_the_generator_anew() -> None:
    """With the prompt and the attempt of its own round."""
    begun: list[tuple[int, int, bool]] = []

    async def generate(prompt: str, attempt: Any) -> AsyncIterator[str]:
        begun.append((int(attempt), attempt.iteration, prompt != "p"))
        for place in range(5):
            yield f"{attempt.iteration}.{place}"

    strategy = Strategy(verify=lambda draft: draft == "2.1", max_iterations=3, num_candidates=2)
    result = await strategy.run(generate, "p")
    assert begun == [(0, 1, False), (2, 2, True)]
    assert (result.winner, result.iterations, result.winner_number) == ("2.1", 2, 3)


@in_loop
async def test_a_generator_that_ends_early_or_breaks_loses_no_other_candidate() -> None:
    """Those that are missing say why."""

    async def short(prompt: str) -> AsyncIterator[str]:
        yield "one"

    def broken(prompt: str) -> Iterator[Any]:
        yield "one"
        raise OSError("no more ink")

    def nothing(prompt: str) -> Iterator[Any]:
        yield None
        yield "two"

    result = await Strategy(num_candidates=3).run(short, "p")
    assert result.winner == "one"
    assert [len(one.errors) for one in result.candidates] == [0, 1, 1]
    assert "short yielded 1 candidates" in result.candidates[2].errors[0].error
    result = await Strategy(num_candidates=2).run(broken, "p")
    assert (result.winner, result.candidates[1].errors[0].error) == ("one", "OSError: no more ink")
    result = await Strategy(num_candidates=2).run(nothing, "p")
    assert (result.winner, result.winner_number) == ("two", 1)


@in_loop
async def test_a_generator_that_takes_no_prompt_is_refused() -> None:
    """Before it is begun."""

    def generate() -> Iterator[str]:
        yield "x"

    with pytest.raises(ArgumentError, match="called with"):
        await Strategy().run(generate, "p")
