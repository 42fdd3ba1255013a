"""Code that runs in the workers of a Ray run: grades items and reports votes as they arrive.

Nothing here imports Ray: a worker talks to the keeper through the handle that it receives.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from autorubric._events import VoteCast
from autorubric.errors import BudgetError
from autorubric.eval import GradedItem, ItemWork, grade_item
from autorubric.graders import Grader
from autorubric.integrations._ray_kept import KeptBudget, KeptLimits, Line
from autorubric.llm import spending_within
from autorubric.rate_limit import set_authority

_GATHERED: Final = 0.02
"""Seconds for which a worker collects events before it reports them."""


@dataclass(slots=True, kw_only=True)
class Parcel:
    """Events in a worker since the last call.

    Attributes:
        votes: Votes that were cast.
        done: Items that are finished.
        unfinished: Ids of items that are unfinished because of the budget.
    """

    votes: list[VoteCast] = field(default_factory=list)
    done: list[GradedItem] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.votes or self.done or self.unfinished)


class Worker:
    """A worker that grades items in a separate process.

    Args:
        name: The worker's name.
        grader: The grader; opens its own connections here.
        keeper: The keeper's handle.
        budget: Whether the budget counts cost; None for no budget.
        keeps_exchanges: Whether to keep requests and replies.
    """

    def __init__(
        self, name: str, grader: Grader, keeper: Any, budget: bool | None, keeps_exchanges: bool
    ) -> None:
        self._grader = grader
        line = Line(name, keeper)
        self._budget = None if budget is None else KeptBudget(line, counts_cost=budget)
        self._keeps_exchanges = keeps_exchanges
        self._running: set[asyncio.Task[None]] = set()
        self._parcel = Parcel()
        self._happened = asyncio.Event()
        self._bug: BaseException | None = None
        set_authority(KeptLimits(line))

    async def begin(self) -> Parcel:
        """Return an empty parcel as soon as the process has started."""
        return Parcel()

    async def exchange(self, batch: Iterable[ItemWork]) -> Parcel:
        """Start these items, and return the next events as soon as there are any.

        Raises:
            Exception: If grading an item raised an error other than an `AutorubricError`.
        """
        for work in batch:
            task = asyncio.ensure_future(self._grade(work))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        await self._happened.wait()
        await asyncio.sleep(_GATHERED)
        if self._bug is not None and not self._parcel:
            raise self._bug
        parcel, self._parcel = self._parcel, Parcel()
        if self._bug is None:
            self._happened.clear()
        return parcel

    async def close(self) -> None:
        """Release the resources of the judges."""
        await self._grader.aclose()

    def vote_cast(self, event: VoteCast) -> None:
        """Record a vote."""
        self._parcel.votes.append(event if self._keeps_exchanges else event._replace(exchanged=None))
        self._happened.set()

    async def _grade(self, work: ItemWork) -> None:
        try:
            with spending_within(self._budget):
                done = await grade_item(work, self._grader, self)
            # Only now, since the parcel of before may be on its way.
            self._parcel.done.append(done)
        except BudgetError:
            self._parcel.unfinished.append(work.task.item_id)
        # Whatever it is, it belongs to the driver.
        except BaseException as error:
            self._bug = error
        self._happened.set()
