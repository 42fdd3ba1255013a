"""Runs: grade every item of a dataset and store votes and results as they arrive."""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractContextManager, aclosing, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autorubric._files import shortened
from autorubric._logs import logger_of
from autorubric._sync import loop_is_running, run_sync
from autorubric.dataset import RubricDataset
from autorubric.errors import ArgumentError, ItemFailedError, RunWriteError
from autorubric.eval._collecting import collecting_seldom
from autorubric.eval._config import EvalConfig, OnMismatch, ProgressStyle, StopReason
from autorubric.eval._executor import Executor, executor_of
from autorubric.eval._items import EvalTimingStats, GradedItem
from autorubric.eval._lines import StoredItem
from autorubric.eval._open import OpenRun, open_run
from autorubric.eval._preflight import Preflight, checked
from autorubric.eval._progress import Progress
from autorubric.eval._result import EvalResult
from autorubric.eval._results import StoredResults
from autorubric.eval._writer import RunWriter

if TYPE_CHECKING:
    from autorubric.graders import Grader
    from autorubric.llm import SpendingLimit
    from autorubric.reporting import GradingTask, Votes
    from autorubric.types import EnsembleEvaluationReport

_log = logger_of(__name__)


@dataclass(frozen=True, slots=True)
class _ByGrader:
    """Builds the reports of a run that has just ended."""

    grader: Grader

    def __call__(self, task: GradingTask, votes: Votes, line: StoredItem) -> EnsembleEvaluationReport:
        return self.grader.aggregate(task, votes)


def _spending(budget: SpendingLimit | None) -> AbstractContextManager[None]:
    if budget is None:
        return nullcontext()
    from autorubric.llm import spending_within

    return spending_within(budget)


