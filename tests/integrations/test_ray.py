"""Runs over Ray's own local cluster."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autorubric import CriterionGrader, EvalResult, JudgeSpec, LLMConfig, RubricDataset
from autorubric.errors import ArgumentError, RunError
from autorubric.judges import ModelJudge, RecordedJudge
from autorubric.llm import LLMClient
from autorubric.runs import evaluate
from tests.faults.runs import config, dataset
from tests.integrations.ray_judges import BrokenGrader, GivenTransport, WatchedJudge
from tests.runs.runs import TEXTS, run, small_dataset
from tests.servers.fixtures import OpenAIServer

ray = pytest.importorskip("ray")
from autorubric.integrations.ray_executor import _keeper_result  # noqa: E402 - only where Ray is installed

_ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.usefixtures("ray_cluster"), pytest.mark.slow]


def items(count: int = 40) -> RubricDataset:
    """So many items, more than go to one worker at a time."""
    return small_dataset(*(TEXTS[n % len(TEXTS)] for n in range(count)))


def told(result: EvalResult) -> dict[str, Any]:
    """Everything that a run says of each item, but how long it took."""
    return {
        one.item.id or "": [
            (one.report.score, one.error),
            *(
                (c.name, c.final_answer, [(v.judge_id, v.status, v.answer) for v in c.votes])
                for c in one.report.report
            ),
        ]
        for one in result.item_results
        if one.report is not None
    }


def stored_votes(result: EvalResult) -> Counter[tuple[str, str]]:
    """How often each item and criterion stands among the votes of a run folder."""
    lines = (result.experiment_dir / "votes.jsonl").read_text(encoding="utf-8").splitlines()
    return Counter((vote["item"], vote["criterion"]) for vote in map(json.loads, lines))


def recorded(folder: Path, count: int = 40) -> RecordedJudge:
    """A judge with votes from a file, an abstention and an unreadable one among them."""
    values = ("MET", "UNMET", "CANNOT_ASSESS", "MET", "INVALID")
    rows = [
        f"i{n},{name},r,{values[(n + len(name)) % 5]}" for n in range(count) for name in ("apple", "pear")
    ]
    path = folder / "votes.csv"
    path.write_text("\n".join(["item_id,criterion,rater,value", *rows, ""]), encoding="utf-8")
    return RecordedJudge.from_csv(path)


def test_the_votes_are_those_of_a_local_run(tmp_path: Path) -> None:
    """On recorded judges nothing differs, in the result and in the folder that it is opened from."""
    watched = WatchedJudge(notes=tmp_path / "asked")
    grader = CriterionGrader(
        judges=[recorded(tmp_path), JudgeSpec(watched, weight=2.0)], aggregation="weighted"
    )
    local = run(tmp_path, None, items(), grader=grader, experiment_name="local")
    there = run(tmp_path, None, items(), grader=grader, experiment_name="ray", executor="ray")
    assert told(there) == told(local) == told(EvalResult.from_experiment(tmp_path / "ray"))
    assert [notice.partition("first error")[0] for notice in there.notices] == [
        notice.partition("first error")[0] for notice in local.notices
    ]
    # The first error is that of the item that finished first.
    counts = [replace(one.verdicts, lost_cause=None, assumed_cause=None) for one in (there, local)]
    assert counts[0] == counts[1]
    assert len({pid for pid, _, _ in watched.asked()}) >= 2
    manifests = [
        json.loads((tmp_path / name / "manifest.json").read_text(encoding="utf-8"))
        for name in ("local", "ray")
    ]
    assert manifests[0]["asking"] == manifests[1]["asking"]


def test_no_usage_is_reported(tmp_path: Path) -> None:
    """Ray's own telemetry is off in what a run begins, whatever the caller's environment does not say."""
    code = f"""
import os, sys
os.environ.pop("RAY_USAGE_STATS_ENABLED", None)
from autorubric import CriterionGrader, evaluate_sync
from tests.runs.runs import small_dataset
from tests.integrations.ray_judges import tells_of_usage_reports
result = evaluate_sync(small_dataset("one"), CriterionGrader(judges=[tells_of_usage_reports]), executor="ray",
                       experiments_dir={str(tmp_path)!r}, show_progress=False)
print(result.item_results[0].report.report[0].votes[0].reason)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=_ROOT
    )
    assert done.stdout == "usage reports: 0\n", done.stderr


