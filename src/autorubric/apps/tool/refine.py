"""Refinement of content by alternating critique and revision until a score or a limit is reached."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from autorubric.apps.tool.evaluate import critique_evaluate
from autorubric.apps.tool.providers import Providers
from autorubric.apps.tool.response import CritiqueResponse
from autorubric.errors import ArgumentError, BudgetError
from autorubric.llm.budget import SpendingLimit, spending_within
from autorubric.support.concurrency import sync_twin

Revise: TypeAlias = Callable[[str, CritiqueResponse], str | Awaitable[str]]
"""A function that takes the content and its critique and returns the revised content."""


Stopped: TypeAlias = Literal[
    "passed", "max_rounds", "unchanged", "oscillating", "failed", "max_calls", "max_cost"
]
"""Reason for the end of a refinement."""

_OPTIONS: Final = ("timeout", "audit_path", "audit_content", "on_progress", "rubric_root")
"""Parameters of `critique_evaluate` other than the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefineRound:
    """One version of the content with its critique.

    Attributes:
        content: The evaluated content.
        response: The critique, with scores from 0 to 10.
    """

    content: str
    response: CritiqueResponse

    @property
    def score(self) -> float | None:
        """Return the overall score from 0 to 10; None if there is no score."""
        score = self.response.overall_score
        return None if score is None or isinstance(score, str) else float(score)

    @property
    def assessed(self) -> bool:
        """Whether every criterion has a score, so that the overall score covers all criteria."""
        return all(one.score is not None for one in self.response.criteria_scores)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refinement:
    """The result of `refine_until`.

    Attributes:
        rounds: Every version of the content with its critique, in order.
        stopped: Why the refinement ended: the score was reached (`passed`), all rounds were used up, the
            revision was `unchanged` or repeated an earlier version (`oscillating`), a critique or revision
            failed or had no score (`failed`), or `max_calls` or `max_cost` was reached.
        error: Error message of the failed critique or revision; None if nothing failed.
    """

    rounds: tuple[RefineRound, ...]
    stopped: Stopped
    error: str | None = None

    @property
    def passed(self) -> bool:
        """Whether the required score was reached."""
        return self.stopped == "passed"

    @property
    def best(self) -> RefineRound:
        """Return the first round with the highest score, preferring rounds that assess all criteria."""
        return max(
            self.rounds, key=lambda one: (False, -1.0) if one.score is None else (one.assessed, one.score)
        )

    @property
    def content(self) -> str:
        """Return the best version of the content."""
        return self.best.content

    @property
    def response(self) -> CritiqueResponse:
        """Return the critique of the best version."""
        return self.best.response


async def refine_until(  # noqa: PLR0913 - the public contract
    content: str,
    revise: Revise,
    criteria: str | Sequence[str],
    max_rounds: int = 3,
    min_score: float = 8,
    *,
    providers: Providers = None,
    max_calls: int | None = None,
    max_cost: float | None = None,
    **arguments: Any,
) -> Refinement:
    """Critique and revise content in turn until its score is high enough, and return the result.

    Args:
        content: The content to start with.
        revise: A sync or async function that takes the content and its critique and returns the revised
            content. It is not called after the last critique, so every version has a critique.
        criteria: The criteria of the request; see `CritiqueRequest`.
        max_rounds: Maximum number of critiques, at least 1.
        min_score: The overall score to reach, from 0 to 10; a score does not count unless all criteria could
            be assessed.
        providers: The available evaluators; see `critique_evaluate`.
        max_calls: Maximum number of requests to models, including those sent by `revise`; None for no limit.
        max_cost: Maximum cost of these requests in US dollars; None for no limit. If set, models with an
            unknown price are not called.
        **arguments: Other arguments of the request or of `critique_evaluate`, such as `context` or `timeout`.

    Raises:
        ArgumentError: If `max_rounds`, `min_score` or a limit is invalid. An error raised by `revise` is not
            raised again but reported in `error`.
    """
    if isinstance(max_rounds, bool) or not isinstance(max_rounds, int) or max_rounds < 1:
        raise ArgumentError(f"max_rounds must be a positive integer; got {max_rounds!r}")
    if isinstance(min_score, bool) or not isinstance(min_score, int | float) or not 0 <= min_score <= 10:
        raise ArgumentError(f"min_score must be a number from 0 to 10; got {min_score!r}")
    limit = SpendingLimit(max_calls=max_calls, max_cost=max_cost)
    options = {name: arguments.pop(name) for name in _OPTIONS if name in arguments}
    rounds: list[RefineRound] = []

    async def evaluate(content: str) -> RefineRound:
        request = {"content": content, "criteria": criteria, **arguments, "scoring_scale": "0-10"}
        response = await critique_evaluate(request, providers=providers, **options)
        return RefineRound(content=content, response=response)

    error: str | None = None
    stopped: Stopped
    with spending_within(limit) if limit.is_set else nullcontext():
        try:
            stopped = await _take_turns(
                content, evaluate, revise, rounds, max_rounds=max_rounds, min_score=min_score
            )
            if stopped == "failed":
                stopped = limit.reached or stopped
                error = rounds[-1].response.error if stopped == "failed" else None
        except _RevisionFailedError as failed:
            stopped, error = "failed", str(failed)
        except BudgetError:
            # Raised by `revise`; an error of another limit is not handled here.
            if limit.reached is None:
                raise
            stopped = limit.reached
    return Refinement(rounds=tuple(rounds), stopped=stopped, error=error)


async def _take_turns(
    content: str,
    evaluate: Callable[[str], Awaitable[RefineRound]],
    revise: Revise,
    rounds: list[RefineRound],
    *,
    max_rounds: int,
    min_score: float,
) -> Stopped:
    """Critique and revise in turns, add each round to `rounds`, and return the reason for stopping."""
    while True:
        made = await evaluate(content)
        rounds.append(made)
        if made.score is None:
            return "failed"
        if made.score >= min_score and made.assessed:
            return "passed"
        if len(rounds) == max_rounds:
            return "max_rounds"
        revised = await _revise(revise, made)
        if revised in (one.content for one in rounds):
            return "unchanged" if revised == content else "oscillating"
        content = revised


refine_until_sync = sync_twin(refine_until)
"""Call `refine_until` from synchronous code, even inside a running event loop."""


class _RevisionFailedError(Exception):
    pass


async def _revise(revise: Revise, made: RefineRound) -> str:
    try:
        given = revise(made.content, made.response)
        revised = await given if inspect.isawaitable(given) else given
    except BudgetError:
        raise
    # An error of the caller's function must not lose the previous rounds, which were paid for.
    except Exception as error:
        raise _RevisionFailedError(f"revise raised {type(error).__name__}: {error}") from error
    if not isinstance(revised, str):
        raise _RevisionFailedError(
            f"revise must return the revised content as a string; it returned {type(revised).__name__}"
        )
    return revised
