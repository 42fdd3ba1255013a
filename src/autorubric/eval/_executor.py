"""The grader the items of a run: this process, or another that an entry point names.

An executor takes items one by one and yields their results. It neither reads nor writes the run
folder: the run hands it items together with the votes that are stored, receives each vote that is cast, and
stores it. So every executor fills the same folder, and a run begun under one goes on under another.

To add one, write a class as `Executor` says, and name a function from `EvalConfig` to it under the entry
point group `autorubric.executors`; `EvalConfig(executor=name)` then finds it. What it is handed can be
pickled: `ItemWork` is frozen data, a grader is a spec whose connections are rebuilt where they are used, and
a `GradedItem` is a handful of numbers. A remote one sends batches of `ItemWork` with the grader to its
workers, where `grade_item` does the rest; a listener there collects each `VoteCast`, and they come back with
the item.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from itertools import chain
from typing import TYPE_CHECKING, Protocol, TypeVar

from autorubric.errors import ArgumentError, AutorubricError, BudgetError, MissingDependencyError
from autorubric.eval._config import EvalConfig
from autorubric.eval._items import GradedItem, outcome_of

if TYPE_CHECKING:
    from autorubric._events import Listener, VoteCast
    from autorubric.eval._admission import Admission
    from autorubric.graders import Grader
    from autorubric.reporting import GradingTask, Votes

ItemT = TypeVar("ItemT")
DoneT = TypeVar("DoneT")

GROUP = "autorubric.executors"
"""The entry point group in which executors are found."""

_DEFAULT_WINDOW = 64
_FIRST_ITEMS = 2
"""Items under way until one was judged, or for `_FIRST_SECONDS`."""
_FIRST_SECONDS = 10.0
_ASK_AGAIN = 0.1
"""Seconds after which it is asked again whether an item may begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemWork:
    """One item to grade.

    Attributes:
        position: Its position in the dataset, from 0.
        task: The task to grade, with the item's id.
        stored: Votes that already exist, by criterion name; they are not cast again.
    """

    position: int
    task: GradingTask
    stored: Votes = field(default_factory=dict)


class Executor(Protocol):
    """Grades the items of one run."""

    def graded(
        self, work: Iterable[ItemWork], grader: Grader, listener: Listener
    ) -> AsyncGenerator[GradedItem, None]:
        """Yield the result of each item as it finishes.

        An item is taken from `work` when there is a place for it, and no sooner: whatever has been taken and
        not yielded is in memory. `listener` hears, in this event loop, every vote that was cast for an item,
        its exchange with the model included, before the item is yielded; the sooner it hears, the less is
        lost if the process dies. Votes in `stored` are not told. An item that the budget left unfinished is
        not yielded; its votes are told all the same. One whose grading raised an `AutorubricError` is
        yielded with the error. Any other exception is a bug: it ends the run, after what finished beside it
        was yielded. So does closing the generator: what is under way is cancelled and awaited.

        A worker that dies is the executor's to replace. Its items are given to another one, without the votes
        already told: those go along as `stored`.

        Args:
            work: The items.
            grader: The grader; pickled, it is a spec that opens its own connections.
            listener: Called with each vote.
        """
        ...


def executor_of(config: EvalConfig) -> Executor:
    """Return the executor that a config names.

    Raises:
        ArgumentError: If none of that name is installed, or it cannot be loaded.
        MissingDependencyError: If it needs a package that is not installed.
    """
    if config.executor == "local":
        return LocalExecutor(config)
    found = {point.name: point for point in entry_points(group=GROUP)}
    if config.executor not in found:
        names = ", ".join(["local", *sorted(found)])
        raise ArgumentError(
            f"executor {config.executor!r} is not installed; installed are: {names}. Others are found "
            f"under the entry point group {GROUP!r}"
        )
    try:
        make: Callable[[EvalConfig], Executor] = found[config.executor].load()
    except MissingDependencyError:
        raise
    except (ImportError, AttributeError) as error:
        raise ArgumentError(f"executor {config.executor!r} cannot be loaded: {error}") from error
    return make(config)


