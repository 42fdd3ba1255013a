"""Runs that are cancelled, or whose event loop is closed, at any await."""

from __future__ import annotations

import asyncio
import gc
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from autorubric import CriterionGrader, EvalConfig, EvalRunner, JudgeReply
from autorubric.errors import RunError
from autorubric.judges import JudgeRequest
from autorubric.runs.lines import StoredVote
from autorubric.runs.store import RunStore
from autorubric.scoring import JudgeVote
from tests.runs.runs import TEXTS, CountingJudge, run, small_dataset


class _Slow(CountingJudge):
    """Lets others go on some times before it answers, and takes its time to be closed."""

    answered = 0

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        for _ in range(1 + len(request.criterion.name or "") % 3):
            await asyncio.sleep(0)
        reply = await super().ask(request)
        self.answered += 1
        return reply

    async def aclose(self) -> None:
        await asyncio.sleep(0)


class _Stubborn(_Slow):
    """Answers, even where it is cancelled."""

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        try:
            return await super().ask(request)
        except asyncio.CancelledError:
            return JudgeReply(answer="MET")


def _runner(folder: Path, judge: Any) -> EvalRunner:
    options = EvalConfig(
        experiment_name="run", experiments_dir=folder, show_progress=False, max_concurrent_items=2
    )
    return EvalRunner(small_dataset(*TEXTS), CriterionGrader(judges=[judge]), options)


def _stored(folder: Path) -> list[tuple[str, str]]:
    file = folder / "run" / "votes.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [(vote["item"], vote["criterion"]) for vote in map(json.loads, lines)]


def _goes_on(folder: Path, scores: list[float | None]) -> None:
    """What is stored is not asked again, the rest is, and the scores are those of a run that was let be."""
    stored, judge = _stored(folder), CountingJudge()
    assert run(folder, judge).get_scores() == scores
    assert not set(stored) & set(judge.asked)
    assert len(stored) + len(judge.asked) == 2 * len(TEXTS) == len(set(_stored(folder)))


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> list[float | None]:
    """Those of a run that was let be."""
    return run(tmp_path_factory.mktemp("whole"), CountingJudge()).get_scores()


@settings(max_examples=80)
@given(steps=st.integers(0, 60), more=st.none() | st.integers(0, 6))
@example(steps=12, more=0)
def test_a_run_cancelled_at_any_await_loses_nothing(
    steps: int, more: int | None, scores: list[float | None], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whenever it is cancelled, and again while it ends, every vote that arrived is stored."""
    folder, judge = tmp_path_factory.mktemp("cancelled"), _Slow()

    async def main() -> None:
        task = asyncio.ensure_future(_runner(folder, judge).run())
        for wait in (steps, more):
            for _ in range(wait or 0):
                await asyncio.sleep(0)
            if wait is not None:
                task.cancel()
        (ended,) = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(ended, asyncio.CancelledError) or ended.get_scores() == scores  # type: ignore[union-attr]
        if more is None:
            assert asyncio.all_tasks() == {asyncio.current_task()}
            assert len(_stored(folder)) == judge.answered

    asyncio.run(main())
    _goes_on(folder, scores)


# Python tells of each task that is thrown away.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore:coroutine")
@settings(max_examples=20)
@given(steps=st.integers(0, 60))
def test_a_run_whose_event_loop_is_closed_at_any_step_loses_nothing(
    steps: int, scores: list[float | None], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Where the loop is closed and its tasks are thrown away, the folder is free, and the run goes on."""
    folder, judge = tmp_path_factory.mktemp("closed"), _Slow()
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda _, context: None)
    task = loop.create_task(_runner(folder, judge).run())
    for _ in range(steps):
        loop.call_soon(loop.stop)
        loop.run_forever()
    loop.close()
    del task, loop
    gc.collect()
    # Two items at a time, with two questions each, may be between their answer and their vote.
    assert judge.answered - 4 <= len(_stored(folder)) <= judge.answered
    _goes_on(folder, scores)


def test_a_judge_that_will_not_be_cancelled_breaks_nothing(
    scores: list[float | None], tmp_path: Path
) -> None:
    """What it answers after the cancellation is not a verdict that the run had asked to be thrown away."""

    async def main() -> None:
        task = asyncio.ensure_future(_runner(tmp_path, _Stubborn()).run())
        for _ in range(4):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())
    stored = _stored(tmp_path)
    assert len(set(stored)) == len(stored)
    judge = CountingJudge()
    run(tmp_path, judge)
    assert not set(stored) & set(judge.asked)


def test_a_store_that_is_closed_takes_no_more_votes(tmp_path: Path) -> None:
    """A vote that comes after the end is refused, since another process may write by then."""
    store = RunStore(tmp_path / "run")
    store.close()
    store.close()
    vote = JudgeVote(judge_id="late", sample=0, status="answered", answer="MET")
    with pytest.raises(RunError, match="is closed because the run has ended"):
        store.add_vote(StoredVote(item_id="i0", criterion="apple", digest="", vote=vote))
    assert not (tmp_path / "run" / "votes.jsonl").exists()
