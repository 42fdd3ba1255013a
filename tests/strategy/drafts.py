"""A strategy on candidates that are given as a list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from autorubric import Strategy
from autorubric.apps.strategy import Attempt, StrategyResult


def from_list(drafts: Sequence[Any]) -> Callable[[Any, Attempt], Any]:
    """A generator of these, by the number of the attempt; an exception is raised."""

    async def generate(prompt: Any, attempt: Attempt) -> Any:
        draft = drafts[attempt]
        if isinstance(draft, Exception):
            raise draft
        return draft

    return generate


async def run(drafts: Sequence[Any], *, reevaluate: int = 0, **options: Any) -> StrategyResult:
    """The result of a strategy on a list of drafts, one round of all of them unless said otherwise."""
    given = {"num_candidates": len(drafts), "max_iterations": 1, **options}
    return await Strategy(**given).run(from_list(drafts), "Write.", reevaluate=reevaluate)
