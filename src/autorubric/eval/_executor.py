"""Executors: where the items of a run are graded, in this process or in one that an entry point provides.

An executor takes items one by one and yields their results. It neither reads nor writes the run
folder: the run passes it items with their stored votes, receives each vote that is cast, and
stores it. Every executor therefore fills the same folder, and a run begun with one can resume with another.

To add an executor, write a class that implements `Executor`, and register a function that creates it from an
`EvalConfig` in the entry point group `autorubric.executors`; `EvalConfig(executor=name)` then finds it. All
arguments can be pickled: `ItemWork` is frozen data, a grader is a specification that opens connections where
it is used, and a `GradedItem` is a few numbers. A remote executor sends batches of `ItemWork` with the grader
to its workers, which call `grade_item` with a listener that collects each `VoteCast`, and return these with
the results.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Protocol

from autorubric._sync import run_bounded
from autorubric.errors import ArgumentError, AutorubricError, BudgetError, MissingDependencyError
from autorubric.eval._config import EvalConfig
from autorubric.eval._items import GradedItem, outcome_of

if TYPE_CHECKING:
    from autorubric._events import Listener, VoteCast
    from autorubric.graders import Grader
    from autorubric.llm import SpendingLimit
    from autorubric.reporting import GradingTask, Votes


GROUP = "autorubric.executors"
"""The entry point group in which executors are found."""

_DEFAULT_WINDOW = 64
_FIRST_ITEMS = 2
"""Maximum number of concurrent items until one was judged or `_FIRST_SECONDS` have passed."""
_FIRST_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemWork:
    """One item to grade.

    Attributes:
        position: Position of the item in the dataset, from 0.
        task: The task to grade, with the item's id.
        stored: Existing votes by criterion name, which are not requested again.
    """

    position: int
    task: GradingTask
    stored: Votes = field(default_factory=dict)


class Executor(Protocol):
    """Interface for grading the items of one run."""

    def graded(
        self, work: Iterable[ItemWork], grader: Grader, listener: Listener
    ) -> AsyncGenerator[GradedItem, None]:
        """Yield the result of each item as it finishes.

        Take an item from `work` only when it can be graded, since taken items stay in memory. Before yielding
        an item, call `listener` in this event loop for each of its new votes, including the exchange with the
        model; early calls limit the loss if the process dies. Do not report votes that are in `stored`. If
        the budget left an item unfinished, report its votes but do not yield it. If grading raised an
        `AutorubricError`, yield the item with that error. Any other exception is a bug: yield the other
        finished items, then raise it. When the generator is closed, cancel and await the items in progress.

        An executor must replace workers that die, and pass their items to another worker with the votes
        reported so far added to `stored`.

        Args:
            work: The items to grade.
            grader: The grader; when unpickled, it opens its own connections.
            listener: Called with each vote.
        """
        ...


def executor_of(config: EvalConfig) -> Executor:
    """Return the executor that a config names.

    Raises:
        ArgumentError: If the executor is not installed or cannot be loaded.
        MissingDependencyError: If the executor needs a package that is not installed.
    """
    if config.executor == "local":
        return LocalExecutor(config)
    found = {point.name: point for point in entry_points(group=GROUP)}
    if config.executor not in found:
        names = ", ".join(["local", *sorted(found)])
        raise ArgumentError(
            f"unknown executor {config.executor!r}; available: {names}. Other executors must be registered "
            f"in the entry point group {GROUP!r}"
        )
    try:
        make: Callable[[EvalConfig], Executor] = found[config.executor].load()
    except MissingDependencyError:
        raise
    except (ImportError, AttributeError) as error:
        raise ArgumentError(f"executor {config.executor!r} cannot be loaded: {error}") from error
    return make(config)


class LocalExecutor:
    """Grades several items concurrently in this event loop.

    Args:
        config: Options of the run; `max_concurrent_items` limits the concurrency.
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
            # The first few calls reveal a wrong key or address.
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


@dataclass(slots=True)
class _Admission:
    """Admits items in order, as long as the remaining budget suffices to finish all items in progress.

    An item is assumed to need its planned calls, at the mean cost of the calls so far; if cost is limited,
    the first item is therefore graded alone. An item that exceeds the remaining budget begins only when no
    other item is in progress.

    Attributes:
        budget: The budget of the run.
        grader: The grader.
    """

    budget: SpendingLimit
    grader: Grader
    _needs: dict[int, int] = field(default_factory=dict)
    _has_finished: bool = False

    def may_begin(self, work: ItemWork) -> bool:
        """Return whether an item may begin now; if so, it is recorded as in progress."""
        need = self._planned_calls(work)
        if self._needs:
            if self.budget.counts_cost and not self._has_finished:
                return False
            calls = need + sum(self._needs.values())
            if not self.budget.has_room(calls, calls * self.budget.mean_cost):
                return False
        self._needs[work.position] = need
        return True

    def end(self, work: ItemWork) -> None:
        """Release the calls reserved for an item that has ended."""
        del self._needs[work.position]
        self._has_finished = True

    def _planned_calls(self, work: ItemWork) -> int:
        # Imported late, since few runs have limits.
        from autorubric.graders import CriterionGrader

        if not isinstance(self.grader, CriterionGrader):
            return len(work.task.rubric)
        try:
            batches = self.grader.requests(work.task, stored=work.stored)
        except AutorubricError:
            # Grading the item fails with the same error and sends no request.
            return 0
        return sum(not batch[0].seat.is_offline for batch in batches)


def _admission(grader: Grader) -> _Admission | None:
    """Return the admission control for the run's budget; None if another process enforces the budget."""
    # Imported late, since few runs have limits.
    from autorubric.llm import SpendingLimit, budget_in_force

    budget = budget_in_force()
    return _Admission(budget, grader) if isinstance(budget, SpendingLimit) else None


async def grade_item(work: ItemWork, grader: Grader, listener: Listener) -> GradedItem:
    """Grade one item and return the result; every executor calls this function.

    Args:
        work: The item.
        grader: The grader.
        listener: Called with each vote as it is cast.

    Raises:
        BudgetError: If the run's budget is exhausted.
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
    """Counts votes and forwards them to another listener."""

    def __init__(self, listener: Listener) -> None:
        self.votes = 0
        self._listener = listener

    def vote_cast(self, event: VoteCast) -> None:
        """Count and forward a vote."""
        self.votes += 1
        self._listener.vote_cast(event)
