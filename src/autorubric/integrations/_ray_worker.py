"""The workers of a Ray run, which grade items and report votes as they are cast.

This module does not import Ray: a worker calls the keeper through the handle that it receives.
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
"""Number of seconds for which a worker collects events before it reports them."""


@dataclass(slots=True, kw_only=True)
class Parcel:
    """The events in a worker since its last report.

    Attributes:
        votes: Votes that were cast.
        done: Results of the items that were finished.
        unfinished: Ids of the items that could not be finished because the budget was used up.
    """

    votes: list[VoteCast] = field(default_factory=list)
    done: list[GradedItem] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.votes or self.done or self.unfinished)


class Worker:
    """A worker that grades items in a separate process.

    Args:
        name: Name of the worker.
        grader: The grader, which opens its own connections in the worker process.
        keeper: Actor handle of the keeper.
        budget: Whether the budget limits cost; None if there is no budget.
        keeps_exchanges: Whether to keep prompts and replies in the reported votes.
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
        """Return an empty parcel once the process has started."""
        return Parcel()

    async def exchange(self, batch: Iterable[ItemWork]) -> Parcel:
        """Start grading a batch of items, then wait for events and return them.

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
        """Release the resources of the grader's judges."""
        await self._grader.aclose()

    def vote_cast(self, event: VoteCast) -> None:
        """Add a vote to the next parcel."""
        self._parcel.votes.append(event if self._keeps_exchanges else event._replace(exchanged=None))
        self._happened.set()

    async def _grade(self, work: ItemWork) -> None:
        try:
            with spending_within(self._budget):
                done = await grade_item(work, self._grader, self)
            # The parcel is looked up now, because it may have been replaced during grading.
            self._parcel.done.append(done)
        except BudgetError:
            self._parcel.unfinished.append(work.task.item_id)
        # Any other error is passed on to the calling process.
        except BaseException as error:
            self._bug = error
        self._happened.set()
