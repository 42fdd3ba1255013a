"""Runs and questions that end before their time: nothing is lost, nothing is left behind."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from autorubric import CriterionGrader, EvalConfig, EvalRunner
from autorubric.llm import LLMClient
from autorubric.llm.rate_limits import RequestLimits, local_limiter
from tests.doubles import until
from tests.faults.runs import config, dataset, run, votes_of
from tests.servers.fixtures import OpenAIServer

ROOT = Path(__file__).resolve().parents[2]
STORED, PARALLEL = 40, 8
"""Votes that arrive before the end, and requests that are in flight then."""


def _goes_on(server: OpenAIServer, folder: Path) -> None:
    """The run has the votes that arrived, and going on asks for the others, each once."""
    assert len(set(_stored(folder))) == len(_stored(folder)) == STORED
    server.trouble()
    result = run(folder, [config(server)], dataset(40))
    assert len(votes_of(result)) == 200
    assert len(server.outcomes()) == 200 - STORED
    assert len(set(_stored(folder))) == len(_stored(folder)) == 200


def _stored(folder: Path) -> list[tuple[str, str]]:
    lines = (folder / "run" / "votes.jsonl").read_text(encoding="utf-8").splitlines()
    return [(vote["item"], vote["criterion"]) for vote in map(json.loads, lines)]


def _runner(server: OpenAIServer, folder: Path, items: int) -> EvalRunner:
    options = EvalConfig(experiment_name="run", experiments_dir=folder, show_progress=False)
    judge = config(server, max_parallel_requests=PARALLEL)
    return EvalRunner(dataset(items), CriterionGrader(llm_config=judge), options)


def test_a_cancelled_run_keeps_its_votes_and_goes_on(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """Cancelled in the middle, a run has every vote that arrived, and going on asks for the others alone."""
    openai_server.trouble(answers=STORED)

    async def main() -> int:
        task = asyncio.create_task(_runner(openai_server, tmp_path, 40).run())
        await until(lambda: len(openai_server.outcomes()) == STORED + PARALLEL)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return local_limiter(openai_server.api_base, RequestLimits()).running

    assert asyncio.run(main()) == 0
    _goes_on(openai_server, tmp_path)


def test_a_cancelled_question_frees_its_slot(openai_server: OpenAIServer) -> None:
    """Cancelled in flight, in the queue, in a pause that the provider asked for, or between two tries."""
    openai_server.script({"do": "hang", "seconds": 300}, contains="hang", repeat="last")
    openai_server.script(
        {"do": "status", "status": 429, "headers": {"Retry-After": "300"}}, contains="wait", repeat="last"
    )
    judge = config(openai_server, timeout=300.0, max_parallel_requests=1)

    async def main() -> None:
        async with LLMClient(judge) as client:

            async def ask(text: str) -> str:
                return await client.generate("", text)

            def settled(text: str, running: int) -> bool:
                return text in asked() and limiter.running == running

            def asked() -> set[str]:
                return {seen["body"]["messages"][0]["content"] for seen in openai_server.log()}

            limiter = local_limiter(openai_server.api_base, RequestLimits())
            for texts, running in ((("hang", "queued"), 1), (("wait", "paused"), 0)):
                tasks = [asyncio.create_task(ask(text)) for text in texts]
                await until(partial(settled, texts[0], running))
                assert len(limiter.traffic.line) == 1
                for task in reversed(tasks):
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                assert (limiter.running, len(limiter.traffic.line)) == (0, 0)
            assert asked() == {"hang", "wait"}

    asyncio.run(main())


def test_a_client_outlives_its_event_loop(openai_server: OpenAIServer) -> None:
    """A loop that was closed with the client's connections open is forgotten; the client opens new ones."""
    client = LLMClient(config(openai_server))
    for _ in range(3):
        loop = asyncio.new_event_loop()
        assert loop.run_until_complete(client.generate("", "Say it.")) == "A plain reply."
        loop.close()
    assert len(openai_server.log()) == 3


ABANDONED = """
import asyncio, signal, sys
from pathlib import Path
from autorubric import CriterionGrader, Criterion, DataItem, EvalConfig, EvalRunner, LLMConfig
from autorubric import Rubric, RubricDataset
from autorubric.llm import generate_sync

base, folder, way, stored = sys.argv[1:]
rubric = Rubric([Criterion(name=f"c{n}", requirement=f"It says {n}.") for n in range(5)])
items = [DataItem(id=f"i{n}", submission=f"Text number {n}.") for n in range(40)]
judge = LLMConfig(model="openai/judge", api_base=base, transport="openai_compatible", max_parallel_requests=8)
options = EvalConfig(experiment_name="run", experiments_dir=Path(folder), show_progress=False)
data = RubricDataset(name="faults", rubric=rubric, items=items)
runner = EvalRunner(data, CriterionGrader(llm_config=judge), options)

def once_stored(loop, end):
    votes = Path(folder) / "run" / "votes.jsonl"
    if votes.exists() and len(votes.read_bytes().splitlines()) == int(stored):
        end()
    else:
        loop.call_later(0.02, once_stored, loop, end)

async def timed_out():
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as limit:
        once_stored(loop, lambda: limit.reschedule(loop.time()))
        await runner.run()

generate_sync("", "Warm up.", judge)
if way == "timeout":
    try:
        asyncio.run(timed_out())
    except TimeoutError:
        print("TimeoutError")
elif way == "interrupt":
    async def interrupted():
        once_stored(asyncio.get_running_loop(), lambda: signal.raise_signal(signal.SIGINT))
        await runner.run()
    try:
        asyncio.run(interrupted())
    except KeyboardInterrupt:
        print("KeyboardInterrupt")
elif way == "stop":
    loop = asyncio.new_event_loop()
    once_stored(loop, loop.stop)
    try:
        loop.run_until_complete(runner.run())
    except RuntimeError as error:
        print(type(error).__name__)
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.gather(*asyncio.all_tasks(loop), return_exceptions=True))
    loop.close()
"""


@pytest.mark.parametrize(
    ("way", "error"),
    [("timeout", "TimeoutError"), ("interrupt", "KeyboardInterrupt"), ("stop", "RuntimeError")],
)
def test_a_run_whose_event_loop_ends_early_is_whole(
    way: str, error: str, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """A deadline, an interrupt, a loop that is stopped: no stray task, no warning, and it goes on."""
    # The first warms the process up.
    openai_server.trouble(answers=1 + STORED)
    command = [sys.executable, "-X", "dev", "-c", ABANDONED]
    command += [openai_server.api_base, str(tmp_path), way, str(STORED)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=ROOT)
    assert (ended.returncode, ended.stdout) == (0, f"{error}\n"), ended.stderr
    for word in ("destroyed", "never retrieved", "never awaited", "Unclosed", "ignored"):
        assert word not in ended.stderr
    _goes_on(openai_server, tmp_path)
