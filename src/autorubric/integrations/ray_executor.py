"""The executor for Ray clusters, which sends batches of items to actors that report votes as they are cast.

This is the only module that imports `ray`. `executor="ray"` finds the executor through the entry point group
`autorubric.executors`. Each actor opens its own connections from the grader's specs, and one further actor
enforces the limits and the budget for all of them. As in a local run, the calling process writes the votes
to the run folder.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from typing import Any, Final

from autorubric.errors import ArgumentError, MissingDependencyError, RunError
from autorubric.grading.base import Grader
from autorubric.integrations.ray_keeper import Keeper
from autorubric.integrations.ray_worker import Parcel, Worker
from autorubric.llm.budget import Spending, SpendingLimit, budget_in_force
from autorubric.runs.config import EvalConfig
from autorubric.runs.executor import ItemWork
from autorubric.runs.items import GradedItem
from autorubric.scoring.votes import Listener, VoteCast

try:
    import ray
    from ray.exceptions import RayActorError, RayTaskError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
except ImportError as error:
    raise MissingDependencyError(
        f"executor='ray' requires the package 'ray' ({error}); run: pip install ray"
    ) from error

_BATCH: Final = 8
"""Number of items sent to a worker at a time."""
_AHEAD: Final = 64
"""Maximum number of concurrent items per worker, if the run does not specify a maximum."""
_MANY_WAIT: Final = 1_000_000
"""Maximum number of pending calls to the keeper."""
_SUSPECT: Final = 2
"""After this many worker deaths, an item is graded alone to find out whether the item causes them."""
_DEADLY: Final = 3
"""After this many worker deaths, an item is abandoned."""
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

    async def graded(
        self, work: Iterable[ItemWork], grader: Grader, listener: Listener
    ) -> AsyncGenerator[GradedItem, None]:
        """Yield the result of grading each item, as specified by `Executor`."""
        pieces = iter(work)
        first = next(pieces, None)
        if first is None:
            # Without items, no cluster is started.
            return
        async with _cluster():
            crew = _Crew(self._config, chain([first], pieces), grader, listener)
            try:
                while crew.at_work():
                    for done in await crew.next():
                        yield done
                await crew.farewell()
            finally:
                crew.dismiss()


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


@dataclass(slots=True, kw_only=True)
class _Piece:
    """An item that is being graded.

    Attributes:
        work: The item with its stored votes.
        told: Votes reported by workers.
        deaths: Number of workers that died while grading the item.
    """

    work: ItemWork
    told: list[VoteCast] = field(default_factory=list)
    deaths: int = 0

    def to_send(self) -> ItemWork:
        """Return the item with the votes reported so far."""
        if not self.told:
            return self.work
        stored = {name: list(votes) for name, votes in self.work.stored.items()}
        for event in self.told:
            if not event.vote.without_reply:
                stored.setdefault(event.criterion, []).append(event.vote)
        return replace(self.work, stored=stored)


@dataclass(slots=True, kw_only=True, eq=False)
class _Hand:
    """A worker as seen by the calling process.

    Attributes:
        name: Name of the worker.
        actor: Handle of its Ray actor.
        under_way: Items that the worker is grading, by item id.
        call: The current call to the worker; None if the worker is idle.
        has_begun: Whether the worker's process has started.
    """

    name: str
    actor: Any
    call: asyncio.Future[Parcel] | None
    under_way: dict[str, _Piece] = field(default_factory=dict)
    has_begun: bool = False


class _Crew:
    """The workers of one run and the keeper of its limits."""

    def __init__(self, config: EvalConfig, work: Iterable[ItemWork], grader: Grader, listener: Listener):
        self._work = iter(work)
        self._grader = grader
        self._listener = listener
        self._keeps_exchanges = config.store_prompts
        self._has_budget = config.max_calls is not None or config.max_cost is not None
        self._counts_cost = config.max_cost is not None
        processors = max(1, int(ray.cluster_resources().get("CPU", 1)))  # type: ignore[no-untyped-call]
        self._most = min(processors, config.max_concurrent_items or processors)
        self._ahead = (config.max_concurrent_items or _AHEAD * self._most) // self._most
        self._waiting: deque[_Piece] = deque()
        self._suspects: deque[_Piece] = deque()
        self._hands: list[_Hand] = []
        self._hired = self._stillborn = 0
        here = NodeAffinitySchedulingStrategy(node_id=ray.get_runtime_context().get_node_id(), soft=True)
        keeper = ray.remote(Keeper).options(num_cpus=0, max_concurrency=_MANY_WAIT, scheduling_strategy=here)
        self._keeper: Any = keeper.remote(config.max_calls, config.max_cost)

    def at_work(self) -> bool:
        """Assign work to idle workers; return False if no work is left."""
        self._hire()
        for hand in self._hands:
            if hand.call is None:
                pieces = self._take(hand)
                if pieces or hand.under_way:
                    batch = [piece.to_send() for piece in pieces]
                    hand.call = asyncio.ensure_future(_answer(hand.actor.exchange.remote(batch)))
        return any(hand.call is not None for hand in self._hands)

    async def next(self) -> list[GradedItem]:
        """Wait for the next report of a worker and return the finished items."""
        calls = [hand.call for hand in self._hands if hand.call is not None]
        await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        found: list[GradedItem] = []
        for hand in [one for one in self._hands if one.call is not None and one.call.done()]:
            call = hand.call
            assert call is not None
            failure = call.exception()
            if isinstance(failure, RayActorError):
                hand.call = None
                found += await self._lost(hand, failure)
            elif failure is None:
                hand.call = None
                found += await self._heard(hand, call.result())
            elif not found:
                raise failure
        return found

    async def farewell(self) -> None:
        """Ask the workers to release their resources."""
        closing = [_answer(hand.actor.close.remote()) for hand in self._hands if hand.has_begun]
        if closing:
            gone = asyncio.gather(*closing, return_exceptions=True)
            await asyncio.wait([gone], timeout=_FAREWELL_SECONDS)

    def dismiss(self) -> None:
        """Kill all processes of the run."""
        for hand in self._hands:
            if hand.call is not None:
                hand.call.cancel()
            ray.kill(hand.actor)
        ray.kill(self._keeper)

    def _hire(self) -> None:
        """Start workers for the items that are waiting."""
        starting = sum(not hand.has_begun for hand in self._hands)
        while len(self._hands) < self._most and self._is_there(starting * _BATCH + 1):
            self._hired += 1
            name = f"worker {self._hired}"
            budget = self._counts_cost if self._has_budget else None
            try:
                actor: Any = ray.remote(Worker).remote(
                    name, self._grader, self._keeper, budget, self._keeps_exchanges
                )
            except TypeError as error:
                raise ArgumentError(
                    f"executor='ray': the grader cannot be sent to another process: {error}"
                ) from error
            call = asyncio.ensure_future(_answer(actor.begin.remote()))
            self._hands.append(_Hand(name=name, actor=actor, call=call))
            starting += 1

    def _is_there(self, count: int) -> bool:
        """Return whether at least `count` items are waiting, fetching more items if needed."""
        more = count - len(self._waiting) - len(self._suspects)
        if more > 0:
            self._waiting.extend(_Piece(work=work) for work in islice(self._work, more))
        return len(self._waiting) + len(self._suspects) >= count

    def _take(self, hand: _Hand) -> list[_Piece]:
        """Return the items that an idle worker should start."""
        if self._suspects:
            pieces = [] if hand.under_way else [self._suspects.popleft()]
        elif any(piece.deaths >= _SUSPECT for piece in hand.under_way.values()):
            pieces = []
        else:
            room = min(_BATCH, self._ahead - len(hand.under_way))
            self._is_there(room)
            pieces = [self._waiting.popleft() for _ in range(min(room, len(self._waiting)))]
        hand.under_way.update((piece.work.task.item_id, piece) for piece in pieces)
        return pieces

    async def _heard(self, hand: _Hand, parcel: Parcel) -> list[GradedItem]:
        hand.has_begun, self._stillborn = True, 0
        for event in parcel.votes:
            hand.under_way[event.item_id].told.append(event)
            self._listener.vote_cast(event)
        budget = budget_in_force()
        if budget is not None and budget.stop_reason is not None:
            # The workers are not notified and finish the items that they have.
            self._hand_out_no_more()
        if parcel.unfinished:
            for item_id in parcel.unfinished:
                del hand.under_way[item_id]
            await self._tell_budget()
        found = []
        for done in parcel.done:
            piece = hand.under_way.pop(done.item_id)
            found.append(replace(done, votes_cast=len(piece.told)))
        return found

    async def _tell_budget(self) -> None:
        """Report the spending to the run, and stop handing out items if the budget is used up."""
        spending: Spending = await _keeper_result(self._keeper.spending.remote())
        budget = budget_in_force()
        if isinstance(budget, SpendingLimit):
            budget.spending = spending
        if spending.reached is not None:
            self._hand_out_no_more()

    def _hand_out_no_more(self) -> None:
        self._waiting.clear()
        self._suspects.clear()

    async def _lost(self, hand: _Hand, why: BaseException) -> list[GradedItem]:
        """Requeue the items of a dead worker, and return the items that are abandoned."""
        self._hands.remove(hand)
        await _keeper_result(self._keeper.bury.remote(hand.name))
        self._stillborn += not hand.has_begun
        if self._stillborn >= _STILLBORN:
            raise RunError(f"executor='ray': {self._stillborn} consecutive workers failed to start: {why}")
        given_up = []
        for piece in hand.under_way.values():
            piece.deaths += 1
            if piece.deaths >= _DEADLY:
                given_up.append(_lost_item(piece))
            else:
                (self._suspects if piece.deaths >= _SUSPECT else self._waiting).append(piece)
        return given_up


def _lost_item(piece: _Piece) -> GradedItem:
    return GradedItem.of_error(
        piece.work.task,
        piece.work.position,
        f"RunError: {piece.deaths} worker processes died while grading the item",
        votes_cast=len(piece.told),
    )


async def _keeper_result(reference: Any) -> Any:
    """Return the result of a call to the keeper."""
    try:
        return await _answer(reference)
    except RayActorError as error:
        raise RunError(_KEEPER_DIED) from error


async def _answer(reference: Any) -> Any:
    """Return the result of a call to an actor."""
    try:
        return await reference
    except RayTaskError as error:
        if isinstance(error.cause, RayActorError):
            raise RunError(_KEEPER_DIED) from error
        raise (error.cause if isinstance(error.cause, Exception) else error) from error
