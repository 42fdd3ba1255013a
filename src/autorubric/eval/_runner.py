"""A run: every item of a dataset graded, votes and results stored as they come."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from autorubric._events import VoteCast
from autorubric._sync import run_sync
from autorubric.dataset import RubricDataset
from autorubric.errors import ArgumentError, AutorubricError, ItemFailedError
from autorubric.eval._config import EvalConfig, OnMismatch, ProgressStyle
from autorubric.eval._executor import run_bounded
from autorubric.eval._items import EvalTimingStats, ItemResult
from autorubric.eval._open import OpenRun, open_run
from autorubric.eval._progress import Progress
from autorubric.eval._reopen import grading_task, weighted
from autorubric.eval._result import EvalResult
from autorubric.eval._store import StoredItem, StoredVote
from autorubric.graders import Grader
from autorubric.types import JudgeVote

_log = logging.getLogger(__name__)
_DEFAULT_WINDOW = 64


class EvalRunner:
    """Grades a dataset into a run folder.

    Args:
        dataset: What is graded.
        grader: By whom.
        config: Options of the run.

    Raises:
        ArgumentError: The dataset is empty, or an item has no rubric.
    """

    def __init__(self, dataset: RubricDataset, grader: Grader, config: EvalConfig | None = None) -> None:
        if not dataset.items:
            raise ArgumentError("the dataset has no items; add some before evaluating")
        for position in range(len(dataset.items)):
            dataset.get_item_rubric(position)
        self.dataset = dataset
        self.grader = grader
        self.config = config or EvalConfig()

    def run_sync(self) -> EvalResult:
        """`run`, for synchronous code; safe inside a running event loop."""
        return run_sync(self.run())

    async def run(self) -> EvalResult:
        """Grades every item and returns the result.

        A run that is interrupted can be gone on with under the same name: stored votes are not cast again.

        Raises:
            RunError: The run folder cannot be used as asked; or an item failed and `fail_fast` is on
                (`ItemFailedError`).
        """
        opened = open_run(self.dataset, self.grader, self.config)
        try:
            return await self._graded(opened)
        except (asyncio.CancelledError, KeyboardInterrupt):
            self._stopped(opened, "stopped")
            raise
        except BaseException:
            self._stopped(opened, "failed")
            raise
        finally:
            opened.store.close()
            await self.grader.aclose()

    async def _graded(self, opened: OpenRun) -> EvalResult:
        started_at, clock = datetime.now(UTC), time.perf_counter()
        stored = self._reusable(opened)
        results: list[ItemResult] = []
        count = len(self.dataset.items)
        with Progress(count, show=self.config.show_progress, style=self.config.progress_style) as progress:

            async def work(position: int) -> ItemResult:
                listener = _VoteWriter(opened=opened, position=position, progress=progress)
                return await self._grade_item(position, stored.get(position, {}), listener)

            limit = self.config.max_concurrent_items or _DEFAULT_WINDOW
            async with aclosing(run_bounded(range(count), work, limit=limit)) as finished:
                async for done in finished:
                    self._store_item(opened, done)
                    results.append(done)
                    progress.item(done)
                    self._maybe_fail_fast(opened, done)
        results.sort(key=lambda done: done.item_idx)
        completed_at = datetime.now(UTC)
        opened.manifest.update(status="complete", completed_at=completed_at.isoformat())
        opened.store.write_manifest(opened.manifest)
        durations = [done.duration_seconds for done in results]
        return EvalResult(
            dataset=self.dataset,
            item_results=results,
            timing_stats=EvalTimingStats.of(durations, time.perf_counter() - clock),
            started_at=started_at,
            completed_at=completed_at,
            experiment_name=opened.name,
            experiment_dir=opened.store.path,
            notices=tuple(opened.notices),
        )

    def _maybe_fail_fast(self, opened: OpenRun, done: ItemResult) -> None:
        if done.error is not None and self.config.fail_fast:
            item_id = self.dataset.item_id(done.item_idx)
            raise ItemFailedError(f"item {item_id!r} failed: {done.error}. {self._how_to_resume(opened)}")

    def _reusable(self, opened: OpenRun) -> dict[int, dict[str, list[JudgeVote]]]:
        """Stored votes that depend on nothing that changed, by position and criterion.

        A vote that failed for want of a reply is asked for again: the provider may be back.
        """
        places = {self.dataset.item_id(i): i for i in range(len(self.dataset.items))}
        weights: Mapping[str, float] = opened.manifest["deciding"].get("judge_weights") or {}
        found: dict[int, dict[str, list[JudgeVote]]] = {}
        for stored in opened.votes:
            position = places.get(stored.item_id)
            lost = stored.vote.status == "failed" and not stored.vote.unreadable
            if position is None or lost:
                continue
            if not opened.digests.fits(position, stored.criterion, stored.vote.judge_id, stored.digest):
                continue
            cast = found.setdefault(position, {}).setdefault(stored.criterion, [])
            cast.extend(weighted([stored.vote], weights))
        return found

    async def _grade_item(
        self, position: int, stored: Mapping[str, list[JudgeVote]], listener: _VoteWriter
    ) -> ItemResult:
        task = grading_task(self.dataset, position)
        clock = time.perf_counter()
        report, error = None, None
        try:
            votes = await self.grader.judge(task, stored=stored, listener=listener)
            report = self.grader.aggregate(task, votes)
            error = report.error if report.score is None else None
        except AutorubricError as failure:
            error = f"{type(failure).__name__}: {failure}"
        return ItemResult(
            item_idx=position,
            item=self.dataset.items[position],
            report=report,
            duration_seconds=self._duration(listener, time.perf_counter() - clock),
            error=error,
        )

    def _duration(self, listener: _VoteWriter, seconds: float) -> float:
        """Seconds that grading took: those stored, where no vote was cast now."""
        before = listener.opened.items.get(self.dataset.item_id(listener.position))
        return before.duration_seconds if before and not listener.heard else seconds

    def _store_item(self, opened: OpenRun, done: ItemResult) -> None:
        item_id = self.dataset.item_id(done.item_idx)
        item = StoredItem(
            item_id=item_id,
            duration_seconds=done.duration_seconds,
            length_penalty=done.report.length_penalty if done.report else 0.0,
            error=done.error if done.report is None else None,
        )
        if opened.items.get(item_id) != item:
            opened.store.add_item(item)

    def _stopped(self, opened: OpenRun, status: str) -> None:
        opened.manifest.update(status=status, completed_at=datetime.now(UTC).isoformat())
        opened.store.write_manifest(opened.manifest)
        _log.warning("run %s %s. %s", opened.name, status, self._how_to_resume(opened))

    def _how_to_resume(self, opened: OpenRun) -> str:
        return (
            f"What was judged is in {opened.store.path}; run again with experiment_name={opened.name!r} "
            "to go on"
        )


@dataclass(slots=True, kw_only=True)
class _VoteWriter:
    """Stores the votes of one item as they arrive."""

    opened: OpenRun
    position: int
    progress: Progress
    heard: int = field(default=0)

    def vote_cast(self, event: VoteCast) -> None:
        digests = self.opened.digests
        rubric = digests.dataset.get_item_rubric(self.position)
        criterion = rubric.by_name(event.criterion)
        stored = StoredVote(
            item_id=event.item_id,
            criterion=event.criterion,
            digest=digests.of(self.position, criterion, event.vote.judge_id),
            vote=event.vote,
        )
        self.opened.store.add_vote(stored, event.exchanged)
        self.heard += 1
        self.progress.vote()


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
) -> EvalResult:
    """Grades a dataset into a run folder; the options are those of `EvalConfig`.

    Raises:
        ArgumentError: The dataset is empty, or an item has no rubric.
        RunError: The run folder cannot be used as asked; or an item failed and `fail_fast` is on
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
    )
    return await EvalRunner(dataset, grader, config).run()


def evaluate_sync(dataset: RubricDataset, grader: Grader, **options: Any) -> EvalResult:
    """`evaluate`, for synchronous code; safe inside a running event loop."""
    return run_sync(evaluate(dataset, grader, **options))
