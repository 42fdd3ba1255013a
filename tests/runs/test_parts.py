"""The parts of a run by themselves: the executor, timing, the store's reading."""

from __future__ import annotations

import asyncio
import random
import statistics
from pathlib import Path

import pytest

from autorubric.runs import EvalTimingStats
from autorubric.runs.manifest import read_manifest
from autorubric.runs.reopen import reopen
from autorubric.runs.store import RunStore
from autorubric.support.concurrency import run_bounded
from autorubric.support.write import FileLock
from tests.runs.runs import CountingJudge, run


def test_the_executor_yields_what_finishes_and_raises_the_first_failure() -> None:
    """What finished beside a failure is yielded before it is raised; the rest is cancelled."""
    cancelled = []

    async def work(number: int) -> int:
        if number == 2:
            raise ValueError("two")
        if number > 2:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cancelled.append(number)
                raise
        return number

    async def collect() -> list[int]:
        seen: list[int] = []
        with pytest.raises(ValueError, match="two"):
            async for done in run_bounded(range(6), work, limit=5):
                seen.append(done)
        return seen

    assert sorted(asyncio.run(collect())) == [0, 1]
    assert sorted(cancelled) == [3, 4]


def test_the_executor_of_nothing_yields_nothing() -> None:
    """No items, no results."""

    async def collect() -> list[int]:
        async def work(number: int) -> int:
            return number

        return [done async for done in run_bounded([], work, limit=3)]

    assert asyncio.run(collect()) == []


def test_timing_figures() -> None:
    """Mean, extremes, median and 95th percentile of item durations, and the rate."""
    stats = EvalTimingStats.of([float(n) for n in range(1, 101)], 50.0)
    assert stats.mean_item_duration_seconds == 50.5
    assert (stats.min_item_duration_seconds, stats.max_item_duration_seconds) == (1.0, 100.0)
    assert stats.p50_item_duration_seconds == 50.5
    assert stats.p95_item_duration_seconds == pytest.approx(95.05)
    assert stats.items_per_second == 2.0


def test_timing_of_one_and_of_none() -> None:
    """One item is every quantile; without items there is none, and without time no rate."""
    one = EvalTimingStats.of([2.0], 4.0)
    assert one.p50_item_duration_seconds == one.p95_item_duration_seconds == 2.0
    none = EvalTimingStats.of([], 0.0)
    assert none.mean_item_duration_seconds is None
    assert none.p95_item_duration_seconds is None
    assert none.items_per_second is None


def test_a_lock_is_given_back(tmp_path: Path) -> None:
    """Two cannot hold it; after release the other can."""
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert first.acquire()
    assert not second.acquire()
    first.release()
    first.release()
    assert second.acquire()
    second.release()


def test_lines_of_any_damage_are_passed_over(tmp_path: Path) -> None:
    """Lines that are no votes, whatever they are, cost themselves and no more."""
    run(tmp_path, CountingJudge())
    votes = tmp_path / "run" / "votes.jsonl"
    whole = votes.read_bytes()
    votes.write_bytes(b'{"item": 1}\n\xff\xfe\n[]\nnull\n\n' + whole)
    with pytest.warns(RuntimeWarning, match=r"votes\.jsonl is damaged"):
        stored = reopen(tmp_path / "run")
    assert len(stored.item_results) == 4
    assert all(done.report and len(done.report.report) == 2 for done in stored.item_results)
    assert stored.notices == (
        "votes.jsonl is damaged: 4 lines are damaged or missing. No score is affected; resuming the run "
        "restores the file",
    )


def test_times_that_cannot_be_read_do_not_hide_a_run(tmp_path: Path) -> None:
    """A manifest without times reopens all the same."""
    run(tmp_path, CountingJudge())
    manifest = read_manifest(tmp_path / "run")
    store = RunStore(tmp_path / "run")
    store.mark = int(str(manifest["mark"]))
    store.write_manifest({key: value for key, value in manifest.items() if key != "started_at"})
    store.close()
    assert reopen(tmp_path / "run").started_at.year == 1970


@pytest.mark.parametrize("count", [2, 3, 101, 40_000])
def test_percentiles_are_those_of_the_standard_library(count: int) -> None:
    """However many items there are, p50 and p95 are the inclusive percentiles of their durations."""
    rng = random.Random(count)
    durations = [rng.expovariate(1.0) for _ in range(count)]
    timed = EvalTimingStats.of(durations, 1.0)
    expected = statistics.quantiles(durations, n=100, method="inclusive")
    assert timed.p50_item_duration_seconds == expected[49]
    assert timed.p95_item_duration_seconds == expected[94]
    assert timed.mean_item_duration_seconds == statistics.fmean(durations)