def test_the_items_of_a_killed_worker_are_graded_by_another(tmp_path: Path) -> None:
    """Nothing is lost, votes that were told are not asked for again, and no vote is stored twice.

    It dies with the only slot there is, which the others get.
    """
    judge = WatchedJudge(notes=tmp_path / "asked", deadly="i30", seconds=0.01, at_a_time=1)

    async def graded() -> EvalResult:
        grader = CriterionGrader(judges=[judge])
        options: dict[str, Any] = {"experiments_dir": tmp_path, "experiment_name": "run"}
        async with asyncio.timeout(60):
            return await evaluate(items(), grader, executor="ray", max_concurrent_items=4, **options)

    done = asyncio.run(graded())
    assert done.get_scores() == run(tmp_path, judge, items(), experiment_name="local").get_scores()
    assert done.errors == []
    assert set(stored_votes(done).values()) == {1}
    there = [one for one in judge.asked() if one[0] != str(os.getpid())]
    assert len({pid for pid, _, _ in there}) >= 2
    repeated = {(item, name) for (item, name), n in Counter((i, c) for _, i, c in there).items() if n > 1}
    # At most what its two items had in flight.
    assert len(repeated) <= 4


def test_an_item_that_kills_its_worker_again_and_again_is_given_up(tmp_path: Path) -> None:
    """It has an error; what was graded beside it has its scores."""
    judge = WatchedJudge(notes=tmp_path / "asked", deadly="i3", deaths=99)
    done = run(tmp_path, judge, items(12), executor="ray", max_concurrent_items=6)
    assert [position for position, _ in done.errors] == [3]
    assert "3 worker processes died" in done.errors[0][1]
    assert done.successful_items == 11
    # Gone on with where it does not die, it is graded.
    mended = run(tmp_path, WatchedJudge(notes=tmp_path / "asked"), items(12))
    assert mended.successful_items == 12


