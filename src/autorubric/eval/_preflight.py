"""The preflight of a run: one test request to each model before all other requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from autorubric.errors import JudgeError
from autorubric.eval._executor import ItemWork

if TYPE_CHECKING:
    from autorubric._events import Listener, VoteCast
    from autorubric.graders import Grader
    from autorubric.types import JudgeVote


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCheck:
    """A judge's successful answer to its test request.

    Attributes:
        judge_id: Id of the judge.
        seconds: Latency in seconds; None if it was not measured.
        cost: Cost in US dollars; None if it is unknown.
    """

    judge_id: str
    seconds: float | None
    cost: float | None


@dataclass(frozen=True, slots=True)
class _Held:
    """A listener that collects votes."""

    events: list[VoteCast]

    def vote_cast(self, event: VoteCast) -> None:
        self.events.append(event)


Preflight = Callable[[JudgeCheck], None]
"""A function that is called for each judge that answered its test request."""


async def checked(
    work: Iterator[ItemWork], grader: Grader, listener: Listener, report: Preflight
) -> Iterator[ItemWork]:
    """Send each model one request about the first item, and return the items with these votes included.

    Args:
        work: The items to grade.
        grader: The grader.
        listener: Called with each vote.
        report: Called for each judge that answered.

    Raises:
        JudgeError: If a judge did not return a readable answer.
    """
    first = next(work, None)
    if first is None or not hasattr(grader, "first_votes"):
        return work if first is None else chain([first], work)
    held = _Held([])
    cast = await grader.first_votes(first.task, stored=first.stored, listener=held)
    by_judge: dict[str, list[JudgeVote]] = {}
    for vote in chain.from_iterable(cast.values()):
        by_judge.setdefault(vote.judge_id, []).append(vote)
    for judge_id, votes in by_judge.items():
        report(_check_of(judge_id, votes))
    # Stored only now, so that a failed panel leaves no votes that another panel would have to match.
    for event in held.events:
        listener.vote_cast(event)
    stored = {name: list(votes) for name, votes in first.stored.items()}
    for name, votes in cast.items():
        stored[name] = [*stored.get(name, ()), *votes]
    return chain([replace(first, stored=stored)], work)


def _check_of(judge_id: str, votes: Sequence[JudgeVote]) -> JudgeCheck:
    errors = [vote.error for vote in votes if vote.error]
    if errors and len(errors) == len(votes):
        # The error's message is more informative than its class.
        kind, _, said = errors[0].partition(": ")
        # Only an unreadable reply may be caused by this item rather than by the judge.
        hint = "; to run anyway, use --no-preflight" if kind == "ReplyError" else ""
        raise JudgeError(
            f"judge {judge_id!r} did not answer its test request, and no other request was sent: "
            f"{said or kind}{hint}"
        )
    costs = [vote.completion_cost for vote in votes if vote.completion_cost is not None]
    seconds = [vote.latency_seconds for vote in votes if vote.latency_seconds is not None]
    return JudgeCheck(
        judge_id=judge_id,
        seconds=max(seconds, default=None),
        cost=sum(costs) if len(costs) == len(votes) else None,
    )