class LocalExecutor:
    """Grades several items at a time in this event loop.

    Args:
        config: Options of the run; `max_concurrent_items` is how many.
    """

    def __init__(self, config: EvalConfig) -> None:
        self._limit = config.max_concurrent_items or _DEFAULT_WINDOW
        self._has_limits = config.max_calls is not None or config.max_cost is not None

    async def graded(
        self, work: Iterable[ItemWork], grader: Grader, listener: Listener
    ) -> AsyncGenerator[GradedItem, None]:
        """Yield the result of each item; see `Executor`."""

        admission = _admission(grader) if self._has_limits else None
        opens_at = time.monotonic() + _FIRST_SECONDS
        under_way = 0

        async def one(item: ItemWork) -> GradedItem | None:
            nonlocal opens_at, under_way
            try:
                done = await grade_item(item, grader, listener)
                if done.votes_cast and done.error is None:
                    opens_at = 0.0
                return done
            except BudgetError:
                return None
            finally:
                under_way -= 1
                if admission is not None:
                    admission.end(item)

        def may_begin(item: ItemWork) -> bool:
            nonlocal under_way
            # A wrong key or address is found out by the first few calls.
            if under_way >= _FIRST_ITEMS and time.monotonic() < opens_at:
                return False
            if admission is not None and not admission.may_begin(item):
                return False
            under_way += 1
            return True

        async with aclosing(run_bounded(work, one, limit=self._limit, may_begin=may_begin)) as finished:
            async for done in finished:
                if done is not None:
                    yield done


def _admission(grader: Grader) -> Admission | None:
    """Return what lets items begin under the budget of the run; None if another process keeps it."""
    # Late, since few runs have limits.
    from autorubric.eval._admission import Admission
    from autorubric.llm import SpendingLimit, budget_in_force

    budget = budget_in_force()
    return Admission(budget, grader) if isinstance(budget, SpendingLimit) else None


async def grade_item(work: ItemWork, grader: Grader, listener: Listener) -> GradedItem:
    """Grade one item and return the result; every executor calls this.

    Args:
        work: The item.
        grader: The grader.
        listener: Called with each vote as it is cast.

    Raises:
        BudgetError: If the run's budget is spent.
    """
    heard = _Counted(listener)
    clock = time.perf_counter()
    try:
        votes = await grader.judge(work.task, stored=work.stored, listener=heard)
        outcome = outcome_of(grader.aggregate(work.task, votes))
    except BudgetError:
        raise
    except AutorubricError as failure:
        return GradedItem.of_error(
            work.task,
            work.position,
            f"{type(failure).__name__}: {failure}",
            votes_cast=heard.votes,
            duration_seconds=time.perf_counter() - clock,
        )
    return GradedItem(
        item_id=work.task.item_id,
        position=work.position,
        votes_cast=heard.votes,
        duration_seconds=time.perf_counter() - clock,
        **outcome,
    )


class _Counted:
    """Passes votes on and counts them."""

    def __init__(self, listener: Listener) -> None:
        self.votes = 0
        self._listener = listener

    def vote_cast(self, event: VoteCast) -> None:
        """Handle a vote that has arrived."""
        self.votes += 1
        self._listener.vote_cast(event)


async def run_bounded(
    items: Iterable[ItemT],
    work: Callable[[ItemT], Awaitable[DoneT]],
    *,
    limit: int,
    may_begin: Callable[[ItemT], bool] | None = None,
) -> AsyncGenerator[DoneT, None]:
    """Yield what `work` returns for each item, as it finishes; at most `limit` are under way.

    Items are taken from the iterable as places become free. The first exception cancels what is under way
    and is raised once that has ended; so does closing the iterator. An item that may not begin yet is asked
    about again when another has finished, or after a while, and those behind it wait.
    """
    waiting = iter(items)
    held: list[ItemT] = []
    # Keys alone, in the order of their start: what ends in one moment is yielded in that order.
    running: dict[asyncio.Task[DoneT], None] = {}
    done: set[asyncio.Task[DoneT]] = set()

    def fill() -> None:
        for item in chain(held, waiting):
            if may_begin is not None and not may_begin(item):
                held[:] = [item]
                return
            held.clear()
            running[asyncio.ensure_future(_done(work, item))] = None
            if len(running) >= limit:
                return

    try:
        fill()
        while running:
            pause = _ASK_AGAIN if held else None
            done, _ = await asyncio.wait(running, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            ended = [task for task in running if task in done]
            for task in ended:
                del running[task]
            fill()
            # What finished beside a failure is yielded first: it is done, and its caller wants to keep it.
            for task in sorted(ended, key=_has_failed):
                yield task.result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, *done, return_exceptions=True)


def _has_failed(task: asyncio.Task[DoneT]) -> bool:
    return task.cancelled() or task.exception() is not None


async def _done(work: Callable[[ItemT], Awaitable[DoneT]], item: ItemT) -> DoneT:
    return await work(item)