def test_limits_hold_for_all_workers_together(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """Never are more requests in flight than one config allows, and as many as that are."""
    openai_server.script(*[{"do": "answer", "together": 3}] * 3)
    watched = WatchedJudge(notes=tmp_path / "asked")
    judges: list[Any] = [config(openai_server, max_parallel_requests=3), watched]
    done = run(tmp_path, None, dataset(30, 2), grader=CriterionGrader(judges=judges), executor="ray")
    assert set(stored_votes(done).values()) == {2}
    seen = [one["running"] for one in openai_server.log()]
    assert len(seen) == 60
    assert max(seen) == 3


def test_limits_that_the_provider_does_not_tell_are_learnt_once_for_all(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    """What is turned away in one worker slows the others down, and every verdict comes."""
    openai_server.trouble(parallel=4, seconds=0.02)
    grader = CriterionGrader(judges=[config(openai_server)])
    done = run(tmp_path, None, dataset(60, 3), grader=grader, executor="ray")
    assert set(stored_votes(done).values()) == {1}
    assert len(stored_votes(done)) == 180
    assert not any(line.lost for line in done.item_results.lines())


def test_a_budget_holds_for_all_workers_together(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """The run stops cleanly, with as many requests sent as were allowed, and goes on when it is run again."""
    grader = CriterionGrader(judges=[config(openai_server)])
    stopped = run(tmp_path, None, dataset(40, 2), grader=grader, executor="ray", max_calls=20)
    assert stopped.stopped == "max_calls"
    sent = len(openai_server.log())
    assert sent == 20
    assert "run again" in stopped.notices[-1]
    assert sum(stored_votes(stopped).values()) == sent
    done = run(tmp_path, None, dataset(40, 2), grader=grader, executor="ray")
    assert (done.stopped, done.total_items) == (None, 40)
    assert len(openai_server.log()) == 80


def test_a_run_stops_at_its_cost_and_goes_on_under_other_executors(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    """Local, then Ray, then local: every question is sent once.

    Requests that cost more than estimated go over the limit by no more than those in flight.
    """
    usage = {"prompt_tokens": 1000, "completion_tokens": 1, "total_tokens": 1001}
    openai_server.script({"do": "answer", "usage": usage}, repeat="last")
    # What its requests are taken to cost is a third of that.
    priced = LLMConfig(model="openai/priced", input_cost_per_token=0.00001, output_cost_per_token=0.0)
    client = LLMClient(priced, transport=GivenTransport(config(openai_server)))
    grader = CriterionGrader(judges=[ModelJudge(judge_id="m", client=client)])
    data = dataset(40, 2)
    assert run(tmp_path, None, data, grader=grader, max_calls=15).stopped == "max_calls"
    stopped = run(tmp_path, None, data, grader=grader, max_cost=0.1, max_concurrent_items=4, executor="ray")
    assert stopped.stopped == "max_cost"
    assert "max_cost=0.1 US dollars does not allow another request" in stopped.notices[-1]
    # Ten for the money, and eight in flight.
    assert 10 <= len(openai_server.log()) - 15 <= 18
    assert sum(stored_votes(stopped).values()) == len(openai_server.log())
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["status"] == "stopped"
    done = run(tmp_path, None, data, grader=grader)
    assert (done.stopped, done.total_items) == (None, 40)
    assert len(openai_server.log()) == 80
    assert set(stored_votes(done).values()) == {1}
    again = run(tmp_path, None, data, grader=grader, executor="ray")
    assert told(again) == told(done)
    assert len(openai_server.log()) == 80


def test_the_death_of_what_keeps_the_limits_says_how_to_go_on() -> None:
    """What the run asks it for fails as an error of the run, and not as one of Ray's."""

    async def gone() -> None:
        raise ray.exceptions.RayActorError

    with pytest.raises(RunError, match=r"enforces limits and budget died; run again with the same name"):
        asyncio.run(_keeper_result(gone()))


def test_a_bug_in_a_worker_ends_the_run_as_it_does_locally(tmp_path: Path) -> None:
    """The exception is the grader's own; what was judged stays, and the run can be resumed."""
    broken = BrokenGrader(judges=[WatchedJudge(notes=tmp_path / "asked")])
    with pytest.raises(ZeroDivisionError, match="a bug"):
        run(tmp_path, None, items(24), grader=broken, executor="ray", max_concurrent_items=2)
    done = run(tmp_path, WatchedJudge(notes=tmp_path / "asked"), items(24))
    assert done.successful_items == 24
    assert set(stored_votes(done).values()) == {1}


def test_a_grader_that_cannot_be_sent_is_refused(tmp_path: Path) -> None:
    """It says which executor, and what cannot be pickled."""
    lock = threading.Lock()
    with pytest.raises(ArgumentError, match="executor='ray': the grader cannot be sent to another process"):
        run(tmp_path, lambda _: str(lock), items(2), executor="ray")


ON_ITS_OWN = """
import sys
from pathlib import Path
from tests.runs.runs import run, small_dataset
from tests.integrations.ray_judges import WatchedJudge

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    judge = WatchedJudge(notes=folder / "asked", seconds=0.3)
    run(folder, judge, small_dataset(*["apple"] * 200), executor="ray", max_concurrent_items=4)
"""


def test_an_interrupt_ends_what_was_begun_for_the_run(tmp_path: Path) -> None:
    """Ray's processes are gone, what was judged is stored, and another executor goes on with it."""
    program = tmp_path / "program.py"
    program.write_text(ON_ITS_OWN, encoding="utf-8")
    path = os.pathsep.join([*sys.path, os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    environment.pop("RAY_ADDRESS", None)
    process = subprocess.Popen(
        [sys.executable, str(program), str(tmp_path)], env=environment, stderr=subprocess.PIPE, text=True
    )
    notes, votes = tmp_path / "asked", tmp_path / "run" / "votes.jsonl"
    deadline = time.monotonic() + 300
    try:
        while not (votes.exists() and votes.read_bytes().count(b"\n") > 8):
            assert process.poll() is None and time.monotonic() < deadline, process.communicate()
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, told_there = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode != 0
    assert "KeyboardInterrupt" in told_there
    judge = WatchedJudge(notes=notes)
    workers = {Path(f"/proc/{pid}") for pid, _, _ in judge.asked()}
    # What is killed is gone when the system gets to it.
    while any(one.exists() for one in workers):
        assert time.monotonic() < deadline, workers
        time.sleep(0.1)
    done = run(tmp_path, judge, small_dataset(*["apple"] * 200))
    assert done.successful_items == 200
    assert set(stored_votes(done).values()) == {1}
