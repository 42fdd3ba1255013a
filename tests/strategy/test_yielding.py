"""Functions that yield candidates."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from autorubric import Strategy
from autorubric.errors import ArgumentError
from tests.doubles import in_loop, until


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

    async def async_drafts(prompt: str) -> AsyncIterator[str]:
        for draft in one_by_one(prompt):
            yield draft

    for generate in (one_by_one, async_drafts):
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
    assert "short yielded only 1 of the requested candidates" in result.candidates[2].errors[0].error
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


DRAFTS = ("aaa", "b", "xx", "y", "never")


def one_by_one(prompt: str = "p") -> Iterator[str]:
    """The drafts."""
    yield from DRAFTS


async def async_drafts(prompt: str = "p") -> AsyncIterator[str]:
    """The drafts, in the loop."""
    for draft in DRAFTS:
        yield draft


class Called:
    """Objects that are called."""

    class Yielding:
        def __call__(self, prompt: str) -> Iterator[str]:
            yield from DRAFTS

    class YieldingInTurn:
        async def __call__(self, prompt: str) -> AsyncIterator[str]:
            for draft in DRAFTS:
                yield draft

    class Returning:
        def __call__(self, prompt: str) -> Any:
            return async_drafts(prompt)


async def awaited(prompt: str) -> Any:
    """Returns a generator once it is awaited."""
    return one_by_one(prompt)


def passes_it_on(prompt: str) -> Any:
    """A plain function of two kinds of generator."""
    return one_by_one(prompt)


@pytest.mark.parametrize(
    "generate",
    [
        passes_it_on,
        lambda prompt: async_drafts(prompt),
        lambda prompt, attempt: one_by_one(prompt),
        lambda prompt: iter(DRAFTS),
        awaited,
        Called.Yielding(),
        Called.YieldingInTurn(),
        Called.Returning(),
        functools.partial(one_by_one),
        functools.partial(passes_it_on),
    ],
)
@in_loop
async def test_whatever_returns_a_generator_gives_its_candidates(generate: Any) -> None:
    """Functions, lambdas and objects that are called; each round begins at the first again."""
    result = await Strategy(cost=len, num_candidates=4).run(generate, "p")
    assert [one.content for one in result.candidates] == ["aaa", "b", "xx", "y"]
    assert (result.winner, result.cost, result.errors) == ("b", 1.0, ())
    again = await Strategy(lambda _: False, num_candidates=2, max_iterations=2).run(generate, "p")
    assert [one.content for one in again.candidates] == ["aaa", "b", "aaa", "b"]


@pytest.mark.parametrize("begin", [one_by_one, async_drafts, lambda: iter(DRAFTS), lambda: map(str, DRAFTS)])
@in_loop
async def test_a_generator_gives_the_candidates_of_all_rounds(begin: Any) -> None:
    """It cannot be begun anew, so that another round goes on where the last ended; it stays open."""
    drafts = begin()
    strategy = Strategy(lambda draft: draft == "xx", num_candidates=2)
    result = await strategy.run(drafts, "p")
    assert [one.content for one in result.candidates] == ["aaa", "b", "xx", "y"]
    assert (result.winner, result.iterations) == ("xx", 2)
    rest = await Strategy(num_candidates=3, max_iterations=1).run(drafts, "p")
    assert rest.winner == "never"
    assert "yielded only 1 of the requested candidates" in rest.candidates[1].errors[0].error


@in_loop
async def test_generators_that_are_not_taken_never_begin() -> None:
    """A function that returns one is called for each candidate; one of them is begun, and ended."""
    begun: list[int] = []
    ended: list[int] = []

    async def numbered(number: int) -> AsyncIterator[str]:
        begun.append(number)
        try:
            yield "a"
            yield "b"
            yield "c"
        finally:
            ended.append(number)

    async def generate(prompt: str, attempt: int) -> Any:
        return numbered(attempt)

    result = await Strategy(num_candidates=2).run(generate, "p")
    assert [one.content for one in result.candidates] == ["a", "b"]
    assert (begun, ended) == ([0], [0])


@in_loop
async def test_a_cancelled_run_leaves_a_busy_generator_to_itself() -> None:
    """Whoever cancels gets the cancellation, though a step of the generator still blocks its thread."""
    busy, free = threading.Event(), threading.Event()

    def generate(prompt: str) -> Iterator[str]:
        busy.set()
        free.wait()
        yield "late"

    task = asyncio.create_task(Strategy().run(generate, "p"))
    try:
        await until(busy.is_set)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    finally:
        free.set()
