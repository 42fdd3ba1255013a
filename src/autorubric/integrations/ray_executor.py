"""The executor for Ray clusters, which sends items to actors that report votes as they are cast.

This is the only module that imports `ray`. `executor="ray"` finds the executor through the entry point group
`autorubric.executors`. Each actor opens its own connections from the grader's specs, and one further actor
enforces the limits and the budget for all of them. As in a local run, the calling process writes the votes
to the run folder.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, Final

from autorubric.errors import ArgumentError, MissingDependencyError, RunError
from autorubric.grading.base import Grader
from autorubric.integrations.ray_worker import Keeper, Worker, WorkerReport
from autorubric.llm.budget import SpendingLimit, budget_in_force
from autorubric.runs.config import EvalConfig
from autorubric.runs.executor import ItemWork
from autorubric.runs.items import GradedItem
from autorubric.scoring.votes import Listener, VoteCast
from autorubric.support.concurrency import run_bounded

try:
    import ray
    from ray.exceptions import RayActorError, RayTaskError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
except ImportError as error:
    raise MissingDependencyError(
        f"executor='ray' requires the package 'ray' ({error}); run: pip install ray"
    ) from error

_AHEAD: Final = 64
"""Maximum number of concurrent items per worker, if the run does not specify a maximum."""
_ENOUGH: Final = 8
"""A further worker is started if more than this number of items wait for each worker that is starting."""
_MANY_WAIT: Final = 1_000_000
"""Maximum number of pending calls to the keeper."""
_SUSPECT: Final = 2
"""After this many worker deaths, an item is graded alone to find out whether the item causes them."""
_DEADLY: Final = 3
"""After this many worker deaths, an item is abandoned."""
_SOON_SECONDS: Final = 10.0
"""Seconds within which a worker is expected to start."""
_STILLBORN: Final = 5
"""After this many consecutive workers that died before they started, the run ends."""
_FAREWELL_SECONDS: Final = 5.0
_KEEPER_DIED: Final = (
    "executor='ray': the process that enforces limits and budget died; run again with the same name to resume"
)


class RayExecutor:
    """An executor that uses the Ray cluster to which this process is connected, or starts a local one."""

    def __init__(self, config: EvalConfig) -> None:
        self._config = config

    async def grade_items(
        self, work: Iterable[ItemWork], grader: Grader, listener: Listener
    ) -> AsyncGenerator[GradedItem, None]:
        """Yield the result of grading each item, as specified by `Executor`."""
        items = iter(work)
        first = next(items, None)
        if first is None:
            # Without items, no cluster is started.
            return
        async with _cluster():
            crew = _Crew(self._config, grader, listener)
            try:
                finished = run_bounded(chain([first], items), crew.grade, limit=crew.limit)
                async with aclosing(finished):
                    async for done in finished:
                        if done is not None:
                            yield done
                await crew.close()
            finally:
                crew.kill()


@asynccontextmanager
async def _cluster() -> AsyncIterator[None]:
    """Use the running Ray instance, or start one and stop it at the end."""
    if ray.is_initialized():
        yield
        return
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # In a thread, because starting takes seconds and Ray does not replace signal handlers there.
    begin = partial(ray.init, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    begun = asyncio.ensure_future(asyncio.to_thread(begin))
    try:
        await asyncio.shield(begun)
        yield
    finally:
        await asyncio.wait([begun])
        ray.shutdown()


@dataclass(slots=True)
class _Piece:
    """An item that a worker is grading."""

    votes: list[VoteCast]  # reported by workers so far
    done: asyncio.Future[GradedItem | None] = field(default_factory=asyncio.Future)


@dataclass(slots=True, kw_only=True, eq=False)
class _Hand:
    """A worker as seen by the calling process."""

    name: str
    actor: Any
    hired_at: float
    has_begun: bool = False
    under_way: dict[str, _Piece] = field(default_factory=dict)  # by item id


class _Crew:
    """The workers of one run and the keeper of its limits."""

    def __init__(self, config: EvalConfig, grader: Grader, listener: Listener) -> None:
        self._grader = grader
        self._listener = listener
        self._keeps_exchanges = config.store_prompts
        has_budget = config.max_calls is not None or config.max_cost is not None
        self._counts_cost = config.max_cost is not None if has_budget else None
        processors = max(1, int(ray.cluster_resources().get("CPU", 1)))  # type: ignore[no-untyped-call]
        self._most = min(processors, config.max_concurrent_items or processors)
        self.limit = config.max_concurrent_items or _AHEAD * self._most
        self._ahead = self.limit // self._most
        self._hands: list[_Hand] = []
        self._listening: dict[_Hand, asyncio.Task[None]] = {}
        self._waiting = 0
        self._changed = asyncio.Event()
        self._alone = asyncio.Semaphore(self._most)
        self._hired = self._stillborn = 0
        self._failure: Exception | None = None
        here = NodeAffinitySchedulingStrategy(node_id=ray.get_runtime_context().get_node_id(), soft=True)
        keeper = ray.remote(Keeper).options(num_cpus=0, max_concurrency=_MANY_WAIT, scheduling_strategy=here)
        self._keeper: Any = keeper.remote(config.max_calls, config.max_cost)

    async def grade(self, work: ItemWork) -> GradedItem | None:
        """Grade an item in workers until one does not die; return None if the budget is used up."""
        votes: list[VoteCast] = []
        for deaths in range(_DEADLY):
            try:
                if deaths < _SUSPECT:
                    done = await self._grade_in(await self._next_hand(), work, votes)
                else:
                    # In a worker that grades nothing else.
                    async with self._alone:
                        hand = self._hire()
                        try:
                            done = await self._grade_in(hand, work, votes)
                        finally:
                            ray.kill(hand.actor)
            except RayActorError:
                continue
            return None if done is None else replace(done, votes_cast=len(votes))
        error = f"RunError: {_DEADLY} worker processes died while grading the item"
        return GradedItem.of_error(work.task, work.position, error, votes_cast=len(votes))

    async def _grade_in(self, hand: _Hand, work: ItemWork, votes: list[VoteCast]) -> GradedItem | None:
        """Grade an item in a worker, and add the votes that it reports."""
        budget = budget_in_force()
        if isinstance(budget, SpendingLimit) and budget.is_over:
            return None
        piece = hand.under_way[work.task.item_id] = _Piece(votes)
        try:
            hand.actor.start.remote(_with_votes(work, votes))
            return await piece.done
        finally:
            del hand.under_way[work.task.item_id]
            self._wake()

    async def close(self) -> None:
        """Ask the workers to release their resources."""
        closing = [_result(hand.actor.close.remote()) for hand in self._hands if hand.has_begun]
        if closing:
            gone = asyncio.gather(*closing, return_exceptions=True)
            await asyncio.wait([gone], timeout=_FAREWELL_SECONDS)

    def kill(self) -> None:
        """Kill all processes of the run."""
        for hand, task in self._listening.items():
            task.cancel()
            ray.kill(hand.actor)
        ray.kill(self._keeper)

    async def _next_hand(self) -> _Hand:
        """Wait for a worker with room for another item."""
        self._waiting += 1
        try:
            while True:
                if self._failure is not None:
                    raise self._failure
                starting = [hand for hand in self._hands if not hand.has_begun]
                enough = min(_ENOUGH, self._ahead)
                if len(self._hands) < self._most and self._waiting > enough * len(starting):
                    starting.append(self._hire())
                    self._hands.append(starting[-1])
                # Items that a worker is about to have room for are left to it.
                is_soon = any(time.monotonic() - hand.hired_at < _SOON_SECONDS for hand in starting)
                room = enough if is_soon else self._ahead
                free = [hand for hand in self._hands if hand.has_begun and len(hand.under_way) < room]
                if free:
                    return min(free, key=lambda one: len(one.under_way))
                await self._changed.wait()
        finally:
            self._waiting -= 1

    def _hire(self) -> _Hand:
        """Start a worker."""
        self._hired += 1
        name = f"worker {self._hired}"
        try:
            actor: Any = (
                ray.remote(Worker)
                .options(max_concurrency=self.limit + 1)
                .remote(
                    name,
                    self._grader,
                    self._keeper,
                    counts_cost=self._counts_cost,
                    keeps_exchanges=self._keeps_exchanges,
                )
            )
        except TypeError as error:
            raise ArgumentError(
                f"executor='ray': the grader cannot be sent to another process: {error}"
            ) from error
        hand = _Hand(name=name, actor=actor, hired_at=time.monotonic())
        self._listening[hand] = asyncio.ensure_future(self._listen(hand))
        return hand

    async def _listen(self, hand: _Hand) -> None:
        """Pass a worker's reports on to its items, and its death or bug to those that are under way."""
        try:
            await _result(hand.actor.begin.remote())
            hand.has_begun, self._stillborn = True, 0
            self._wake()
            while True:
                reports: dict[str, WorkerReport] = await _result(hand.actor.reports.remote())
                for item_id, report in reports.items():
                    await self._receive(report, hand.under_way[item_id])
        except RayActorError as error:
            failure: Exception = error
            if hand in self._hands:
                self._hands.remove(hand)
            self._stillborn += not hand.has_begun
            if self._stillborn >= _STILLBORN:
                self._failure = RunError(
                    f"executor='ray': {self._stillborn} consecutive workers failed to start: {error}"
                )
            try:
                # Release what the dead worker held.
                await _keeper_result(self._keeper.bury.remote(hand.name))
            except RunError as keeper_error:
                self._failure = keeper_error
        # Also raised in items that wait for a worker.
        except Exception as error:
            failure = self._failure = error
        for piece in hand.under_way.values():
            if not piece.done.done():
                piece.done.set_exception(failure)
        self._wake()

    async def _receive(self, report: WorkerReport, piece: _Piece) -> None:
        piece.votes += report.votes
        for event in report.votes:
            self._listener.vote_cast(event)
        if report.is_over and report.done is None:
            budget = budget_in_force()
            if isinstance(budget, SpendingLimit):
                # The run hands out no more items when its budget shows that a limit was reached.
                budget.spending = await _keeper_result(self._keeper.spending.remote())
        if report.is_over and not piece.done.done():
            piece.done.set_result(report.done)

    def _wake(self) -> None:
        """Let the items that wait for a worker look again."""
        self._changed.set()
        self._changed = asyncio.Event()


def _with_votes(work: ItemWork, votes: list[VoteCast]) -> ItemWork:
    """Return an item with the votes reported so far, which are not requested again."""
    if not votes:
        return work
    stored = {name: list(known) for name, known in work.stored.items()}
    for event in votes:
        if not event.vote.without_reply:
            stored.setdefault(event.criterion, []).append(event.vote)
    return replace(work, stored=stored)


async def _keeper_result(reference: Any) -> Any:
    """Return the result of a call to the keeper."""
    try:
        return await _result(reference)
    except RayActorError as error:
        raise RunError(_KEEPER_DIED) from error


async def _result(reference: Any) -> Any:
    """Return the result of a call to an actor."""
    try:
        return await reference
    except RayTaskError as error:
        if isinstance(error.cause, RayActorError):
            raise RunError(_KEEPER_DIED) from error
        raise (error.cause if isinstance(error.cause, Exception) else error) from error
