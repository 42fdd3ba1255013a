"""Executors, which grade the items of a run in this process or elsewhere, and stop on repeated errors."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from autorubric.errors import ArgumentError, AutorubricError, BudgetError, RunError
from autorubric.grading.grader import CriterionGrader, criterion_grader
from autorubric.runs.config import EvalConfig
from autorubric.runs.items import GradedItem, outcome_of
from autorubric.runs.manifest import BATCHES
from autorubric.support.concurrency import run_bounded
from autorubric.support.extensions import EXECUTORS_GROUP, extension_names, load_extension
from autorubric.support.objects import NOT_ANSWERING, SAME_ERRORS_TO_STOP, error_pattern

if TYPE_CHECKING:
    from autorubric.grading.base import Grader, GradingTask
    from autorubric.llm.budget import SpendingLimit
    from autorubric.runs.lines import StoredItem
    from autorubric.scoring.report_builder import GradingPolicy
    from autorubric.scoring.reports import EnsembleEvaluationReport
    from autorubric.scoring.votes import Listener, VoteCast, Votes


_DEFAULT_WINDOW = 64
_FIRST_ITEMS = 2
"""Maximum number of concurrent items at first; it doubles every `_STEP` seconds until one has failed."""
_STEP = 0.02
_FIRST_SECONDS = 10.0
"""Seconds after which this maximum no longer applies; it also ends once an item was judged."""


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

    def grade_items(
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
    """Return the executor that a config names."""
    if config.executor == "local":
        return LocalExecutor(config)
    make: Callable[[EvalConfig], Executor] | None = load_extension(EXECUTORS_GROUP, config.executor)
    if make is None:
        names = ", ".join(["local", *extension_names(EXECUTORS_GROUP)])
        raise ArgumentError(
            f"unknown executor {config.executor!r}; available: {names}. Other executors must be registered "
            f"in the entry point group {EXECUTORS_GROUP!r}"
        )
    return make(config)


def refuse_without_batches(grader: Grader, config: EvalConfig) -> None:
    """Check that a run can use batches: it is local, has some to finish, and its models have batches."""
    if not (config.batch or config.finish_direct):
        return
    # Imported late: few runs have batches.
    from autorubric.llm import batch_client
    from autorubric.llm.client import LLMClient

    folder = config.experiments_dir / str(config.experiment_name)
    if config.finish_direct and not (folder / BATCHES).exists():
        raise RunError(
            f"{folder} has no batches. Check --name (experiment_name), or omit --finish-direct "
            "(finish_direct) to send all requests directly"
        )
    if config.executor != "local":
        raise ArgumentError(f"batch requires the executor 'local'; got {config.executor!r}")
    inner = criterion_grader(grader)
    for member in inner.members if inner is not None else ():
        client = getattr(member.judge, "client", None)
        for one in [client] if isinstance(client, LLMClient) else map(LLMClient, member.models):
            for route in one.routes:
                batch_client.refuse_without_batches(route)


@dataclass(frozen=True, slots=True)
class ReportsByGrader:
    """Builds the reports of a run that has just ended."""

    grader: Grader

    @property
    def policy(self) -> GradingPolicy | None:
        """The rules by which the grader aggregates votes; None if they are unknown."""
        grader = self.grader.inner_grader
        if isinstance(grader, CriterionGrader) and type(grader).aggregate is CriterionGrader.aggregate:
            return grader.policy
        return None

    def __call__(self, task: GradingTask, votes: Votes, line: StoredItem) -> EnsembleEvaluationReport:
        return self.grader.aggregate(task, votes)


class LocalExecutor:
    """Grades several items concurrently in this event loop."""

    def __init__(self, config: EvalConfig) -> None:
        self._limit = config.max_concurrent_items or _DEFAULT_WINDOW
        self._has_limits = config.max_calls is not None or config.max_cost is not None

    async def grade_items(
        self, work: Iterable[ItemWork], grader: Grader, listener: Listener
    ) -> AsyncGenerator[GradedItem, None]:
        """Yield the result of each item; see `Executor`."""
        admission: _Admission | None = None
        if self._has_limits:
            # Imported late: a run with nothing left to grade is resumed faster without budgets (20 ms).
            from autorubric.llm.budget import SpendingLimit, budget_in_force

            # Otherwise, another process enforces the budget.
            if isinstance(budget := budget_in_force(), SpendingLimit):
                admission = _Admission(budget, grader)
        begins_at = time.monotonic()
        opens_at = begins_at + _FIRST_SECONDS
        failed_at: float | None = None
        under_way = 0

        async def one(item: ItemWork) -> GradedItem | None:
            nonlocal opens_at, failed_at, under_way
            try:
                done = await grade_item(item, grader, listener)
                if done.votes_cast and done.error is None:
                    opens_at = 0.0
                elif done.error is not None:
                    failed_at = failed_at or time.monotonic()
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
            if under_way >= _FIRST_ITEMS and (now := time.monotonic()) < opens_at:
                steps = ((failed_at or now) - begins_at) / _STEP
                if under_way >= _FIRST_ITEMS * 2 ** int(steps):
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
            if not self.budget.has_room(need + sum(self._needs.values())):
                return False
        self._needs[work.position] = need
        return True

    def end(self, work: ItemWork) -> None:
        """Release the calls reserved for an item that has ended."""
        del self._needs[work.position]
        self._has_finished = True

    def _planned_calls(self, work: ItemWork) -> int:
        grader = criterion_grader(self.grader)
        if grader is None:
            return len(work.task.rubric)
        try:
            batches = grader.requests(work.task, stored=work.stored)
        except AutorubricError:
            # Grading the item fails with the same error and sends no request.
            return 0
        return sum(not batch[0].member.is_offline for batch in batches)


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


_PASSING: Final = ("ProviderConnectionError", "RateLimitError")
"""Errors that may be temporary if the judge has answered before."""
_EVERY_VOTE: Final = ("AuthenticationError", "ModelNotFoundError", *_PASSING)
"""Errors that are independent of the item, so that each vote counts."""
_EVERY_ITEM: Final = ("RequestRefusedError", "JudgeCodeError")
"""Errors that an item may cause, so that all votes on one item count once."""
_TOO_LONG: Final = "Retry-After asks to wait"
"""Part of the error if a provider asks for a longer delay than the judge accepts."""


@dataclass(slots=True)
class _ErrorStreak:
    """The latest judgments of a judge."""

    error: str = ""  # that these judgments have in common, without parts that vary between requests
    count: int = 0  # consecutive judgments with this error
    item_id: str = ""  # of the latest judgment
    failed_at: float = 0.0  # clock time of the latest failure, in seconds
    has_answered: bool = False  # in this run


@dataclass(slots=True)
class RepeatedErrors:
    """Counts the consecutive errors of each judge as the votes of a run arrive.

    Once a judge has answered, a connection error may be temporary. It then counts only if its request began
    after the previous failure, so that requests that failed at the same time count once.
    """

    # Called with the message after `SAME_ERRORS_TO_STOP` consecutive failures of a judge with the same error.
    stop: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    _rows: dict[str, _ErrorStreak] = field(default_factory=dict)

    def add(self, event: VoteCast) -> None:
        """Process one vote."""
        vote = event.vote
        if vote.status == "not_asked" or (event.exchanged is not None and event.exchanged.cached):
            return
        row = self._rows.get(vote.judge_id)
        if row is None:
            row = self._rows[vote.judge_id] = _ErrorStreak()
        text = vote.error or ""
        kind = text.partition(":")[0] if vote.status == "failed" else ""
        row.has_answered = row.has_answered or vote.status != "failed" or vote.unreadable
        if kind == "RateLimitError" and _TOO_LONG not in text:
            kind = ""
        if NOT_ANSWERING in text:
            self.stop(f"judge {vote.judge_id!r}: {text}")
        if kind not in _EVERY_VOTE and kind not in _EVERY_ITEM:
            row.error, row.count = "", 0
            return
        same = error_pattern(text)
        if same != row.error:
            row.error, row.count = same, 0
        elif self._is_counted(row, event, kind):
            return
        row.count += 1
        row.item_id, row.failed_at = event.item_id, self.clock()
        if row.count == SAME_ERRORS_TO_STOP:
            so_far = "the last" if row.has_answered else "all"
            been = "" if row.has_answered else " so far"
            judge = f"judge {vote.judge_id!r}"
            self.stop(f"{so_far} {row.count} judgments of {judge}{been} failed with the same error: {text}")

    def _is_counted(self, row: _ErrorStreak, event: VoteCast, kind: str) -> bool:
        """Return whether the failure has the same cause as the previous one, and is already counted."""
        if kind in _EVERY_ITEM:
            return row.item_id == event.item_id
        if kind not in _PASSING or not row.has_answered:
            return False
        seconds = (event.vote.latency_seconds or 0.0) + event.vote.wait_seconds
        return self.clock() - seconds < row.failed_at
