"""Runs: grade every item of a dataset and store votes and results as they arrive."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, aclosing, nullcontext, suppress
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from autorubric.criteria.values import VerdictCounts
from autorubric.datasets.dataset import RubricDataset
from autorubric.errors import ArgumentError, ItemFailedError, RunError, RunWriteError
from autorubric.grading.base import key_of
from autorubric.grading.grader import CriterionGrader
from autorubric.runs.config import EvalConfig, EvalOptions, StopReason
from autorubric.runs.differences import ItemDigests, content_fingerprint, mapping_in
from autorubric.runs.executor import (
    Executor,
    ItemWork,
    RepeatedErrors,
    ReportsByGrader,
    executor_of,
    refuse_without_batches,
)
from autorubric.runs.item_results import StoredResults, answered_votes, grading_task
from autorubric.runs.items import EvalTimingStats, GradedItem, ItemTally
from autorubric.runs.lines import StoredItem, StoredVote
from autorubric.runs.manifest import BATCHES, DATASET
from autorubric.runs.notices import notice_of_alias
from autorubric.runs.open import OpenRun, open_run
from autorubric.runs.preflight import Preflight, Progress, send_test_requests
from autorubric.runs.result import EvalResult
from autorubric.runs.vote_reader import VoteCollector
from autorubric.support.concurrency import loop_is_running, sync_method, sync_twin
from autorubric.support.objects import fewer_gc_collections, logger_of
from autorubric.support.reading_errors import short_repr

if TYPE_CHECKING:
    from autorubric.grading.base import Grader, VoteKey
    from autorubric.llm.batches import BatchQueue
    from autorubric.llm.budget import SpendingLimit
    from autorubric.scoring.votes import VoteCast


_OUTCOME = tuple(one.name for one in fields(GradedItem))


class _UnderWay(NamedTuple):
    """An item that is being graded."""

    position: int
    digests: ItemDigests  # of the dependencies of its votes
    fingerprint: str  # of the parts of the item that its figures depend on
    before: StoredItem | None  # its latest line in the folder, valid or not
    offsets: list[int]  # of its stored votes
    again: bool = False  # it was graded earlier in this run, and votes on it failed


class RunWriter:
    """Hands out the items of a run that still need grading, and stores their votes and results."""

    def __init__(
        self, opened: OpenRun, progress: Progress, stop: Callable[[str], None] | None = None
    ) -> None:
        self._opened = opened
        self._errors = None if stop is None else RepeatedErrors(stop)
        self._progress = progress
        self._under_way: dict[str, _UnderWay] = {}
        # By item with failed votes: how many requests may still be sent for each of them, if known.
        self._failed_on: dict[str, dict[VoteKey, int]] = {}
        self._with_failures: set[int] = set()
        self._finished = 0
        self._tally = opened.index.tally
        self._served: dict[str, set[str]] = {}
        deciding = mapping_in(opened.manifest, "deciding")
        self._is_soft = mapping_in(deciding, "aggregation").get("votes") == "soft"
        self._certain: Counter[str] = Counter()  # votes without probabilities by judge, if votes are soft
        # The votes, if there are no earlier ones, which may not be valid anymore.
        self.votes: VoteCollector | None = None
        if not opened.index.current.count(1):
            self._tally = self._tally or ItemTally()
            if not opened.store.has_votes:
                self.votes = VoteCollector(with_confidence=deciding.get("escalation") is not None)

    def work(self) -> Iterator[ItemWork]:
        """Yield the items to grade, created one by one; finished items are skipped."""
        opened, index = self._opened, self._opened.index
        if self._progress.shown:
            for line in index.current_lines():
                if index.settled[line.position]:
                    self._progress.item(line)
        left = (position for position in range(len(opened.dataset)) if not index.settled[position])
        yield from filter(None, map(self._next_item, left))

    def retry_items(self) -> Iterator[ItemWork]:
        """Yield the items on which votes failed in this run, so that those votes are requested once more.

        If votes failed on all items, or on several items and over a tenth of them, nothing is yielded.
        """
        failed, self._with_failures = sorted(self._with_failures), set()
        if len(failed) == self._finished or len(failed) > max(1, self._finished // 10):
            return
        # Lines are written in the next iteration of the event loop, and these are read again here.
        self._opened.store.flush()
        # Votes that are requested again replace earlier ones.
        self.votes = None if failed else self.votes
        yield from filter(None, (self._next_item(position, again=True) for position in failed))

    def _next_item(self, position: int, *, again: bool = False) -> ItemWork | None:
        """Return the item to grade; None if its stored result is still valid."""
        opened, index = self._opened, self._opened.index
        before = index.line(position)
        item_id = opened.dataset.item_id(position)
        digests = opened.reusable.digests(position)
        fingerprint = content_fingerprint(opened.dataset, position, digests.fingerprint)
        begun = _UnderWay(position, digests, fingerprint, before, offsets=[], again=again)
        is_to_grade = before is None or again or before.lost or before.raised
        same = (opened.validity.basis, fingerprint)
        if before is not None and not is_to_grade and (before.basis, before.fingerprint) == same:
            self._store(replace(before, position=position), begun._replace(offsets=list(before.votes)))
            return None
        stored = index.votes(item_id, before)
        self._under_way[item_id] = begun._replace(offsets=[offset for offset, _ in stored])
        task, left = grading_task(opened.dataset, position), self._failed_on.get(item_id, {}) if again else {}
        task = replace(task, requests_left=left) if left else task
        reusable = opened.reusable.select(position, task, [vote for _, vote in stored], opened.notices)
        stored_votes = answered_votes(reusable, unreadable=not again)
        for name, cast in reusable.items():
            stored_votes[name] += [vote for vote in cast if left.get(key_of(name, vote)) == 0]
        return ItemWork(position=position, task=task, stored=stored_votes)

    def vote_cast(self, event: VoteCast) -> None:
        """Store a vote as it arrives."""
        item_id, name, vote, exchanged = event
        digests = self._under_way[item_id].digests
        digest = digests.of(name, vote.judge_id)
        self._opened.store.add_vote(StoredVote(item_id, name, digest, vote), exchanged)
        self._progress.vote()
        if vote.probability_source == "decision_model" and vote.model is not None:
            self._served.setdefault(vote.judge_id, set()).add(vote.model)
        if self._errors is not None:
            self._errors.add(event)
        if self.votes is not None:
            self.votes.add(self._under_way[item_id].position, name, vote)
        if vote.status == "failed":
            left = self._failed_on.setdefault(item_id, {})
            if exchanged is not None and exchanged.requests_left is not None:
                left[key_of(name, vote)] = exchanged.requests_left
        elif self._is_soft and vote.probabilities is None and vote.status != "not_asked":
            rubric = self._opened.dataset.get_item_rubric(self._under_way[item_id].position)
            criterion = rubric.by_name(name)
            self._certain[vote.judge_id] += criterion.check is None and criterion.level != "text"

    def add_notices(self) -> None:
        """Add notices on votes that count as certain, and on decision models not named by their version.

        The latter also go into the manifest.
        """
        self._opened.notices.extend(
            f"judge {judge!r}: votes that have no probabilities and count as certain of their answers: {n:,}"
            for judge, n in (+self._certain).items()
        )
        manifest = self._opened.manifest
        judges = mapping_in(mapping_in(manifest, "asking"), "judges")
        found: Any = manifest.get("model_aliases") or []
        for judge, served in self._served.items():
            # Servers name a model without its provider.
            name = str(mapping_in(judges, judge).get("model", judge)).rpartition("/")[2]
            told = notice_of_alias(judge, name, served)
            if told not in found and (
                name.endswith("-latest") or {one.rpartition("/")[2] for one in served} != {name}
            ):
                manifest["model_aliases"] = found = [*found, told]
                self._opened.notices.append(told)

    def finish(self, done: GradedItem) -> None:
        """Store the result of grading an item."""
        under_way = self._under_way.pop(done.item_id)
        if done.raised:
            n_due = sum(map(Counter.total, self._opened.reusable.due(done.position).values()))
            done = replace(done, verdicts=VerdictCounts.all_lost(n_due, done.error))
        if not under_way.again:
            self._finished += 1
            if done.item_id in self._failed_on:
                self._with_failures.add(done.position)
        self._store(done, under_way)

    def _store(self, done: GradedItem, under_way: _UnderWay) -> None:
        opened, before = self._opened, under_way.before
        outcome = {name: getattr(done, name) for name in _OUTCOME}
        if before is not None and not done.votes_cast:
            # No vote was requested, so the earlier duration is still right.
            outcome["duration_seconds"] = before.duration_seconds
        elif before is not None and under_way.again:
            outcome["duration_seconds"] += before.duration_seconds
        item = StoredItem(
            **outcome,
            basis=opened.validity.basis,
            dataset=opened.validity.dataset,
            fingerprint=under_way.fingerprint,
            votes=(*under_way.offsets, *opened.store.votes_cast(done.item_id)),
        )
        # The sums are discarded if the result replaces an earlier one.
        if opened.index.current[done.position]:
            self._tally = None
        elif self._tally is not None:
            self._tally.add(outcome)
        opened.index.add_finished(item, opened.store.add_item(item))
        opened.index.tally = self._tally
        if not opened.index.open_votes:
            opened.store.open_from = None
        self._progress.item(done, instead_of=before if under_way.again else None)


_log = logger_of(__name__)


class EvalRunner:
    """Grades a dataset and stores the results in a run folder.

    Args:
        dataset: The dataset to grade.
        grader: The grader.
        config: Options of the run; None for the defaults of `EvalConfig`.
        preflight: Called for each judge that passes its test request. Test requests are sent before all other
            requests; if one fails, the run raises a `JudgeError`. None disables test requests.

    Raises:
        ArgumentError: If `dataset` is empty or not a `RubricDataset`, an item has no rubric, or `grader` is
            invalid or names criteria that no rubric has.
    """

    def __init__(
        self,
        dataset: RubricDataset,
        grader: Grader,
        config: EvalConfig | None = None,
        *,
        preflight: Preflight | None = None,
    ) -> None:
        if not isinstance(dataset, RubricDataset):
            raise ArgumentError(f"dataset must be a RubricDataset; got {short_repr(dataset)}")
        if not hasattr(grader, "check_rubrics"):
            raise ArgumentError(
                f"grader must be a grader, such as CriterionGrader(judges=['gpt-6-luna']); got "
                f"{short_repr(grader)}"
            )
        if not dataset.items:
            raise ArgumentError("the dataset has no items; add at least one item before evaluating it")
        if not dataset.is_streamed:
            for position in range(len(dataset)):
                dataset.get_item_rubric(position)
        self.dataset = dataset
        self.grader = grader
        self.config = config or EvalConfig()
        self._preflight = preflight
        # A shard may lack criteria that other items of its dataset have; the whole dataset was checked.
        if self.config.shard is None:
            grader.check_rubrics(dataset.rubrics())

    async def run(self) -> EvalResult:
        """Grade every item and return the result.

        An interrupted run can be resumed under the same name; stored votes are not requested again.

        Raises:
            RunError: If the run folder cannot be used as requested, or an item failed and `fail_fast` is on
                (`ItemFailedError`).
            ArgumentError: If `max_cost` is set and the price of a model is unknown, the executor is not
                installed, a streamed dataset has an item without a rubric, or `batch` is on and a model has
                no batches.
            DatasetError: If a streamed dataset has errors.
            ProviderError: If a batch could not be submitted or collected.
        """
        refuse_without_batches(self.grader, self.config)
        config, budget = self.config, None
        if config.max_calls is not None or config.max_cost is not None:
            # Imported late: few runs have limits, and this takes 30 ms.
            from autorubric.llm.route import spending_limit

            models = self.grader.models
            budget = spending_limit(models, max_calls=config.max_calls, max_cost=config.max_cost)
        executor = executor_of(self.config)
        opened = open_run(self.dataset, self.grader, self.config)
        try:
            self._check_images(opened)
            within: AbstractContextManager[None] = nullcontext()
            if budget is not None or opened.index.settled.count(0):
                # Imported late: a run with nothing left to grade is resumed faster without (20 ms).
                from autorubric.llm.budget import SpendingLimit, spending_within

                # Without limits, a budget can still stop a run that keeps failing.
                budget = budget or SpendingLimit()
                within = spending_within(budget)
            with within, fewer_gc_collections():
                batches = self._batches_of(opened, budget)
                with nullcontext() if batches is None else batches.within():
                    return await self._grade_items(opened, executor, budget, batches)
        except BaseException as error:
            is_stopped = isinstance(error, asyncio.CancelledError | KeyboardInterrupt | GeneratorExit)
            self._log_stop(opened, "stopped" if is_stopped else "failed")
            if is_stopped:
                # Loggers are silent by default, so the error itself says how to resume.
                error.add_note(self._how_to_resume(opened))
            raise
        finally:
            try:
                opened.store.close()
            finally:
                # If the event loop was closed during the run, nothing can be awaited anymore.
                if loop_is_running():
                    await self.grader.aclose()

    run_sync = sync_method(run)
    """Call `run` from synchronous code, even inside a running event loop."""

    def _check_images(self, opened: OpenRun) -> None:
        """Plan the votes on one item with images, which fails if a model does not take them."""
        grader = self.grader.inner_grader
        if not isinstance(grader, CriterionGrader) or not grader.models:
            return
        copy = RubricDataset.from_copy(opened.store.path / DATASET)
        for position, line in enumerate(copy.item_lines()):
            if b'"image_url":' in line or isinstance(copy.prompt, list):
                task = grading_task(opened.dataset, position)
                if task.submission.images:
                    grader.plan(task)
                    return

    def _batches_of(self, opened: OpenRun, budget: SpendingLimit | None) -> BatchQueue | None:
        """Return the run's batches; None if it does not use any."""
        record, uses_batches = opened.store.path / BATCHES, self.config.batch or self.config.finish_direct
        if not uses_batches and not record.exists():
            return None
        # Imported late: few runs have batches.
        from autorubric.llm.batches import BatchQueue

        queue = BatchQueue(record, opened.store.mark, finish_direct=self.config.finish_direct)
        if not uses_batches and queue.is_unused:
            raise RunError(
                f"{opened.store.path} has batches and is not complete. Pass --batch (batch=True) to continue "
                "with batches, or --finish-direct (finish_direct=True) to send what is left directly"
            )
        if uses_batches and budget is not None:
            queue.count_spending(budget)
        return queue if uses_batches else None

    async def _grade_items(
        self, opened: OpenRun, executor: Executor, budget: SpendingLimit | None, batches: BatchQueue | None
    ) -> EvalResult:
        started_at, clock = datetime.now(UTC), time.perf_counter()
        count = len(opened.dataset)
        with Progress(count, show=self.config.show_progress, style=self.config.progress_style) as progress:
            writer = RunWriter(opened, progress, stop=None if budget is None else budget.stop)
            await self._ask(writer, opened, executor, budget, batches)
        writer.add_notices()
        if batches is not None and (budget is None or budget.stop_reason is None):
            await batches.submit()
        # The system clock may have been set back during the run.
        completed_at = started_at + timedelta(seconds=time.perf_counter() - clock)
        stopped: StopReason | None = "batch" if batches is not None and batches.is_pending else None
        if budget is not None and budget.is_over:
            stopped = budget.reached if budget.stop_reason is None else "same_error"
        if batches is not None and stopped in (None, "same_error"):
            opened.store.flush()
            batches.finish(is_complete=stopped is None)
            opened.notices.extend(batches.notices() if stopped is None else ())
        if stopped is None:
            opened.manifest.update(status="complete", completed_at=completed_at.isoformat())
            opened.store.write_manifest(opened.manifest)
        else:
            left = opened.index.settled.count(0)
            why = "waiting for batches of the provider" if stopped == "batch" else f"stopped: {budget}"
            why += "" if batches is None else f" ({batches.summary()})"
            told = f"{why}; {left} of {count} items remain. {self._how_to_resume(opened)}"
            opened.notices.append(told)
            self._log_stop(opened, "stopped")
        build = ReportsByGrader(self.grader)
        results = StoredResults(opened.index, opened.dataset, opened.reusable, build)
        if writer.votes is not None:
            opened.store.flush()
            results.write_snapshot(writer.votes)
        models = getattr(self.grader, "models", ())
        if models and results.tally.cost is not None:
            from autorubric.llm.route import unknown_prices

            if unknown := unknown_prices(models):
                opened.notices.append(f"the cost excludes {', '.join(unknown)}, whose price is unknown")
        return EvalResult(
            dataset=opened.dataset,
            item_results=results,
            timing_stats=EvalTimingStats.of(results.tally.durations, time.perf_counter() - clock),
            started_at=started_at,
            completed_at=completed_at,
            experiment_name=opened.name,
            experiment_dir=opened.store.path,
            notices=(*opened.notices, *results.messages()),
            stopped=stopped,
        )

    async def _ask(
        self,
        writer: RunWriter,
        opened: OpenRun,
        executor: Executor,
        budget: SpendingLimit | None,
        batches: BatchQueue | None,
    ) -> None:
        """Grade the items that are left, and store each vote and result as it arrives."""
        first = writer.work()
        if self._preflight is not None and batches is None:
            first = await send_test_requests(first, self.grader, writer, self._preflight)

        def may_begin(_: ItemWork) -> bool:
            # Replies of batches are paid for, so they are read even if the budget is used up.
            return budget is None or not (budget.is_over if batches is None else budget.stop_reason)

        # Failed requests of batches are sent again in the next batch instead.
        for items in (first, writer.retry_items()) if batches is None else (first,):
            work = takewhile(may_begin, items)
            async with aclosing(executor.grade_items(work, self.grader, writer)) as finished:
                async for done in finished:
                    writer.finish(done)
                    if not self.config.fail_fast or (done.error is None and not done.partly_scored):
                        continue
                    what = f"failed: {done.error}"
                    if done.error is None and done.verdicts is not None:
                        what = f"is only partly scored: {'; '.join(done.verdicts.messages())}"
                    raise ItemFailedError(f"item {done.item_id!r} {what}. {self._how_to_resume(opened)}")

    def _log_stop(self, opened: OpenRun, status: str) -> None:
        opened.manifest.update(status=status, completed_at=datetime.now(UTC).isoformat())
        # The reason for the stop matters more than a manifest that cannot be written. Closing the store
        # reports lines that cannot be written.
        with suppress(RunWriteError):
            opened.store.write_manifest(opened.manifest)
        _log.warning("run %s %s. %s", opened.name, status, self._how_to_resume(opened))

    def _how_to_resume(self, opened: OpenRun) -> str:
        return (
            f"The results so far are in {opened.store.path}; to resume, run again with "
            f"experiment_name={opened.name!r}"
        )


async def evaluate(dataset: RubricDataset, grader: Grader, **options: Unpack[EvalOptions]) -> EvalResult:
    """Grade a dataset and store the results in a run folder.

    Args:
        dataset: The dataset to grade.
        grader: The grader.
        **options: Fields of `EvalConfig`.

    Raises:
        ArgumentError: If the dataset is empty, an item has no rubric, the grader names criteria that no
            rubric has, an option is unknown or invalid, `max_cost` is set and the price of a model is
            unknown, or the executor is not installed.
        RunError: If the run folder cannot be used as requested, or an item failed and `fail_fast` is on
            (`ItemFailedError`).
    """
    return await EvalRunner(dataset, grader, EvalConfig().replace_options(**options)).run()


evaluate_sync = sync_twin(evaluate)
"""Call `evaluate` from synchronous code, even inside a running event loop."""