def _no_limit() -> SpendingLimit:
    """Return a budget without limits, which can still stop a run that keeps failing."""
    # Imported late, since a run with nothing left to grade does not need it.
    from autorubric.llm import SpendingLimit

    return SpendingLimit()


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
            raise ArgumentError(f"dataset must be a RubricDataset; got {shortened(dataset)}")
        if not hasattr(grader, "check_rubrics"):
            raise ArgumentError(
                f"grader must be a grader, such as CriterionGrader(judges=['gpt-6-luna']); got "
                f"{shortened(grader)}"
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

    def run_sync(self) -> EvalResult:
        """Call `run` from synchronous code, even if an event loop is running."""
        return run_sync(self.run())

    async def run(self) -> EvalResult:
        """Grade every item and return the result.

        An interrupted run can be resumed under the same name; stored votes are not requested again.

        Raises:
            RunError: If the run folder cannot be used as requested, or an item failed and `fail_fast` is on
                (`ItemFailedError`).
            ArgumentError: If `max_cost` is set and the price of a model is unknown, the executor is not
                installed, or a streamed dataset has an item without a rubric.
            DatasetError: If a streamed dataset has errors.
        """
        budget = self._budget()
        executor = executor_of(self.config)
        opened = open_run(self.dataset, self.grader, self.config)
        try:
            if budget is None and opened.index.settled.count(0):
                budget = _no_limit()
            with _spending(budget), collecting_seldom():
                result = await self._graded(opened, executor, budget)
        except BaseException as error:
            is_stopped = isinstance(error, asyncio.CancelledError | KeyboardInterrupt | GeneratorExit)
            self._stopped(opened, "stopped" if is_stopped else "failed")
            if is_stopped:
                # Loggers are silent by default, so the error itself says how to resume.
                error.add_note(self._how_to_resume(opened))
            await self._closed(opened)
            raise
        await self._closed(opened)
        return result

    def _budget(self) -> SpendingLimit | None:
        config = self.config
        if config.max_calls is None and config.max_cost is None:
            return None
        # Imported late, since few runs have limits and this module loads the models.
        from autorubric.llm import spending_limit

        return spending_limit(self.grader.models, max_calls=config.max_calls, max_cost=config.max_cost)

    async def _closed(self, opened: OpenRun) -> None:
        try:
            opened.store.close()
        finally:
            # If the event loop was closed during the run, nothing can be awaited anymore.
            if loop_is_running():
                await self.grader.aclose()

    async def _graded(self, opened: OpenRun, executor: Executor, budget: SpendingLimit | None) -> EvalResult:
        started_at, clock = datetime.now(UTC), time.perf_counter()
        count = len(opened.dataset)
        with Progress(count, show=self.config.show_progress, style=self.config.progress_style) as progress:
            writer = RunWriter(opened, progress, stop=None if budget is None else budget.stop)
            first = writer.work()
            if self._preflight is not None:
                first = await checked(first, self.grader, writer, self._preflight)
            for items in (first, writer.second_chances()):
                work = takewhile(lambda _: budget is None or not budget.is_over, items)
                async with aclosing(executor.graded(work, self.grader, writer)) as finished:
                    async for done in finished:
                        writer.finish(done)
                        self._maybe_fail_fast(opened, done)
        # The system clock may have been set back during the run.
        completed_at = started_at + timedelta(seconds=time.perf_counter() - clock)
        stopped: StopReason | None = None
        if budget is not None:
            stopped = "same_error" if budget.stop_reason is not None else budget.reached
        if stopped is None:
            opened.manifest.update(status="complete", completed_at=completed_at.isoformat())
            opened.store.write_manifest(opened.manifest)
        else:
            left = opened.index.settled.count(0)
            told = f"stopped: {budget}; {left} of {count} items remain. {self._how_to_resume(opened)}"
            opened.notices.append(told)
            self._stopped(opened, "stopped")
        results = self._results(opened)
        models = getattr(self.grader, "models", ())
        if len(models) > 1 and results.tally.cost is not None:
            from autorubric.llm import unknown_prices  # imported late, as it loads prices

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

    def _results(self, opened: OpenRun) -> StoredResults:
        build = _ByGrader(self.grader)
        return StoredResults(opened.index, opened.dataset, opened.standing, build, unfinished=False)

    def _maybe_fail_fast(self, opened: OpenRun, done: GradedItem) -> None:
        if not self.config.fail_fast or (done.error is None and not done.partly_scored):
            return
        what = f"failed: {done.error}"
        if done.error is None and done.verdicts is not None:
            what = f"is only partly scored: {'; '.join(done.verdicts.messages())}"
        raise ItemFailedError(f"item {done.item_id!r} {what}. {self._how_to_resume(opened)}")

    def _stopped(self, opened: OpenRun, status: str) -> None:
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


async def evaluate(  # noqa: PLR0913 - the public entry point; it makes its options object at once
    dataset: RubricDataset,
    grader: Grader,
    *,
    fail_fast: bool = False,
    show_progress: bool = True,
    progress_style: ProgressStyle = "simple",
    max_concurrent_items: int | None = None,
    experiment_name: str | None = None,
    experiments_dir: str | Path = "experiments",
    resume: bool = True,
    on_mismatch: OnMismatch = "refuse",
    store_prompts: bool = True,
    max_calls: int | None = None,
    max_cost: float | None = None,
    executor: str = "local",
) -> EvalResult:
    """Grade a dataset and store the results in a run folder; see `EvalConfig` for the options.

    Raises:
        ArgumentError: If the dataset is empty, an item has no rubric, the grader names criteria that no
            rubric has, `max_cost` is set and the price of a model is unknown, or the executor is not
            installed.
        RunError: If the run folder cannot be used as requested, or an item failed and `fail_fast` is on
            (`ItemFailedError`).
    """
    config = EvalConfig(
        fail_fast=fail_fast,
        show_progress=show_progress,
        progress_style=progress_style,
        max_concurrent_items=max_concurrent_items,
        experiment_name=experiment_name,
        experiments_dir=Path(experiments_dir),
        resume=resume,
        on_mismatch=on_mismatch,
        store_prompts=store_prompts,
        max_calls=max_calls,
        max_cost=max_cost,
        executor=executor,
    )
    return await EvalRunner(dataset, grader, config).run()


def evaluate_sync(dataset: RubricDataset, grader: Grader, **options: Any) -> EvalResult:
    """Call `evaluate` from synchronous code, even if an event loop is running."""
    return run_sync(evaluate(dataset, grader, **options))
