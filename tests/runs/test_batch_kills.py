"""Runs in batches whose processes are killed between any two steps."""

from __future__ import annotations

import random
import signal
from multiprocessing import get_context
from pathlib import Path

import pytest

from autorubric import EvalResult
from tests.runs.batch_child import dataset, evaluate_and_die, model
from tests.runs.test_batches import _judged, _run, _votes
from tests.servers.fixtures import OpenAIServer

_CONTEXT = get_context("fork")


def _child(folder: Path, server: OpenAIServer, kind: str, line: int) -> int | None:
    process = _CONTEXT.Process(target=evaluate_and_die, args=(str(folder), server.url, kind, line))
    process.start()
    process.join(300)
    assert process.exitcode in (0, 4, -signal.SIGKILL)
    return process.exitcode


def _kill_runs(folder: Path, server: OpenAIServer, kind: str, kills: int, seed: int) -> None:
    """Kill processes of runs at random lines until `kills` have died; check each finished run."""
    rng, killed, runs = random.Random(seed), 0, 0
    while killed < kills:
        server.reset()
        server.batches(polls=1, rules=[{"contains": "text number 1", "fate": "expired", "times": 1}])
        runs += 1
        for _ in range(60):
            line = rng.randrange(1, 900) if killed < kills else 0
            code = _child(folder / f"{runs}", server, kind, line)
            killed += code == -signal.SIGKILL
            if code == 0:
                break
        told = server.batches()
        assert (len(told["paid"]), set(told["paid"].values())) == (6, {1}), told
        result = EvalResult.from_experiment(folder / f"{runs}" / "run")
        assert (_judged(result), result.verdicts.lost) == (6, 0)
        if kind == "openai":
            direct = _run(
                folder / "direct" / f"{runs}", model(kind, server.url), dataset=dataset(), batch=False
            )
            assert [v[:-1] for v in _votes(direct)] == [v[:-1] for v in _votes(result)]


def test_killed_processes_lose_nothing_and_pay_once(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """A run whose processes are killed anywhere ends like a direct run, and no request is answered twice."""
    _kill_runs(tmp_path, openai_server, "openai", kills=3, seed=8)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "kills"), [("openai", 100), ("anthropic", 10)])
def test_a_hundred_kills(kind: str, kills: int, tmp_path: Path, openai_server: OpenAIServer) -> None:
    """The same for as many kills as it takes to die between any two steps."""
    _kill_runs(tmp_path, openai_server, kind, kills, seed=7)
